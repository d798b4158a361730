"""How good are the verdicts where the truth is known? Generated suites, judged as a comparison judges them.

A suite is 300 cases of 5 us to 1 ms, measured in processes of 20 samples each. It is judged by designs: so many
processes a side, or pairs added for undecided cases up to 15, with a stored noise floor of ten processes or without.

A form of noise gives, for both sides, the log of every case's time in every process, and the log of the SM clock there.
What a case is (whether it follows the clock, whether its memory may be placed unequally) depends on its nature, a
number from 0 to 1 that it keeps from run to run. The two sides are measured in turn (A B, B A, ...).

With earlier runs, side A is what a nightly run has: the processes of EARLIER runs, each a session in which A is
measured as above. Side B is the newest run, whose undecided cases get more processes while those of A stay.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from prism_bench.analysis.compare.earlier_runs import spreads
from prism_bench.analysis.compare.estimate import Medians, Spread, medians_of_rows, pooled
from prism_bench.analysis.compare.noise import control_of
from prism_bench.analysis.compare.verdict import (
    RULES,
    Judgement,
    MachineShift,
    Pair,
    VerdictRules,
    judged,
    looks_of,
    nightly_looks,
)

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

    Successive samples are alike by `memory`, the autocorrelation of neighbours. Runs of different sessions differ
    by `apart`, a standard deviation, in a `shaky` share of the cases; the sides of one session do not.
    """

    levels: Draw
    identical: float = 0.0
    memory: float = 0.0
    apart: float = 0.0
    shaky: float = 1.0


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
    "runs differ by 0.3 %": Form(offsets(0.005), apart=0.003),
    "runs differ by 1 %, 10 % of cases": Form(offsets(0.005), apart=0.01, shaky=0.1),
}  # fmt: skip


SAMPLES, WITHIN = 20, 0.02
STORED = 10  # processes of the stored noise floor
EARLIER, NIGHTLY = 5, 3  # earlier runs of a nightly run, and the processes of each
PLANTED_SHARE = 0.1


@dataclass(frozen=True)
class Design:
    """Design of a comparison: how many processes a side are measured, and whether a noise floor is stored.

    Every case is measured in `first` processes; undecided ones in up to `most`. A `nightly` design compares with
    earlier runs.
    """

    first: int
    most: int
    stored: bool
    nightly: bool = False

    @property
    def words(self) -> str:
        return f"{self.first}" if self.first == self.most else f"{self.first} to {self.most}"


@dataclass(frozen=True)
class Suite:
    """One pair of runs: both sides' medians in seconds and cycles with all processes that may be measured.

    `known` are the stored spreads in time and in cycles, `identical` and `planted` the positions of cases of identical
    code and of planted changes, `truth` is the true ratio as it is printed. `nightly` is the same with earlier runs as
    side A, which is `whole` there: it gets no more processes.
    """

    seconds: tuple[Sequence[Medians], Sequence[Medians]]
    cycles: tuple[Sequence[Medians], Sequence[Medians]]
    known: Sequence[tuple[Spread, Spread]]
    identical: frozenset[int]
    planted: frozenset[int]
    truth: Floats
    nightly: "Suite | None" = None
    whole: bool = False
    _cut: dict[tuple[int, int], tuple[Medians, ...]] = field(default_factory=dict)

    def first(self, case: int, count: int) -> tuple[Medians, ...]:
        """Return the case's first processes: both sides in seconds, then in cycles. All designs share what was cut."""
        if (case, count) not in self._cut:
            (a, b), (clocked_a, clocked_b) = ([side[case] for side in both] for both in (self.seconds, self.cycles))
            kept = len(a.logs) if self.whole else count
            self._cut[case, count] = tuple(
                Medians(one.logs[:most], one.variances[:most])
                for one, most in ((a, kept), (b, count), (clocked_a, kept), (clocked_b, count))
            )
        return self._cut[case, count]


