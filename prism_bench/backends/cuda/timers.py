"""Clock of the CUDA backend: a harness that clears caches, holds a stream and records events; a timer per metric."""

from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from importlib import import_module
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from prism_bench.backends.base import Flow
from prism_bench.backends.cuda.device import CudaDevice, PersistingCache, bound, captured_nodes
from prism_bench.backends.cuda.peers.library_state import set_up_torch
from prism_bench.compilation import compile_source
from prism_bench.errors import MeasurementInvalid
from prism_bench.measure.call_checks import keep, refuse_replaced
from prism_bench.record.measurement import Sample
from prism_bench.spec.dtypes import stored
from prism_bench.spec.kernel import Array, KernelSpec
from prism_bench.spec.peer import Library

# The honest clock's machinery on one stream: cold caches, a held stream, event pairs, SM clocks.

_HOLD_LIMIT = 0.5
_SOURCE = Path(__file__).with_name("harness.cu")
_ENTRIES = ("hold", "stamp", "overwrite", "sweep", "nothing")
_CACHE_SIZES = 2  # how many times L2's size is written, then read, before a cold launch
_CLOCK_SECONDS = 50e-6  # by which the events and the device's own timer may differ, and the share of a sample
_CLOCK_SHARE = 0.05
_CLOCK_TRIES = 3  # samples in a row: one may be another process's turn on the device


class StreamNotHeld(MeasurementInvalid):
    """The device continued before the call had enqueued all of its work."""


