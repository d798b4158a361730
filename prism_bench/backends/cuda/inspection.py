"""A callable inspected before it is timed: what it enqueues, where, and in which order."""

import ctypes
import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import Any, Literal

from prism_bench.backends.cuda.device import ACCESS_POLICY, PERSISTING_LIMIT, is_blocking
from prism_bench.backends.cuda.timers import Harness, leftover_allowed
from prism_bench.errors import BackendUnavailable, MeasurementInvalid
from prism_bench.units import count_text

# What a call enqueued, and whether its work is ordered with the stream that is timed.

Kind = Literal["work", "record", "wait", "pin"]
_LEGACY = (0, 1)  # the handles of the legacy default stream


@dataclass(frozen=True)
class Operation:
    """One call into the driver or runtime: a kernel, copy, set or graph is `work`; `pin` sets L2 aside."""

    kind: Kind
    name: str
    stream: int = 0
    event: int = 0


@dataclass(frozen=True)
class Observed:
    """What one call of the callable enqueued until it returned (`inside`), and what came after that (`later`)."""

    inside: tuple[Operation, ...]
    later: tuple[Operation, ...] = ()

    @property
    def work(self) -> int:
        """The operations that work on the device."""
        return sum(operation.kind == "work" for operation in self.inside)


def strays(stream: int, operations: Sequence[Operation], same: Sequence[int] = ()) -> list[Operation]:
    """Return work that is not timed: on a stream that does not begin after `stream`, or that `stream` never waits for.

    Streams in `same` are ordered with `stream` anyway.
    """
    timed = {stream, *same}
    clocks = {ordered: {stream: 0} for ordered in timed}  # by stream: how far it comes after the work of others
    events: dict[int, dict[int, int]] = {}
    early, elsewhere = [], []
    for at, operation in enumerate(operations, 1):
        clock = clocks.setdefault(operation.stream, {})
        if operation.kind == "wait":
            for other, reached in events.get(operation.event, {}).items():
                clock[other] = max(clock.get(other, 0), reached)
            continue
        if operation.kind == "work" and stream not in clock:
            early.append(operation)
        elif operation.kind == "work" and operation.stream not in timed:
            elsewhere.append((at, operation))
        clock[operation.stream] = at
        if operation.kind == "record":
            events[operation.event] = dict(clock)
    seen = [clocks[ordered] for ordered in timed]
    return early + [
        operation for at, operation in elsewhere if not any(clock.get(operation.stream, 0) >= at for clock in seen)
    ]


def complaint(stream: int, calls: Sequence[Observed], same: Sequence[int] = ()) -> str | None:
    """Return why these calls cannot be timed on `stream`; None where nothing speaks against it."""
    for call in calls:
        late = [operation for operation in call.later if operation.kind == "work"]
        if late:
            return f"the call enqueues work after it has returned ({_names(late)}): a thread works on behind it"
        pinned = [operation for operation in call.inside if operation.kind == "pin"]
        if pinned:
            return f"the call sets a part of L2 aside ({_names(pinned)}), so caches cannot be cleared"
        loose = strays(stream, call.inside, same)
        if loose:
            return (
                f"the call uses another stream: {len(loose)} of its {count_text(call.work, 'operation')} "
                f"({_names(loose)}) are not "
                "ordered with the timed one"
            )
    idle = sum(not call.work for call in calls)
    if 0 < idle < len(calls):
        return f"the call enqueues nothing in {idle} of {count_text(len(calls), 'call')}"
    return None


def _names(operations: Sequence[Operation]) -> str:
    return ", ".join(sorted({operation.name for operation in operations}))


# What this process asks of the device, call by call: CUPTI's callbacks, for a few calls that are not timed.
#
# The library comes with the toolkit and with PyTorch. One tool at a time can listen; where another one does, or where
# the library is missing, there is a reason instead of a list.