def generated(rng: np.random.Generator, form: Form, cases: int, processes: int, *, planted: float = 1.0) -> Suite:
    """Draw one pair of runs; `planted` is the ratio of a tenth of the cases whose code is not identical."""
    typical = np.log(np.geomspace(5e-6, 1e-3, cases))
    natures = rng.random(cases)
    levels = form.levels(rng, natures, processes)
    identical = frozenset(range(round(form.identical * cases)))
    rest = rng.permutation(np.arange(len(identical), cases))
    changed = rest[: max(1, round(PLANTED_SHARE * cases)) if planted != 1 else 0]
    times, truth = levels.times + typical[:, None], levels.truth.copy()
    times[1][changed] += np.log(planted)
    truth[changed] += np.log(planted)
    samples = times[..., None] + _strays(rng, times.shape, form.memory)
    clocked = samples + levels.clocks[..., None]
    seconds = medians_of_rows(samples[0]), medians_of_rows(samples[1])
    cycles = medians_of_rows(clocked[0]), medians_of_rows(clocked[1])
    # The spread of a build against itself, measured on another day in half as many pairs of processes.
    other = form.levels(rng, natures, STORED // 2)
    measured = other.times + _strays(rng, other.times.shape, form.memory).mean(axis=-1)
    stored = list(zip(_spreads(measured), _spreads(measured + other.clocks), strict=True))
    suite = Suite(seconds, cycles, stored, identical, frozenset(changed.tolist()), truth)
    return replace(suite, nightly=_with_earlier(rng.spawn(1)[0], form, suite, typical, natures))


def _with_earlier(rng: np.random.Generator, form: Form, suite: Suite, typical: Floats, natures: Floats) -> Suite:
    """Return the suite with A as EARLIER runs have it: their spread is what is known, and B is another run."""
    runs: list[tuple[list[Medians], list[Medians]]] = []
    apart = form.apart * (natures < form.shaky)
    for _ in range(EARLIER):
        levels = form.levels(rng, natures, NIGHTLY)
        times = levels.times[0] + (typical + apart * rng.standard_normal(len(natures)))[:, None]
        samples = times[..., None] + _strays(rng, times.shape, form.memory)
        runs.append((medians_of_rows(samples), medians_of_rows(samples + levels.clocks[0][..., None])))
    moved = apart * rng.standard_normal(len(natures))
    b, clocked_b = (
        [_moved(one, log) for one, log in zip(side, moved.tolist(), strict=True)]
        for side in (suite.seconds[1], suite.cycles[1])
    )
    cases = range(len(natures))
    a, clocked_a = ([reduce(add, (run[which][case] for run in runs)) for case in cases] for which in (0, 1))
    learned = [spreads([[[run[which][case] for run in runs]] for case in cases]) for which in (0, 1)]
    known = [(time, cycle) for time, cycle in zip(*learned, strict=True) if time and cycle]
    return replace(suite, seconds=(a, b), cycles=(clocked_a, clocked_b), known=known, whole=True, _cut={})


def _moved(side: Medians, log: float) -> Medians:
    return replace(side, logs=tuple(one + log for one in side.logs)) if log else side


def _spreads(logs: Floats) -> list[Spread]:
    """Return the spread of each case's processes, of logs by side, case and process."""
    rows = zip(*logs.tolist(), strict=True)
    return [pooled(*(Medians(tuple(row), (0.0,) * len(row)) for row in sides)) for sides in rows]


def _strays(rng: np.random.Generator, shape: tuple[int, ...], memory: float) -> Floats:
    """Draw the deviations of samples: a tail to the right, as launches have; neighbours alike by `memory`."""
    steps = rng.standard_normal((*shape, SAMPLES))
    for place in range(1, SAMPLES) if memory else ():
        steps[..., place] = memory * steps[..., place - 1] + np.sqrt(1 - memory**2) * steps[..., place]
    return WITHIN * np.abs(steps)


def judged_suite(suite: Suite, design: Design, rules: VerdictRules = RULES) -> tuple[list[Judgement], list[int]]:
    """Return the judgement of every case, and in how many processes a side, or of the newest run, it was measured."""
    if design.nightly and suite.nightly:
        suite = suite.nightly
    cases, counts = len(suite.truth), [design.first] * len(suite.truth)
    looks = (nightly_looks if design.nightly else looks_of)(design.first, design.most)
    rules = replace(rules, looks=len(looks))
    found = _look(suite, counts, design.stored or design.nightly, rules)
    for processes in looks[1:]:
        undecided = [case for case in range(cases) if found[case].verdict == "inconclusive"]
        if not undecided:
            break
        for case in undecided:
            counts[case] = processes
        found = _look(suite, counts, design.stored or design.nightly, rules)
    return found, counts


def _look(suite: Suite, counts: Sequence[int], known: bool, rules: VerdictRules) -> list[Judgement]:
    pairs = []
    for case, count in enumerate(counts):
        a, b, *clocked = suite.first(case, count)
        pairs.append(Pair(a, b, (clocked[0], clocked[1]), *(suite.known[case] if known else ())))
    control = control_of({str(case): pairs[case] for case in suite.identical})
    shifts = [control.fit.at(pair.a.typical) if control.used else MachineShift() for pair in pairs]
    return judged(pairs, rules, control.widening, shifts)
