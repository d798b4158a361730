"""How good are the verdicts where the truth is known? Generated suites, judged as a comparison judges them.

A suite is 300 cases of 5 us to 1 ms, measured in processes of 20 samples each. It is judged by designs: so many
processes a side, or pairs added for undecided cases up to 15, with a stored noise floor of ten processes or without.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from prism_bench.analysis.compare.control import control_of
from prism_bench.analysis.compare.estimate import Spread, pooled
from prism_bench.analysis.compare.medians import Medians, medians_of_rows
from prism_bench.analysis.compare.verdict import (
    RULES,
    Judgement,
    MachineShift,
    Pair,
    VerdictRules,
    following,
    judged,
    looks_of,
)
from prism_bench.studies.noise_forms import Floats, Form

SAMPLES, WITHIN = 20, 0.02
STORED = 10  # processes of the stored noise floor
PLANTED_SHARE = 0.1


@dataclass(frozen=True)
class Design:
    """Design of a comparison: how many processes a side are measured, and whether a noise floor is stored.

    Every case is measured in `first` processes; undecided ones in up to `most`.
    """

    first: int
    most: int
    stored: bool

    @property
    def words(self) -> str:
        return f"{self.first}" if self.first == self.most else f"{self.first} to {self.most}"


@dataclass(frozen=True)
class Suite:
    """One pair of runs: both sides' medians in seconds and cycles with all processes that may be measured.

    `known` are the stored spreads, `identical` and `planted` the positions of cases of identical code and of planted
    changes, `truth` is the true ratio as it is printed.
    """

    seconds: tuple[Sequence[Medians], Sequence[Medians]]
    cycles: tuple[Sequence[Medians], Sequence[Medians]]
    known: Sequence[Spread | None]
    identical: frozenset[int]
    planted: frozenset[int]
    truth: Floats
    _cut: dict[tuple[int, int], tuple[Medians, ...]] = field(default_factory=dict)

    def first(self, case: int, count: int) -> tuple[Medians, ...]:
        """Return the case's first processes: both sides in seconds, then in cycles. All designs share what was cut."""
        if (case, count) not in self._cut:
            whole = [side[case] for side in (*self.seconds, *self.cycles)]
            self._cut[case, count] = tuple(Medians(one.logs[:count], one.variances[:count]) for one in whole)
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
    other = form.levels(rng, natures, STORED // 2).times
    other = other + _strays(rng, other.shape, form.memory).mean(axis=-1)
    rows = zip(*other.tolist(), strict=True)
    stored = [pooled(*(Medians(tuple(row), (0.0,) * len(row)) for row in sides)) for sides in rows]
    return Suite(seconds, cycles, stored, identical, frozenset(changed.tolist()), truth)


def _strays(rng: np.random.Generator, shape: tuple[int, ...], memory: float) -> Floats:
    """Draw the deviations of samples: a tail to the right, as launches have; neighbours alike by `memory`."""
    steps = rng.standard_normal((*shape, SAMPLES))
    for place in range(1, SAMPLES) if memory else ():
        steps[..., place] = memory * steps[..., place - 1] + np.sqrt(1 - memory**2) * steps[..., place]
    return WITHIN * np.abs(steps)


def judged_suite(suite: Suite, design: Design, rules: VerdictRules = RULES) -> tuple[list[Judgement], list[int]]:
    """Return the judgement of every case, and in how many processes a side it was measured."""
    cases, counts = len(suite.truth), [design.first] * len(suite.truth)
    looks = looks_of(design.first, design.most)
    rules = replace(rules, looks=len(looks))
    found = _look(suite, counts, design.stored, rules)
    for processes in looks[1:]:
        undecided = [case for case in range(cases) if following(found[case])]
        if not undecided:
            break
        for case in undecided:
            counts[case] = processes
        found = _look(suite, counts, design.stored, rules)
    return found, counts


def _look(suite: Suite, counts: Sequence[int], stored: bool, rules: VerdictRules) -> list[Judgement]:
    pairs = []
    for case, count in enumerate(counts):
        a, b, *clocked = suite.first(case, count)
        pairs.append(Pair(a, b, (clocked[0], clocked[1]), suite.known[case] if stored else None))
    control = control_of({str(case): pairs[case] for case in suite.identical})
    shifts = [control.fit.at(pair.a.typical) if control.used else MachineShift() for pair in pairs]
    return judged(pairs, rules, control.widening, shifts)