_DOMAINS = (1, 2)  # the driver's calls and the runtime's
_ENTER = 0
_VERSION = re.compile(r"(_v\d+|_ptsz|_ptds)+$")
# By function: where in its packed parameters the stream is; a pair where a parameter points to it.
_WORK: dict[str, tuple[int, ...]] = {
    "cuLaunchKernel": (40,), "cuLaunchCooperativeKernel": (40,), "cuLaunchKernelEx": (0, 32),
    "cuGraphLaunch": (8,), "cuMemcpyAsync": (24,), "cuMemcpyHtoDAsync": (24,), "cuMemcpyDtoHAsync": (24,),
    "cuMemcpyDtoDAsync": (24,), "cuMemcpy2DAsync": (8,), "cuMemcpy3DAsync": (8,), "cuMemcpyPeerAsync": (40,),
    "cuMemsetD8Async": (24,), "cuMemsetD16Async": (24,), "cuMemsetD32Async": (24,), "cuMemsetD2D8Async": (40,),
    "cuMemsetD2D16Async": (40,), "cuMemsetD2D32Async": (40,),
    "cudaLaunchKernel": (48,), "cudaLaunchCooperativeKernel": (48,), "cudaLaunchKernelExC": (0, 32),
    "cudaGraphLaunch": (8,), "cudaMemcpyAsync": (32,), "cudaMemsetAsync": (24,),
}  # fmt: skip
_RECORD = {"cuEventRecord", "cuEventRecordWithFlags", "cudaEventRecord", "cudaEventRecordWithFlags"}  # event, stream
_WAIT = {"cuStreamWaitEvent", "cudaStreamWaitEvent"}  # stream, event
_LIMIT = {"cuCtxSetLimit", "cudaDeviceSetLimit"}  # limit, value
_ATTRIBUTE = {"cuStreamSetAttribute", "cudaStreamSetAttribute"}  # stream, attribute, value


class _Data(ctypes.Structure):
    """CUpti_CallbackData."""

    _fields_ = [
        ("site", ctypes.c_int), ("function", ctypes.c_char_p), ("parameters", ctypes.c_void_p),
        ("returned", ctypes.c_void_p), ("symbol", ctypes.c_char_p), ("context", ctypes.c_void_p),
        ("context_id", ctypes.c_uint32), ("data", ctypes.c_void_p), ("id", ctypes.c_uint32),
    ]  # fmt: skip


_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.POINTER(_Data))


_CALLBACKS: list[Any] = []  # kept: another thread may still be in one when the callback is off again


@contextmanager
def listening(cupti: Any = None) -> Iterator[list[Operation]]:
    """Give a list that grows by every operation of this process; BackendUnavailable without such a callback."""
    cupti, operations, handle = cupti or _library(), [], ctypes.c_void_p()

    def heard(user: object, domain: int, number: int, data: Any) -> None:
        if data.contents.site == _ENTER:
            operation = _operation(data.contents)
            if operation:
                operations.append(operation)

    callback = _CALLBACK(heard)
    _CALLBACKS.append(callback)
    status = cupti.cuptiSubscribe(ctypes.byref(handle), callback, None)
    if status:
        raise BackendUnavailable(f"CUPTI does not let this process listen to its launches (error {status})")
    try:
        for domain in _DOMAINS:
            cupti.cuptiEnableDomain(1, handle, domain)
        yield operations
    finally:
        for domain in _DOMAINS:
            cupti.cuptiEnableDomain(0, handle, domain)
        cupti.cuptiUnsubscribe(handle)


def _operation(data: _Data) -> Operation | None:
    """Return the operation behind a call; None if it enqueues nothing."""
    name, at = _VERSION.sub("", data.function.decode()), data.parameters
    if name in _WORK:
        first, *rest = _WORK[name]
        return Operation("work", name, _word(_word(at) + rest[0]) if rest else _word(at + first))
    if name in _RECORD:
        return Operation("record", name, _word(at + 8), _word(at))
    if name in _WAIT:
        return Operation("wait", name, _word(at), _word(at + 8))
    pins = (name in _LIMIT and _number(at) == PERSISTING_LIMIT) or (
        name in _ATTRIBUTE and _number(at + 8) == ACCESS_POLICY
    )
    return Operation("pin", name) if pins else None


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


def _number(address: int) -> int:
    return ctypes.c_int.from_address(address).value


def _library() -> Any:
    """Return the CUPTI that is loaded already, or the first that is found."""
    for path in chain(_loaded(), _installed()):
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    raise BackendUnavailable("CUPTI's library is not there to listen to launches with")


def _loaded() -> list[str]:
    maps = Path("/proc/self/maps")
    lines = maps.read_text().splitlines() if maps.is_file() else []
    return sorted({line.split(maxsplit=5)[5] for line in lines if "/libcupti.so" in line})


