"""Board on simulated time, whose power and energy counter are known: for the null backend, tests and simulations.

Nothing sleeps: time passes with readings, pauses and launches, so a second of a measurement takes milliseconds.
"""

from collections.abc import Generator
from dataclasses import dataclass, field
from random import Random
from typing import Literal

Fault = Literal["stands", "resets", "wraps", "stops answering"]
_LATENCY = 2e-3  # seconds that a reading takes on average; an H200's driver needs up to 5 ms
_RAMP = 0.02  # seconds until power has followed the load by two thirds: within the first step of an H200's counter


@dataclass
class PlayedBoard:
    """Board that draws `idle` watts, and `watts` while launches of `each` second run.

    The counter moves every `step` seconds. `noise` is the relative deviation of what it adds in a step, and of a power
    reading; `gain` times the energy is what it adds. With `module` watts, a CPU is in the counter and in the power of
    the scope `module`. A `fault` happens `after` seconds.
    """

    watts: float = 600.0
    each: float = 1e-4
    idle: float = 120.0
    step: float = 0.1
    noise: float = 0.005
    gain: float = 1.0
    module: float = 0.0
    has_power: bool = True
    chunk: float = 1e-3
    fault: Fault | None = None
    after: float = 0.8
    seed: int = 0
    now: float = 0.0
    busy: float = 0.0
    _working: bool = False
    _drawn: float = field(init=False)
    _pending: float = 0.0  # joules since the last step

    def __post_init__(self) -> None:
        self._random, self._drawn = Random(self.seed), self.idle
        self._counted, self._next = 1e6, self.step * self._random.random()
        if self.fault == "wraps":
            self._counted = 2**32 * 1e-3 - 250.0

    def clock(self) -> float:
        """Return the simulated time in seconds."""
        return self.now

    def pause(self, seconds: float) -> None:
        """Let time pass."""
        self._pass(seconds)

    def energy(self) -> float | str:
        """Return the counter in joules, or why it is unknown, after the time that a reading takes."""
        self._pass(_LATENCY * (0.5 + self._random.random()))
        if self.fault == "stops answering" and self.now > self.after:
            return "no permission to read it"
        return round(self._counted, 3)

    def power(self) -> dict[str, float]:
        """Return the power in watts by scope."""
        if not self.has_power:
            return {}
        self._pass(_LATENCY)
        scopes: dict[str, float] = {"gpu": self._drawn} | ({"module": self._drawn + self.module} if self.module else {})
        return {scope: watts * self._noisy() for scope, watts in scopes.items()}

    def repeated(self) -> Generator[int, None, None]:
        """Keep the board busy; yield the launches done so far."""
        self._working, begun = True, self.busy
        try:
            while True:
                self._pass(self.chunk)
                yield int((self.busy - begun) / self.each)
        finally:
            self._working = False

    def _pass(self, seconds: float) -> None:
        end = self.now + seconds
        while self._next <= end:
            self._run(self._next - self.now)
            self._tick()
            self._next += self.step
        self._run(end - self.now)

    def _run(self, seconds: float) -> None:
        target = self.watts if self._working else self.idle
        self._drawn += (target - self._drawn) * min(1.0, seconds / _RAMP)
        self._pending += (self._drawn + self.module) * seconds
        self.busy += seconds if self._working else 0.0
        self.now += seconds

    def _tick(self) -> None:
        faulty = self.now > self.after
        if not (self.fault == "stands" and faulty):
            self._counted += self._pending * self.gain * self._noisy()
        if self.fault == "resets" and faulty:
            self._counted, self.fault = 3.0, None
        if self.fault == "wraps":
            self._counted %= 2**32 * 1e-3
        self._pending = 0.0

    def _noisy(self) -> float:
        return 1 + self.noise * self._random.gauss(0.0, 1.0)
