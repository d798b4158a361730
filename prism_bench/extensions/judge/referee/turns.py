"""Turns on a device that judgements share, and the seconds that each part of a judgement takes."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from time import perf_counter

Turn = Callable[[], AbstractContextManager[None]]
WAITING = "waiting for the device"


class PhaseClock:
    """Seconds by phase, of one thread: those of a phase within another one count for the inner one alone."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._open: list[str] = []
        self._since = 0.0

    @property
    def seconds(self) -> dict[str, float]:
        """The seconds of each phase so far, to the millisecond."""
        return {name: round(seconds, 3) for name, seconds in self._seconds.items()}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the seconds of a `with` block."""
        self._charge()
        self._open.append(name)
        try:
            yield
        finally:
            self._charge()
            self._open.pop()

    def _charge(self) -> None:
        now = perf_counter()
        if self._open:
            self._seconds[self._open[-1]] = self._seconds.get(self._open[-1], 0.0) + now - self._since
        self._since = now


class DeviceTurns:
    """Turns on the device for the parts of `whose` judgement that need it, by the clock: others work in between."""

    def __init__(self, turn: Turn = nullcontext, clock: PhaseClock | None = None, whose: str = "") -> None:
        self._turn, self._clock, self._whose = turn, clock or PhaseClock(), whose

    @contextmanager
    def taken(self, phase: str) -> Iterator[None]:
        """Have the device within a `with` block; waiting for it is a phase by itself. It cannot be taken twice."""
        with self._clock.phase(self._named(phase)):
            with ExitStack() as turn:
                with self._clock.phase(self._named(WAITING)):
                    turn.enter_context(self._turn())
                yield

    @contextmanager
    def phase(self, phase: str) -> Iterator[None]:
        """Count the seconds of what needs no device."""
        with self._clock.phase(self._named(phase)):
            yield

    def _named(self, phase: str) -> str:
        return f"{self._whose}: {phase}" if self._whose else phase
