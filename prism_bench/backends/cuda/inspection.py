"""A callable looked at before it is timed: what it enqueues and where, what it leaves for later, what nothing costs."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter, sleep

from prism_bench.backends.cuda.driver import is_blocking
from prism_bench.backends.cuda.harness import Harness
from prism_bench.backends.cuda.launches import listening
from prism_bench.backends.cuda.stream_order import LEGACY, Observed, complaint
from prism_bench.backends.cuda.timers import leftover_allowed
from prism_bench.errors import BackendUnavailable, MeasurementInvalid

CALLS = 24  # so that work which is done one time in ten is seen to be missing
WATCHED = 3  # of them the device and the threads are watched after
SECONDS = 0.5  # enough of such calls, however few
IDLE_SECONDS = 5e-3  # and twice as long as a call takes, if that is more
TRIES = 5  # a late wake-up of the host is not evidence
FLOOR_SAMPLES = 9


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
            median(harness.timed(call, cold=True).seconds for _ in range(FLOOR_SAMPLES))
            for call in (lambda: None, harness.nothing)
        )
        return Floors(nothing, launch)

    def _enqueues_nothing(self, call: Callable[[], object]) -> bool:
        calls, stream = self._calls(call), self._harness.stream.ptr
        problem = complaint(stream, calls, LEGACY if stream in LEGACY or is_blocking(stream) else ())
        if problem:
            raise MeasurementInvalid(problem)
        return not any(one.work for one in calls)

    def _refuse_late_work(self, call: Callable[[], object]) -> None:
        """One quiet try is enough; on a busy host even a device without work seems to answer late."""
        busy = 0.0
        for _ in range(TRIES):
            seconds, busy = self._harness.afterwards(call, IDLE_SECONDS)
            if busy <= leftover_allowed(seconds):
                return
            _, without = self._harness.afterwards(lambda: None, max(IDLE_SECONDS, 2 * seconds))
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
            if not any(one.kind == "work" for one in operations):
                raise BackendUnavailable("CUPTI does not report what this process launches")
            harness.stream.synchronize()
            for number in range(CALLS):
                start, before = len(operations), perf_counter()
                call()
                end = len(operations)
                harness.stream.synchronize()
                if number < WATCHED:
                    self._pause(max(IDLE_SECONDS, 2 * (perf_counter() - before)))
                calls.append((start, end, len(operations)))
                if number + 1 >= WATCHED and perf_counter() - begun > SECONDS:
                    break
        return [Observed(tuple(operations[a:b]), tuple(operations[b:c])) for a, b, c in calls]
