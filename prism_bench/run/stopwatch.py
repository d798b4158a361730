"""Stopwatch of a case: the seconds that a worker process spends on it, by phase.

`phase` is called deep inside a measurement, where no argument can carry the stopwatch, so the one that runs is kept in
a context variable. The phases of a process that times are `preparing` (inputs, buffers, loading), `verifying` (also of
timed launches), `kernel`, `energy`, one `peer:<name>` for each peer, `peers importing` (libraries), `peers forms` (the
names of all forms), `peers state` (global state and memory before and after a peer), and `cpu`. A process that times
nothing spends all of it `untimed`.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter

PREPARING, VERIFYING, KERNEL, CPU, UNTIMED = "preparing", "verifying", "kernel", "cpu", "untimed"
ENERGY, IMPORTING, FORMS, STATE = "energy", "peers importing", "peers forms", "peers state"
COMPILING, TIMED = "compiling", "timed"  # stages of a run, as `untimed` is
_DIGITS = 4  # a tenth of a millisecond


class Stopwatch:
    """Seconds by phase; the time of a phase inside another one counts for the inner one only."""

    def __init__(self, timed: bool, clock: Callable[[], float] = perf_counter) -> None:
        """Without `timed`, every phase counts as `untimed`."""
        self._timed, self._clock = timed, clock
        self._open, self._since = [PREPARING], clock()
        self._seconds: dict[str, float] = {}

    def begin(self, name: str) -> None:
        """Count what follows for the phase `name`."""
        self._settle()
        self._open.append(name)

    def end(self) -> None:
        """Count what follows for the phase around the one that ends."""
        self._settle()
        self._open.pop()

    def seconds(self) -> dict[str, float]:
        """Return the seconds of each phase until now, those left out that took none."""
        self._settle()
        rounded = {name: round(seconds, _DIGITS) for name, seconds in self._seconds.items()}
        return {name: seconds for name, seconds in rounded.items() if seconds}

    def _settle(self) -> None:
        now, name = self._clock(), self._open[-1] if self._timed else UNTIMED
        self._seconds[name] = self._seconds.get(name, 0.0) + now - self._since
        self._since = now


_CURRENT: ContextVar[Stopwatch | None] = ContextVar("prism_bench_stopwatch", default=None)


@contextmanager
def running(timed: bool) -> Generator[Stopwatch]:
    """Yield a new stopwatch, which `phase` counts for inside the `with` block; `timed` as in `Stopwatch`."""
    stopwatch = Stopwatch(timed)
    token = _CURRENT.set(stopwatch)
    try:
        yield stopwatch
    finally:
        _CURRENT.reset(token)


@contextmanager
def phase(name: str) -> Generator[None]:
    """Count the `with` block for the phase `name` of the stopwatch that runs, if one does."""
    stopwatch = _CURRENT.get()
    if stopwatch is None:
        yield
        return
    stopwatch.begin(name)
    try:
        yield
    finally:
        stopwatch.end()
