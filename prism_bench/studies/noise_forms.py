"""How a machine may make the same kernel take another time: generators of the process levels of a whole suite.

A form gives, for both sides, the log of every case's time in every process, and the log of the SM clock there. What
a case is (whether it follows the clock, whether its memory may be placed unequally) depends on its nature, a number
from 0 to 1 that it keeps from run to run. The two sides are measured in turn (A B, B A, ...), as `compare` does.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
RARE, PLACED = 0.3, 0.05  # how often a process is on the other level, and how far that is


@dataclass(frozen=True)
class Levels:
    """Of both sides the log times and log clocks, each (sides, cases, processes), and the true log ratio of B to A."""

    times: Floats
    clocks: Floats
    truth: Floats


Draw = Callable[[np.random.Generator, Floats, int], Levels]  # of cases with these natures, in so many processes


@dataclass(frozen=True)
class Form:
    """A form of noise: its levels for cases and so many processes, and the cases of `identical` code (a share).

    Successive samples are alike by `memory`, the autocorrelation of neighbours.
    """

    levels: Draw
    identical: float = 0.0
    memory: float = 0.0


def turns(processes: int) -> NDArray[np.int64]:
    """Return when each process was measured: (sides, processes), A first in odd pairs and B first in even ones."""
    pair = 2 * np.arange(processes)
    odd = np.arange(processes) % 2
    return np.stack([pair + odd, pair + 1 - odd])


def unchanged(times: Floats) -> Levels:
    """Return levels with these times, of code and clocks that did not change."""
    return Levels(times, np.zeros_like(times), np.zeros(times.shape[1]))


def offsets(spread: float) -> Draw:
    """Shift every process of every case by itself, normally."""
    return lambda rng, natures, processes: unchanged(spread * rng.standard_normal((2, len(natures), processes)))


def heavy_tails(rng: np.random.Generator, natures: Floats, processes: int) -> Levels:
    """Student's t with three degrees of freedom: some processes are far out."""
    return unchanged(0.01 * rng.standard_t(3, (2, len(natures), processes)) / np.sqrt(3))


def sensitivity(natures: Floats) -> Floats:
    """Return how far a case follows the SM clock: a third wholly, a third not (the memory), a third in between."""
    return np.clip(3 * natures - 1, 0, 1)


def two_clocks(rng: np.random.Generator, natures: Floats, processes: int) -> Levels:
    """Run the whole suite at a clock that is 3 % lower in some processes."""
    clocks = -0.03 * np.repeat(rng.random((2, 1, processes)) < RARE, len(natures), axis=1).astype(np.float64)
    quiet = offsets(0.003)(rng, natures, processes).times
    return Levels(quiet - clocks * sensitivity(natures)[:, None], clocks, np.zeros(len(natures)))


def moved_clock(rng: np.random.Generator, natures: Floats, processes: int) -> Levels:
    """All of B runs at a clock that is 3 % lower; what the clock explains is no change of a kernel."""
    clocks = np.zeros((2, len(natures), processes))
    clocks[1] = -0.03
    follows = sensitivity(natures)
    quiet = offsets(0.003)(rng, natures, processes).times
    return Levels(quiet - clocks * follows[:, None], clocks, 0.03 * follows)


def alike(rng: np.random.Generator, natures: Floats, processes: int) -> Levels:
    """Neighbouring processes resemble each other (0.3); the samples within them do, too, by the form's memory."""
    steps = rng.standard_normal((len(natures), 2 * processes))
    for turn in range(1, 2 * processes):
        steps[:, turn] = 0.3 * steps[:, turn - 1] + np.sqrt(1 - 0.3**2) * steps[:, turn]
    return unchanged(0.005 * np.moveaxis(steps[:, turns(processes)], 1, 0))


def drift(rng: np.random.Generator, natures: Floats, processes: int) -> Levels:
    """Everything takes 1 % longer at the end of ten processes than at the beginning, steadily."""
    slope = 0.01 * turns(processes)[:, None, :] / 10
    return unchanged(offsets(0.005)(rng, natures, processes).times + slope)


def placements(share: float, rare: float = RARE) -> Draw:
    """In that share of cases a process is on one of two levels, 5 % apart."""

    def levels(rng: np.random.Generator, natures: Floats, processes: int) -> Levels:
        placed = (rng.random((2, len(natures), processes)) < rare) & (natures < share)[:, None]
        return unchanged(offsets(0.003)(rng, natures, processes).times + PLACED * placed)

    return levels


def shifted(factor: float) -> Draw:
    """Make the whole machine take longer in B."""

    def levels(rng: np.random.Generator, natures: Floats, processes: int) -> Levels:
        times = offsets(0.005)(rng, natures, processes).times
        times[1] += np.log(factor)
        return unchanged(times)

    return levels


SHIFT_CONTROL = 280 / 300
FORMS: Mapping[str, Form] = {
    "offsets of 0.2 %": Form(offsets(0.002)), "offsets of 0.5 %": Form(offsets(0.005)),
    "offsets of 1 %": Form(offsets(0.01)), "heavy tails, 1 %": Form(heavy_tails),
    "two clocks 3 % apart": Form(two_clocks), "clock of B 3 % lower": Form(moved_clock),
    "autocorrelation": Form(alike, memory=0.8), "drift of 1 %": Form(drift),
    "two placements, all cases": Form(placements(1.0)), "two placements, half and half": Form(placements(1.0, 0.5)),
    "two placements, 10 % of cases": Form(placements(0.1)),
    "machine 1 % slower": Form(shifted(1.01), identical=SHIFT_CONTROL),
    "machine 3 % slower": Form(shifted(1.03), identical=SHIFT_CONTROL),
}  # fmt: skip
