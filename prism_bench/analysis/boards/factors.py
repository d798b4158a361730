"""Factors between boards of one kind, and how well they are known.

The log of a time is the level of its unit (case, code, surroundings), plus an effect of the board, plus one of the
board on this case, plus one of the session, plus noise: a two-way layout (J. W. Tukey, Exploratory Data Analysis, 1977,
chapter 10) with random effects of sessions and of cases. Two boards are compared by the units that both measured,
unit by unit, by medians. The error has three parts: sessions of one board differ (learned from boards with several
runs; less, the more runs there are), cases differ in how they respond to a board (a case that both boards measured is
drawn to what it showed there, by the ratio of variances: G. K. Robinson, "That BLUP is a good thing", Statistical
Science 6, 1991), and few units show the usual response badly. Student's t with the degrees of freedom of the
first part accounts for how well the errors themselves are known. A case whose runs differ by more than those of
others do has the noise that it showed: launches of a few microseconds are an example.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import exp, expm1, hypot, inf, sqrt
from statistics import fmean

import numpy

from prism_bench.analysis.boards.observed import Floats, Observations
from prism_bench.analysis.boards.sessions import runs_of
from prism_bench.analysis.compare.estimate import quantile
from prism_bench.units import share_text

CHANCE = 0.0005  # on either side, that a factor is off by more than its reach
# Boards of one kind differ by 8 % on average and by 22 % at most (P. Sinha et al., "Not all GPUs are created equal",
# SC 2022): half of the latter as a standard error of what nobody measured.
UNMEASURED = 0.11
FEWEST = 3  # units that both boards measured
_OF_MEDIANS = 1.5708  # variance of a median over that of a mean of as many
_OUTER, _SIGMAS = 0.95, 1.96
_ONE_RUN = "no board was measured in two runs of one code, so what a board differs by from itself is not known"


@dataclass(frozen=True)
class BoardFactor:
    """By how much a board takes longer than another one: the `log` of its ratio, its standard `error` and `freedom`.

    `scatter` is by how much cases differ in it, and `between_runs` what two runs differ by on one board, both as
    standard deviations of the log. `runs` are those behind the factor on each board, `units` what both measured.
    Without a `reason` it is known; otherwise the log is 0 and the error that of boards which nobody compared.
    """

    log: float = 0.0
    error: float = UNMEASURED
    freedom: float = inf
    scatter: float = 0.0
    between_runs: float = 0.0
    runs: tuple[int, int] = (0, 0)
    units: int = 0
    reason: str | None = None

    @property
    def known(self) -> bool:
        """Whether it was measured well enough to be used."""
        return self.reason is None

    @property
    def ratio(self) -> float:
        """The times of the second board over those of the first."""
        return exp(self.log)

    @property
    def reach(self) -> float:
        """By how much its log may be off, but for CHANCE on either side."""
        return _at(1 - CHANCE, self.freedom) * self.error

    @property
    def sure_error(self) -> float:
        """The standard error of a normal variable with the same reach: for those that know no degrees of freedom."""
        return self.reach / _at(1 - CHANCE, inf)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the interval of the ratio."""
        half = _at((1 + confidence) / 2, self.freedom) * self.error
        return exp(self.log - half), exp(self.log + half)


SAME_BOARD = BoardFactor(error=0.0)


def _at(chance: float, freedom: float) -> float:
    """Return the quantile of Student's t; of the normal distribution where `freedom` is infinite."""
    return quantile(chance, min(freedom, 1e6))


@dataclass(frozen=True)
class _CaseShown:
    """What two boards showed of a case: the log of their ratio, its variance, and what two runs of it differ by."""

    log: float
    variance: float
    between_runs: float


@dataclass(frozen=True)
class BoardPair:
    """What two boards showed of each other: the usual `factor`, and what they showed of single cases."""

    factor: BoardFactor
    cases: Mapping[str, _CaseShown] = field(default_factory=dict[str, _CaseShown])
    sessions_error: float = 0.0

    def of(self, case: str) -> BoardFactor:
        """Return the factor of a case: drawn to what both boards showed of it, else the usual one with its scatter."""
        usual = self.factor
        if not usual.known:
            return usual
        variance = usual.scatter**2
        shown = self.cases.get(case, _CaseShown(usual.log, inf, usual.between_runs))
        share = variance / (variance + shown.variance) if variance + shown.variance > 0 else 0.0
        rest = (1 - share) * variance * (1 + _OF_MEDIANS / usual.units)
        error = hypot(self.sessions_error, sqrt(rest)) if variance else usual.error
        log_ratio = usual.log + share * (shown.log - usual.log)
        found = replace(usual, log=log_ratio, error=error, between_runs=shown.between_runs)
        if found.reach < BoardFactor().reach:
            return found
        return BoardFactor(
            runs=usual.runs, units=usual.units, reason=f"it may be off by {share_text(expm1(found.reach))}"
        )