class Harness:
    """Times whatever a callable enqueues on `stream`."""

    def __init__(self, cupy: ModuleType, device: CudaDevice, stream: Any) -> None:
        self._cupy, self._device, self.stream = cupy, device, stream
        compiled = compile_source(_SOURCE, _ENTRIES, str(device.compute_capability))
        module = cupy.RawModule(path=str(compiled.path))
        self._kernels = {entry: module.get_function(compiled.lowered[entry]) for entry in _ENTRIES}
        self._flag_memory = cupy.cuda.alloc_pinned_memory(64)
        self._flag = np.frombuffer(self._flag_memory, np.int32, 2)
        self._stamps = cupy.zeros((2, 4 * device.sm_count, 2), np.uint64)
        self._sink = cupy.zeros(1, np.float32)
        self._written = cupy.zeros((_CACHE_SIZES * device.l2_bytes) // 4, np.float32)
        self._swept = cupy.zeros_like(self._written)
        self.poison = True  # scripts/sanitize leaves it out for initcheck: poison counts as written
        self.leave_dirty = False  # nvbench's way, for scripts/crosscheck: the lines written above stay in L2
        self._functions = bound(cupy)
        self._start, self._stop = self._functions.event(), self._functions.event()
        self._pinned = PersistingCache(stream.ptr)
        self._disagreeing = 0

    def forget_persisting(self) -> None:
        """Reset lines that an earlier kernel made persist in L2."""
        self._pinned.forget()

    def ordinary_cache(self) -> PersistingCache:
        """Return a context manager that clears persisting L2 and the stream's access policy."""
        return self._pinned

    def nothing(self) -> None:
        """Enqueue an empty kernel."""
        self._kernels["nothing"]((1,), (32,), ())

    def clear_caches(self) -> None:
        """Enqueue work after which L2 has no data of the kernel and no dirty line."""
        blocks, count = 4 * self._device.sm_count, np.int64(self._written.size // 4)
        self._kernels["overwrite"]((blocks,), (256,), (self._written, count, np.float32(0)))
        if self.leave_dirty:
            return
        self.write_back()

    def write_back(self) -> None:
        """Enqueue a kernel that reads twice L2's size elsewhere, so that dirty lines are written to memory."""
        blocks, count = 4 * self._device.sm_count, np.int64(self._swept.size // 4)
        self._kernels["sweep"]((blocks,), (256,), (self._swept, count, self._sink))

    def timed(self, call: Callable[[], object], cold: bool, tries: int = 2) -> Sample:
        """Return one sample of `call()`: device seconds between events, SM clock, and the host's cost to enqueue it.

        StreamNotHeld where the device continued before all was enqueued, in each of the `tries`: one may be a stalled
        host. A call that works in place is called on its own results in a second try.
        """
        for _ in range(tries):
            self.begin(cold)
            before = perf_counter()
            try:
                call()
                launch_seconds = perf_counter() - before
            finally:
                self.end()
                self.release()
            sample = self.finish(launch_seconds)
            if sample:
                return sample
        raise StreamNotHeld(
            "the call waits for the device, or enqueues more than a stream holds, so its launch cost cannot be hidden"
        )

    def begin(self, cold: bool) -> None:
        """Hold the stream and enqueue the beginning of a timed window; what is enqueued until `end` is timed."""
        self._refuse_strange_stream()
        if cold:
            self.clear_caches()
        self._hold()
        self._stamp(0)
        self._start.record(self.stream)

    def end(self) -> None:
        """Enqueue the end of the timed window."""
        self._stop.record(self.stream)
        self._stamp(1)

    def release(self) -> None:
        """Let the held stream go on."""
        self._flag[0] = 1

    def finish(self, launch_seconds: float) -> Sample | None:
        """Wait for the stream; return the window's sample, or None if the device continued before it was released."""
        self.stream.synchronize()
        if self._flag[1]:
            return None
        seconds = self._functions.elapsed(self._start, self._stop) * 1e-3
        refuse_replaced()
        clock, wall = self._stamped()
        self._refuse_disagreement(seconds, wall)
        return Sample(seconds, clock, launch_seconds)

    def _refuse_disagreement(self, seconds: float, wall: float | None) -> None:
        """Raise MeasurementInvalid if the device's timer, read around the events, disagrees with them repeatedly."""
        differs = wall is not None and abs(wall - seconds) > _CLOCK_SECONDS + _CLOCK_SHARE * wall
        self._disagreeing = self._disagreeing + 1 if differs else 0
        if wall is not None and self._disagreeing >= _CLOCK_TRIES:
            raise MeasurementInvalid(
                f"the events measure {seconds * 1e6:.2f} us and the device's own timer {wall * 1e6:.2f} us around them"
            )

    def afterwards(self, call: Callable[[], object], idle: float = 0.0) -> tuple[float, float]:
        """Return the seconds of `call` on this stream, and the seconds that the device worked on afterwards.

        The device works on for another stream, or for a thread that enqueued work while the host waited for `idle`
        seconds, or twice as long as the call took.
        """
        synchronize = self._functions.synchronize
        synchronize()
        begun = perf_counter()
        call()
        self.stream.synchronize()
        done = perf_counter()
        synchronize()
        longest, now = perf_counter() - done, perf_counter()
        end = now + max(idle, 2 * (done - begun)) if idle else now
        while now < end:
            synchronize()
            longest, now = max(longest, perf_counter() - now), perf_counter()
        synchronize()
        return done - begun, max(0.0, longest - (perf_counter() - now))

    def _refuse_strange_stream(self) -> None:
        """Raise MeasurementInvalid if another stream is current: its work is neither held nor timed."""
        current = self._functions.current_stream()
        if current.ptr != self.stream.ptr:
            self.stream.use()
            raise MeasurementInvalid(f"the current stream was changed to {current}, away from the timed one")

    def repeated(self, call: Callable[[], object], chunk: int, ahead: int) -> Generator[int, None, None]:
        """Enqueue `chunk` calls again and again, `ahead` chunks ahead of the device; yields the calls that are done.

        Close it to let the device rest. MeasurementInvalid where it rested before, because who looked took too long.
        """
        waiting, done = deque(), 0
        try:
            while True:
                if done and (not waiting or waiting[-1].done):
                    raise MeasurementInvalid("the device ran out of launches while somebody looked at it")
                while len(waiting) <= ahead:
                    waiting.append(self._enqueued(call, chunk))
                waiting.popleft().synchronize()
                done += chunk
                while waiting and waiting[0].done:
                    waiting.popleft()
                    done += chunk
                yield done
        finally:
            self.stream.synchronize()

    def _enqueued(self, call: Callable[[], object], chunk: int) -> Any:
        for _ in range(chunk):
            call()
        event = bound(self._cupy).event(disable_timing=True)
        event.record(self.stream)
        return event

    def _hold(self) -> None:
        self._flag[:] = 0
        self._kernels["hold"]((1,), (1,), (np.uint64(self._flag_memory.ptr), np.uint64(_HOLD_LIMIT * 1e9)))

    def _stamp(self, which: int) -> None:
        self._kernels["stamp"]((self._device.sm_count,), (32,), (self._stamps[which],))

    def _stamped(self) -> tuple[float, float] | tuple[None, None]:
        """Return cycles per second and seconds between the two stamps, as medians over the multiprocessors.

        (None, None) if no multiprocessor made both stamps.
        """
        before, after = self._stamps.get().astype(np.int64)
        wall = after[:, 0] - before[:, 0]
        seen = (before[:, 0] > 0) & (wall > 0)
        if not seen.any():
            return None, None
        cycles = after[seen, 1] - before[seen, 1]
        return float(np.median(cycles / (wall[seen] * 1e-9))), float(np.median(wall[seen]) * 1e-9)


keep("prism_bench.backends.cuda.timers.Harness", Harness)


# Work on a stream as one CUDA graph.


def captured(
    stream: Any, call: Callable[[], object], times: int = 1, counts: list[int | None] | None = None
) -> Callable[[], None]:
    """Return a function that replays what `times` calls of `call` enqueue on the CuPy stream.

    How many nodes the graph had before and after each call is added to `counts`.
    A call that raises ends the capture too: a stream left in it would record what comes next and run none of it.
    """
    stream.synchronize()
    stream.begin_capture()
    try:
        nodes = nodes_of_calls(stream.ptr, call, times)
    finally:
        graph = stream.end_capture()
    if counts is not None:
        counts += nodes
    refuse_idle_calls(nodes)
    graph.upload(stream)
    return lambda: graph.launch(stream)


def nodes_of_calls(stream: int, call: Callable[[], object], times: int) -> list[int | None]:
    """Call `call` repeatedly while `stream` is captured; return the nodes of the graph before and after each call.

    The count is None if the driver does not report it.
    """
    nodes = [captured_nodes(stream)]
    for _ in range(times):
        call()
        nodes.append(captured_nodes(stream))
    return nodes


def work_items(nodes: Sequence[int | None]) -> int | None:
    """Return how many nodes a call adds to a graph; None where the driver does not report it, or calls differ."""
    known = [count for count in nodes if count is not None]
    added = {after - before for before, after in zip(known, known[1:], strict=False)}
    return added.pop() if len(added) == 1 else None


def refuse_idle_calls(nodes: Sequence[int | None]) -> None:
    """Raise MeasurementInvalid where a call enqueued nothing into the graph: a replay would not do its work."""
    known = [count for count in nodes if count is not None]
    calls = len(nodes) - 1
    idle = sum(before == after for before, after in zip(known, known[1:], strict=False))
    if idle:
        raise MeasurementInvalid(f"the call enqueues nothing in {idle} of {calls} calls while a CUDA graph is captured")


# Lanes of work on the device: streams, events between them, and one graph of it all.


class CudaFlow(Flow):
    """Lane 0 is the backend's own stream; others are made when they are first used."""

    def __init__(self, cupy: ModuleType, stream: Any) -> None:
        self._cupy, self._streams = cupy, {0: stream}

    def lane(self, number: int) -> Any:
        return self._stream(number)

    def point(self) -> Any:
        return self._cupy.cuda.Event(disable_timing=True)

    def reached(self, point: Any, lane: int) -> None:
        point.record(self._stream(lane))

    def wait(self, lane: int, point: Any) -> None:
        self._stream(lane).wait_event(point)

    def synchronize(self) -> None:
        self._streams[0].synchronize()

    def captured(self, call: Callable[[], object]) -> Callable[[], None]:
        """All lanes that `call` uses must begin by waiting for a point of lane 0, and lane 0 for all of them."""
        return captured(self._streams[0], call)

    def host_array(self, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
        """In pinned memory."""
        count = int(np.prod(shape, dtype=np.int64))
        memory = self._cupy.cuda.alloc_pinned_memory(max(1, count * np.dtype(dtype).itemsize))
        return np.frombuffer(memory, dtype, count).reshape(shape)

    def _stream(self, number: int) -> Any:
        if number not in self._streams:
            self._streams[number] = self._cupy.cuda.Stream(non_blocking=True)
        return self._streams[number]


# Device arrays as arrays of other libraries, and the libraries set up for the timed stream; no copies are made.


def adopted_arrays(library: Library, arrays: Mapping[str, Any], spec: KernelSpec) -> Mapping[str, Any]:
    """Return CuPy's arrays as arrays of the package whose arrays the library's calls take.

    The bits of a type that CuPy lacks are an array of that type where the package has it.
    """
    if library.arrays == "cupy":
        return arrays
    if library.arrays == "jax":
        jax = import_module("jax")
        adopted = {name: jax.dlpack.from_dlpack(array) for name, array in arrays.items()}
        kinds = import_module("jax.numpy")
    else:
        kinds = import_module("torch")
        adopted = {name: kinds.as_tensor(array, device="cuda") for name, array in arrays.items()}
    lacked = {name: getattr(kinds, spec.array(name).dtype, None) for name in arrays if spec.array(name).holds_bits}
    return adopted | {name: adopted[name].view(kind) for name, kind in lacked.items() if kind is not None}


def held_array(cupy: ModuleType, result: Any, output: Array) -> Any:
    """Return a package's result as CuPy's array of what the kernel's output would hold."""
    if output.holds_bits and str(result.dtype) == f"torch.{output.dtype}":  # which CuPy cannot take
        torch = import_module("torch")
        result = result.view(torch.uint8 if output.storage.itemsize == 1 else torch.int16)
        return cupy.asarray(result).view(output.storage)
    held = cupy.asarray(result)
    if not output.holds_bits:
        return held
    has_bits = str(held.dtype) in (output.dtype, output.storage.name)
    return held.view(output.storage) if has_bits else stored(held, output.dtype, cupy)


def library_module(library: Library, harness: Harness) -> ModuleType:
    """Return the library's module; PyTorch works on the timed stream from here on."""
    if library.arrays == "torch":
        set_up_torch(import_module("torch"), harness.stream.ptr)
    return import_module(library.module)


# Timers: one class per metric of the CUDA backend; called, it takes one sample.

_GRAPH_SECONDS = 400e-6  # a graph this long makes the cost of starting it vanish
_GRAPH_LAUNCHES = (2, 400)
_LONG_SECONDS = 4e-3  # from here on a graph of one launch will do: its start is lost in a thousandth of that
_LOADING_SECONDS = 20e-3  # what takes less may be a short call that loaded something
_LEFTOVER_SECONDS = 50e-6
_LEFTOVER_SHARE = 0.01  # of the call: the longer the host waits, the later it may wake up
_LESS_WORK = 4  # times quicker in a graph than on its own, caches warm both times
_FASTEST_SECONDS = 0.1e-6  # no device starts a kernel in less
_GAP_SECONDS = 20e-6  # what a graph may save of a short call
_REPEAT_SECONDS = 1e-3  # how often a kernel that is repeated for its energy pauses for a look at the counter
_AHEAD_SECONDS = 60e-3  # of launches on their way: an H200's energy counter answers in 5 ms, after a beat's 14


def leftover_allowed(seconds: float) -> float:
    """Return how much longer than a stream that worked for `seconds` the device may seem to work."""
    return _LEFTOVER_SECONDS + _LEFTOVER_SHARE * seconds


class ColdTimer:
    """One launch after the caches were cleared; `restore` puts in-place inputs back first.

    `least` is a call of the same library that does next to nothing. What the device seems to work on after it is the
    library's own housekeeping on the host, for which a synchronisation waits too.
    """

    def __init__(
        self,
        harness: Harness,
        call: Callable[[], object],
        restore: Callable[[], object] | None = None,
        *,
        least: Callable[[], object] | None = None,
    ) -> None:
        self._harness, self._call, self._restore, self._least = harness, call, restore, least
        harness.forget_persisting()
        self._refuse_other_streams()

    def __call__(self) -> Sample:
        self._harness.forget_persisting()
        if self._restore:
            self._restore()
        return self._harness.timed(self._call, cold=True)

    def light(self) -> Sample:
        """Return a sample of an empty kernel, whose clock is the device's without this call's work."""
        return self._harness.timed(self._harness.nothing, cold=False)

    def _refuse_other_streams(self) -> None:
        """One of five tries without a leftover is enough: a late wake-up of the host is not evidence."""
        leftover = 0.0
        for _ in range(5):
            seconds, leftover = self._harness.afterwards(self._call)
            allowed = leftover_allowed(seconds)
            if leftover > allowed and self._least:
                allowed += 2 * self._harness.afterwards(self._least)[1]
            if leftover <= allowed:
                return
        raise MeasurementInvalid(
            f"the device worked {leftover * 1e6:.0f} us longer than the timed stream: the call uses another stream"
        )


class HotTimer:
    """One launch out of a CUDA graph of many; `capture(n)` returns what replays `n` launches.

    There are `launches` in a replay, which takes `replay_seconds` or less.
    """

    def __init__(
        self, harness: Harness, call: Callable[[], object], capture: Callable[[int], Callable[[], object]]
    ) -> None:
        self._harness = harness
        estimate = harness.timed(call, cold=False).seconds
        if estimate < _LOADING_SECONDS:
            estimate = harness.timed(call, cold=False).seconds
        low, high = _GRAPH_LAUNCHES if estimate < _LONG_SECONDS else (1, 1)
        self.launches = max(low, min(high, round(_GRAPH_SECONDS / max(estimate, 1e-9))))
        self._replay = capture(self.launches)
        self.replay_seconds = estimate * self.launches
        self._refuse_less_work(estimate)

    def __call__(self) -> Sample:
        sample = self._harness.timed(self._replay, cold=False)
        return Sample(sample.seconds / self.launches, sample.clock)

    def light(self) -> Sample:
        """Return a sample of an empty kernel, whose clock is the device's without this call's work."""
        return self._harness.timed(self._harness.nothing, cold=False)

    def _refuse_less_work(self, estimate: float) -> None:
        """Raise MeasurementInvalid if a launch in the graph is so much faster that it must do less work.

        A graph saves the gaps between launches and nothing else.
        """
        each = self().seconds
        if each < _FASTEST_SECONDS:
            raise MeasurementInvalid(f"a launch in a CUDA graph takes {each * 1e9:.1f} ns: nothing was launched")
        if each * _LESS_WORK + _GAP_SECONDS < estimate:
            raise MeasurementInvalid(
                f"a call takes {estimate * 1e6:.2f} us, and {each * 1e6:.2f} us in a CUDA graph: it does less there"
            )

    def repeated(self) -> Generator[int, None, None]:
        """Keep the device busy without a pause; yields the launches done so far. Close it to let the device rest.

        MeasurementInvalid where it paused all the same.
        """
        each = max(self.replay_seconds, 1e-9)
        chunk = max(1, round(_REPEAT_SECONDS / each))
        ahead = max(2, round(_AHEAD_SECONDS / (chunk * each)))
        with closing(self._harness.repeated(self._replay, chunk, ahead)) as repeated:
            for replays in repeated:
                yield replays * self.launches


class EndToEndTimer:
    """Inputs from host memory, the kernel, outputs back: what a caller without resident data waits for."""

    def __init__(
        self, stream: Any, call: Callable[[], object], upload: Callable[[], object], download: Callable[[], object]
    ) -> None:
        self._stream, self._call, self._upload, self._download = stream, call, upload, download

    def __call__(self) -> Sample:
        self._stream.synchronize()
        before = perf_counter()
        self._upload()
        self._call()
        self._download()
        return Sample(perf_counter() - before)


class FirstCallTimer:
    """Compile without the cache, load, launch once."""

    def __init__(self, stream: Any, first_call: Callable[[], object]) -> None:
        self._stream, self._first_call = stream, first_call

    def __call__(self) -> Sample:
        self._stream.synchronize()
        before = perf_counter()
        self._first_call()
        self._stream.synchronize()
        return Sample(perf_counter() - before)


for _timer in (ColdTimer, HotTimer, EndToEndTimer, FirstCallTimer):
    keep(f"prism_bench.backends.cuda.timers.{_timer.__name__}", _timer)
