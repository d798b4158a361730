"""One class per metric of the CUDA backend: called, it takes one sample."""

from collections.abc import Callable, Generator
from contextlib import closing
from time import perf_counter
from typing import Any

from prism_bench.backends.cuda.harness import Harness
from prism_bench.errors import MeasurementInvalid
from prism_bench.measure.call_checks import keep
from prism_bench.record.measurement import Sample

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