class BoardModel:
    """The boards of one machine, backend and metric."""

    def __init__(self, seen: Observations) -> None:
        self.seen, self.runs = seen, runs_of(seen)
        self._places = {name: place for place, name in enumerate(seen.names)}
        self._pairs: dict[tuple[int, int], BoardPair] = {}
        self._medians = [_medians(seen.rows(seen.boards == board)) for board in range(len(seen.names))]

    @property
    def boards(self) -> tuple[str, ...]:
        """The UUIDs of the boards, in the order in which they first measured something."""
        return self.seen.names

    def factor(self, case: str, first: str, second: str) -> BoardFactor:
        """Return by how much the case takes longer on the second board than on the first."""
        return SAME_BOARD if first == second else self.pair(first, second).of(case)

    def median(self, board: str, unit: int) -> tuple[float, int] | None:
        """Return the median log of a unit on a board, and in how many sessions it was measured; None without one."""
        return self._medians[self._places[board]].get(unit)

    def pair(self, first: str, second: str) -> BoardPair:
        """Return what is known of the second board against the first."""
        if first not in self._places or second not in self._places:
            missing = second if first in self._places else first
            return BoardPair(BoardFactor(reason=f"the history has no trusted time of board {missing}"))
        places = self._places[first], self._places[second]
        if places not in self._pairs:
            self._pairs[places] = self._compared(*places)
        return self._pairs[places]

    def _compared(self, first: int, second: int) -> BoardPair:
        a, b = self._medians[first], self._medians[second]
        both = sorted(a.keys() & b.keys())
        counts = self._sessions(first, both), self._sessions(second, both)
        seen = BoardFactor(units=len(both), runs=(round(counts[0]), round(counts[1])))
        if len(both) < FEWEST:
            return BoardPair(replace(seen, reason=f"they share fewer than {FEWEST} cases of one machine code"))
        if not self.runs.freedom:
            return BoardPair(replace(seen, reason=_ONE_RUN))
        logs = numpy.array([b[unit][0] - a[unit][0] for unit in both])
        noise = numpy.array(
            [_OF_MEDIANS * self.runs.noise_of(unit) ** 2 * (1 / a[unit][1] + 1 / b[unit][1]) for unit in both]
        )
        usual, spread = _usual(logs)
        of_sessions = self.runs.sigma * sqrt(_OF_MEDIANS * sum(1 / self.runs.independent(count) for count in counts))
        factor = replace(
            seen, log=usual, error=hypot(of_sessions, spread * sqrt(_OF_MEDIANS / len(both))),
            freedom=self.runs.freedom, scatter=sqrt(max(spread**2 - float(numpy.median(noise)), 0.0)),
            between_runs=hypot(self.runs.sigma, self.runs.noise),
        )  # fmt: skip
        return BoardPair(factor, self._by_case(both, logs, noise), of_sessions)

    def _by_case(self, units: list[int], logs: Floats, noise: Floats) -> dict[str, _CaseShown]:
        """Return the mean of the logs of each case's units, its variance, and the noisiest of the units."""
        found: dict[str, list[_CaseShown]] = {}
        for unit, shown, variance in zip(units, logs.tolist(), noise.tolist(), strict=True):
            found.setdefault(self.seen.cases[unit], []).append(_CaseShown(shown, variance, self.runs.between(unit)))
        return {
            case: _CaseShown(
                fmean(one.log for one in own), fmean(one.variance for one in own) / len(own),
                max(one.between_runs for one in own),
            )
            for case, own in found.items()
        }  # fmt: skip

    def _sessions(self, board: int, units: list[int]) -> float:
        """Return how many sessions of the board are behind the units, each weighted by how many of them it measured."""
        chosen = (self.seen.boards == board) & numpy.isin(self.seen.units, units)
        counts = numpy.bincount(self.seen.sessions[chosen]).astype(float)
        return float(counts.sum() ** 2 / (counts @ counts)) if counts.any() else 0.0


def _medians(own: Observations) -> dict[int, tuple[float, int]]:
    """Return the median log of each unit that a board measured, and in how many sessions it did."""
    order = numpy.argsort(own.units, kind="stable")
    units, logs = own.units[order], own.logs[order]
    bounds = numpy.flatnonzero(numpy.diff(units)) + 1
    pieces = numpy.split(logs, bounds) if len(logs) else []
    return {
        int(unit): (float(numpy.median(piece)), len(piece))
        for unit, piece in zip(numpy.unique(units), pieces, strict=True)
    }


def _usual(logs: Floats) -> tuple[float, float]:
    """Return the median, and the standard deviation about it with which at least OUTER are within 1.96 of it."""
    usual = float(numpy.median(logs))
    away = numpy.abs(logs - usual)
    outer = float(numpy.quantile(away, _OUTER, method="higher")) / _SIGMAS
    return usual, max(1.4826 * float(numpy.median(away)), outer)