def _installed() -> Iterator[str]:
    for folder in map(Path, sys.path):
        yield from (str(path) for path in sorted(folder.glob("nvidia/*/lib/libcupti.so.*"), reverse=True))
    for folder in ("lib64", "extras/CUPTI/lib64"):
        yield from (str(path) for path in sorted(Path("/usr/local/cuda", folder).glob("libcupti.so.*")))
    yield from ("libcupti.so.13", "libcupti.so.12")


# A callable looked at before it is timed: what it enqueues and where, what it leaves for later, what nothing costs.

_CALLS = 24  # so that work which is done one time in ten is seen to be missing
WATCHED = 3  # of them the device and the threads are watched after
_SECONDS = 0.5  # enough of such calls, however few
_IDLE_SECONDS = 5e-3  # and twice as long as a call takes, if that is more
_TRIES = 5  # a late wake-up of the host is not evidence
_FLOOR_SAMPLES = 9


@dataclass(frozen=True)
class Floors:
    """Seconds between two events with `nothing` between them, and with the `launch` of an empty kernel."""

    nothing: float
    launch: float


@dataclass(frozen=True)
class Inspection:
    """What was seen: whether the call is known to enqueue `nothing` at all, and what could not be looked at."""

    nothing: bool = False
    notes: tuple[str, ...] = ()


class Inspector:
    """Looks at a callable on the harness's stream."""

    def __init__(self, harness: Harness, listen: Callable = listening, pause: Callable[[float], None] = sleep) -> None:
        self._harness, self._listen, self._pause = harness, listen, pause

    def inspect(self, call: Callable[[], object]) -> Inspection:
        """Look at it. MeasurementInvalid where it cannot be timed honestly."""
        threads, notes, nothing = threading.active_count(), [], False
        try:
            nothing = self._enqueues_nothing(call)
        except BackendUnavailable as error:
            notes.append(f"other streams were looked for by time alone: {error}")
        self._refuse_late_work(call)
        if threading.active_count() > threads:
            notes.append("the call left threads running")
        return Inspection(nothing, tuple(notes))

    def floors(self) -> Floors:
        """Measure what no work costs."""
        harness = self._harness
        nothing, launch = (
            median(harness.timed(call, cold=True).seconds for _ in range(_FLOOR_SAMPLES))
            for call in (lambda: None, harness.nothing)
        )
        return Floors(nothing, launch)

    def _enqueues_nothing(self, call: Callable[[], object]) -> bool:
        calls, stream = self._calls(call), self._harness.stream.ptr
        problem = complaint(stream, calls, _LEGACY if stream in _LEGACY or is_blocking(stream) else ())
        if problem:
            raise MeasurementInvalid(problem)
        return not any(call.work for call in calls)

    def _refuse_late_work(self, call: Callable[[], object]) -> None:
        """One quiet try is enough; on a busy host even a device without work seems to answer late."""
        busy = 0.0
        for _ in range(_TRIES):
            seconds, busy = self._harness.afterwards(call, _IDLE_SECONDS)
            if busy <= leftover_allowed(seconds):
                return
            _, without = self._harness.afterwards(lambda: None, max(_IDLE_SECONDS, 2 * seconds))
            if busy <= leftover_allowed(seconds) + 2 * without:
                return
        raise MeasurementInvalid(
            f"the device worked for {busy * 1e6:.0f} us after the call was done: a thread or another stream works on"
        )

    def _calls(self, call: Callable[[], object]) -> list[Observed]:
        """Return what each of several calls enqueued. BackendUnavailable if that cannot be observed here."""
        harness, calls, begun = self._harness, [], perf_counter()
        with self._listen() as operations:
            harness.nothing()
            if not any(operation.kind == "work" for operation in operations):
                raise BackendUnavailable("CUPTI does not report what this process launches")
            harness.stream.synchronize()
            for number in range(_CALLS):
                start, before = len(operations), perf_counter()
                call()
                end = len(operations)
                harness.stream.synchronize()
                if number < WATCHED:
                    self._pause(max(_IDLE_SECONDS, 2 * (perf_counter() - before)))
                calls.append((start, end, len(operations)))
                if number + 1 >= WATCHED and perf_counter() - begun > _SECONDS:
                    break
        return [Observed(tuple(operations[a:b]), tuple(operations[b:c])) for a, b, c in calls]
