"""Boards of one kind: what they measured of the same code, factors between them, and A/A over boards."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from math import exp, expm1, hypot, inf, log1p, sqrt
from statistics import fmean
from typing import Generic, TypeVar

import numpy
from numpy.typing import NDArray

from prism_bench.analysis.compare.comparable import SOFTWARE, value_settings
from prism_bench.analysis.compare.estimate import quantile
from prism_bench.analysis.compare.verdict import RULES
from prism_bench.analysis.distributions import binomial_tail
from prism_bench.io.documents import json_line
from prism_bench.record.identity import BoardTable
from prism_bench.record.store import History
from prism_bench.record.store.points import Facts
from prism_bench.units import share_text

# What boards of one kind measured of the same code: log medians by unit and session.
#
# A unit is a case with one machine code, under one driver, toolkit and protocol: its time is one number, whichever
# board takes it. A session is what one board measured in one run.

Ints = NDArray[numpy.int64]
Floats = NDArray[numpy.float64]
_Thing = TypeVar("_Thing")
_Unit = tuple[str, str, int]  # case, code, surroundings
_Row = tuple[int, str, _Unit, float]


@dataclass(frozen=True, eq=False)
class Observations:
    """Trusted medians of one machine, backend and metric, one a row.

    `units`, `sessions` and `boards` number the rows' units, sessions and boards, the latter in `names`; `logs` are the
    natural logs of the medians in seconds. `cases` has the case of each unit, `records` the place in the history of
    each session's record.
    """

    names: tuple[str, ...]
    cases: tuple[str, ...]
    records: tuple[int, ...]
    units: Ints
    sessions: Ints
    boards: Ints
    logs: Floats

    def rows(self, chosen: NDArray[numpy.bool_]) -> "Observations":
        """Return the chosen rows, with the same numbers."""
        units, sessions, boards = (column[chosen] for column in (self.units, self.sessions, self.boards))
        return Observations(self.names, self.cases, self.records, units, sessions, boards, self.logs[chosen])


def _machines_of(history: History) -> list[tuple[str, str]]:
    """Return machine and backend of the records, each pair once: a machine's name is that of its kind of GPU."""
    return list(dict.fromkeys((facts.machine, facts.backend) for facts in history.records))


def several_boards(records: Sequence[Facts]) -> bool:
    """Return whether more than one board is behind the records."""
    return len({board for facts in records for board in facts.device.split("+") if board}) > 1


def observed(history: History, metric: str) -> Observations:
    """Return what the history's boards measured in `metric`; its records are of one machine and backend.

    Medians that are not trusted, or of code that is not known, are left out.
    """
    rows = list(_observed_rows(history, metric))
    names, cases, runs = _Numbers[str](), _Numbers[_Unit](), _Numbers[tuple[int, str]]()
    boards, units, sessions = list[int](), list[int](), list[int]()
    for record, board, unit, _ in rows:
        boards.append(names.of(board))
        units.append(cases.of(unit))
        sessions.append(runs.of((record, board)))
    logs = numpy.log(numpy.array([row[3] for row in rows], "f8"))
    return Observations(
        tuple(names.known),
        tuple(unit[0] for unit in cases.known),
        tuple(run[0] for run in runs.known),
        numpy.array(units, "i8"),
        numpy.array(sessions, "i8"),
        numpy.array(boards, "i8"),
        logs,
    )


class _Numbers(Generic[_Thing]):
    """Numbers of things, in the order in which they first come."""

    def __init__(self) -> None:
        self.known: dict[_Thing, int] = {}

    def of(self, thing: _Thing) -> int:
        """Return its number."""
        return self.known.setdefault(thing, len(self.known))


def _observed_rows(history: History, metric: str) -> Iterator[_Row]:
    """Yield record, board, unit and seconds of every point of a known board, and of the anchors of several."""
    points = history.table
    known = {code for code in points.vocabulary["code"] if code}
    wanted = points.rows_with({"metric": {metric}, "subject": {"kernel"}, "doubt": {""}, "code": known})
    points = points.chosen(wanted & (points.columns["value"] > 0))
    around = _surroundings(history.records)
    places: list[int] = points.columns["record"].tolist()
    seconds: list[float] = points.columns["value"].tolist()
    cases, codes, boards = (points.texts(name) for name in ("case", "code", "board"))
    for record, case, code, board, value in zip(places, cases, codes, boards, seconds, strict=True):
        unit = case, code, around[record]
        if board:
            yield record, board, unit, value
        for other, anchors in history.records[record].anchors.items():
            own = anchors.get(case, {}).get(metric, 0.0)
            if own > 0:
                yield record, other, unit, own


def _surroundings(records: Sequence[Facts]) -> list[int]:
    """Return a number for the software and the protocol of each record: the same where times may be compared."""
    numbers = _Numbers[str]()
    found: list[int] = []
    for facts in records:
        software = {name: version for name, version in facts.software.items() if name.startswith(SOFTWARE)}
        found.append(numbers.of(json_line([software, value_settings(facts.protocol)])))
    return found


# Sessions of one board: what its runs differ by, of which a difference between two boards must be more.
#
# Sessions and units are fitted in turn, by Huber's weighted means, which few odd cases do not move.

_TURNS, _HUBER = 50, 1.345
_SAME = 1e-9
_ONE_IN_TWENTY = 1.6449  # standard deviations beyond which one normal value in twenty is


@dataclass(frozen=True)
class SessionSpread:
    """What sessions of one board differ by: `sigma` as a whole and `noise` of one unit, as standard deviations of logs.

    `memory` is the correlation of a session with the next one of its board; `freedom` what sigma was learned from.
    `own` has the noise of units that are noisier than others.
    """

    sigma: float = 0.0
    noise: float = 0.0
    memory: float = 0.0
    freedom: float = 0.0
    own: Mapping[int, float] = field(default_factory=dict[int, float])

    def noise_of(self, unit: int) -> float:
        """Return what two sessions differ by in a unit: as in all units, or more where that is one of the noisy."""
        return max(self.noise, self.own.get(unit, 0.0))

    def between(self, unit: int) -> float:
        """Return what a unit's times of two sessions on one board differ by, with what the sessions do."""
        return hypot(self.sigma, self.noise_of(unit))

    def independent(self, count: float) -> float:
        """Return how many independent sessions so many in a row are worth."""
        return max(1.0, count * (1 - self.memory) / (1 + self.memory))


def _runs_of(seen: Observations) -> SessionSpread:
    """Return what sessions of one board differ by, from all boards with several sessions of the same units."""
    squares = products = 0.0
    freedom, left, residuals, fitted = 0, 0, list[Floats](), list[Ints]()
    for board in range(len(seen.names)):
        own = seen.rows(seen.boards == board)
        effects, rest, groups = _two_way(own.units, own.sessions, own.logs)
        residuals.append(rest)
        fitted.append(own.units)
        left += len(rest) - len(set(own.units.tolist())) - len(effects) + groups
        values = numpy.array([effects[session] for session in sorted(effects, key=lambda one: seen.records[one])])
        squares += float(values @ values)
        products += float(values[1:] @ values[:-1])
        freedom += len(effects) - groups
    if freedom < 1 or left < 1:
        return SessionSpread()
    memory = products / squares if squares else 0.0
    memory += (1 + 4 * memory) / (freedom + 1)  # Kendall 1954, as in `trend.runs`
    rest = numpy.concatenate(residuals)
    noise = 1.4826 * float(numpy.median(numpy.abs(rest))) * sqrt(len(rest) / left)
    own = _noise_by_unit(fitted, rest, noise)
    return SessionSpread(sqrt(squares / freedom), noise, min(max(memory, 0.0), 0.9), freedom, own)


def _noise_by_unit(fitted: Sequence[Ints], residuals: Floats, usual: float) -> dict[int, float]:
    """Return the noise of each unit that is noisier than the `usual`, beyond what one unit in twenty is by chance.

    Freedom is how many more residuals a unit has than levels were fitted to it, one on each board.
    """
    units, levels = numpy.concatenate(fitted), numpy.concatenate([numpy.unique(one) for one in fitted])
    freedom = numpy.bincount(units) - numpy.bincount(levels)
    variances = numpy.bincount(units, residuals**2) / numpy.maximum(freedom, 1)
    spread = 2 / (9 * numpy.maximum(freedom, 1))
    # The quantile of a chi-square by E. B. Wilson and M. M. Hilferty, PNAS 17, 1931.
    most = usual**2 * (1 - spread + _ONE_IN_TWENTY * numpy.sqrt(spread)) ** 3
    noisy = numpy.flatnonzero((freedom > 0) & (variances > most))
    return dict(zip(noisy.tolist(), numpy.sqrt(variances[noisy]).tolist(), strict=True))


def _two_way(units: Ints, sessions: Ints, logs: Floats) -> tuple[dict[int, float], Floats, int]:
    """Return the effect of each session, the residuals, and how many groups of sessions share no unit.

    By Huber's weighted means of rows and columns in turn; the effects of a group have the mean 0.
    """
    if not len(logs):
        return {}, logs, 0
    known, session = numpy.unique(sessions, return_inverse=True)
    _, unit = numpy.unique(units, return_inverse=True)
    group = _groups(unit, session, len(known))
    effects, levels, weights = numpy.zeros(len(known)), numpy.zeros(int(unit.max()) + 1), numpy.ones(len(logs))
    for _ in range(_TURNS):
        before = effects
        levels = _means(unit, logs - effects[session], weights)
        effects = _means(session, logs - levels[unit], weights)
        effects = effects - _means(group, effects, numpy.ones(len(known)))[group]
        away = numpy.abs(logs - levels[unit] - effects[session])
        scale = max(1.4826 * float(numpy.median(away)), _SAME)
        weights = numpy.minimum(1.0, _HUBER * scale / numpy.maximum(away, _SAME))
        if float(numpy.max(numpy.abs(effects - before))) < _SAME:
            break
    return (
        dict(zip(known.tolist(), effects.tolist(), strict=True)),
        logs - levels[unit] - effects[session],
        int(group.max()) + 1,
    )


def _means(places: Ints, values: Floats, weights: Floats) -> Floats:
    return numpy.bincount(places, values * weights) / numpy.maximum(numpy.bincount(places, weights), _SAME)


def _groups(unit: Ints, session: Ints, count: int) -> Ints:
    """Return the group of each session: two that measured one unit are in one group."""
    group = numpy.arange(count)
    while True:
        least = numpy.full(int(unit.max()) + 1, count)
        numpy.minimum.at(least, unit, group[session])
        found = group.copy()
        numpy.minimum.at(found, session, least[unit])
        if (found == group).all():
            return numpy.unique(group, return_inverse=True)[1]
        group = found


# Factors between boards of one kind, and how well they are known.
#
# The log of a time is the level of its unit (case, code, surroundings), plus an effect of the board, plus one of the
# board on this case, plus one of the session, plus noise: a two-way layout (J. W. Tukey, Exploratory Data Analysis,
# 1977, chapter 10) with random effects of sessions and of cases. Two boards are compared by the units that both
# measured, unit by unit, by medians. The error has three parts: sessions of one board differ (learned from boards with
# several runs; less, the more runs there are), cases differ in how they respond to a board (a case that both boards
# measured is drawn to what it showed there, by the ratio of variances: G. K. Robinson, "That BLUP is a good thing",
# Statistical Science 6, 1991), and few units show the usual response badly. Student's t with the degrees of freedom of
# the first part accounts for how well the errors themselves are known. A case whose runs differ by more than those of
# others do has the noise that it showed: launches of a few microseconds are an example.

_CHANCE = 0.0005  # on either side, that a factor is off by more than its reach
# Boards of one kind differ by 8 % on average and by 22 % at most (P. Sinha et al., "Not all GPUs are created equal",
# SC 2022): half of the latter as a standard error of what nobody measured.
_UNMEASURED = 0.11
_FEWEST = 3  # units that both boards measured
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
    error: float = _UNMEASURED
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
        return _at(1 - _CHANCE, self.freedom) * self.error

    @property
    def sure_error(self) -> float:
        """The standard error of a normal variable with the same reach: for those that know no degrees of freedom."""
        return self.reach / _at(1 - _CHANCE, inf)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the interval of the ratio."""
        half = _at((1 + confidence) / 2, self.freedom) * self.error
        return exp(self.log - half), exp(self.log + half)


_SAME_BOARD = BoardFactor(error=0.0)


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
        self.seen, self.runs = seen, _runs_of(seen)
        self._places = {name: place for place, name in enumerate(seen.names)}
        self._pairs: dict[tuple[int, int], BoardPair] = {}
        self._medians = [_medians(seen.rows(seen.boards == board)) for board in range(len(seen.names))]

    @property
    def boards(self) -> tuple[str, ...]:
        """The UUIDs of the boards, in the order in which they first measured something."""
        return self.seen.names

    def factor(self, case: str, first: str, second: str) -> BoardFactor:
        """Return by how much the case takes longer on the second board than on the first."""
        return _SAME_BOARD if first == second else self.pair(first, second).of(case)

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
        if len(both) < _FEWEST:
            return BoardPair(replace(seen, reason=f"they share fewer than {_FEWEST} cases of one machine code"))
        if not self.runs.freedom:
            return BoardPair(replace(seen, reason=_ONE_RUN))
        logs = numpy.array([b[unit][0] - a[unit][0] for unit in both])
        noise = numpy.array(
            [_OF_MEDIANS * self.runs.noise_of(unit) ** 2 * (1 / a[unit][1] + 1 / b[unit][1]) for unit in both]
        )
        usual, spread = _usual(logs)
        of_sessions = self.runs.sigma * sqrt(_OF_MEDIANS * sum(1 / self.runs.independent(count) for count in counts))
        factor = replace(
            seen,
            log=usual,
            error=hypot(of_sessions, spread * sqrt(_OF_MEDIANS / len(both))),
            freedom=self.runs.freedom,
            scatter=sqrt(max(spread**2 - float(numpy.median(noise)), 0.0)),
            between_runs=hypot(self.runs.sigma, self.runs.noise),
        )
        return BoardPair(factor, self._by_case(both, logs, noise), of_sessions)

    def _by_case(self, units: list[int], logs: Floats, noise: Floats) -> dict[str, _CaseShown]:
        """Return the mean of the logs of each case's units, its variance, and the noisiest of the units."""
        found: dict[str, list[_CaseShown]] = {}
        for unit, shown, variance in zip(units, logs.tolist(), noise.tolist(), strict=True):
            found.setdefault(self.seen.cases[unit], []).append(_CaseShown(shown, variance, self.runs.between(unit)))
        return {
            case: _CaseShown(
                fmean(one.log for one in own),
                fmean(one.variance for one in own) / len(own),
                max(one.between_runs for one in own),
            )
            for case, own in found.items()
        }

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


# A/A over boards: how often one machine code on two boards would be called changed, with and without the factors.
#
# Every session is judged once against each other board: the factor is learned anew without it, so that no time is
# judged by what it was learned from.

_MOST_SESSIONS = 200  # the newest; each is one more fit


@dataclass(frozen=True)
class BoardAgreement:
    """Verdicts on one machine code over two boards: how many were `given`, and `false` among them.

    `withheld` are those where the factor is not known. `plain` is how many of all would be called changed if boards
    were taken for alike, by the same rule.
    """

    given: int = 0
    false: int = 0
    withheld: int = 0
    plain: int = 0

    @property
    def rate(self) -> float | None:
        """The share of false verdicts among those given; None without any."""
        return self.false / self.given if self.given else None

    @property
    def plain_rate(self) -> float | None:
        """The share of all that would be called changed without factors; None without any."""
        total = self.given + self.withheld
        return self.plain / total if total else None

    def __add__(self, other: "BoardAgreement") -> "BoardAgreement":
        """Return the verdicts of both."""
        return BoardAgreement(
            self.given + other.given, self.false + other.false, self.withheld + other.withheld, self.plain + other.plain
        )


def agreement(seen: Observations) -> BoardAgreement:
    """Return the verdicts on every session of the newest against every other board."""
    found = BoardAgreement()
    sessions: list[int] = numpy.unique(seen.sessions).tolist()
    newest = sorted(sessions, key=seen.records.__getitem__, reverse=True)[:_MOST_SESSIONS]
    for session in newest if len(seen.names) > 1 else ():
        held = seen.sessions == session
        model = BoardModel(seen.rows(~held))
        board = seen.names[int(seen.boards[held][0])]
        others = [name for name in seen.names if name != board]
        for other, (unit, log_seconds) in product(others, _rows(seen.rows(held))):
            found += _verdict(model, unit, log_seconds, (board, other))
    return found


def _rows(own: Observations) -> Iterator[tuple[int, float]]:
    yield from zip(own.units.tolist(), own.logs.tolist(), strict=True)


def _verdict(model: BoardModel, unit: int, log_seconds: float, boards: tuple[str, str]) -> BoardAgreement:
    """Return the verdict on one session's time of a unit against the other board's median of it."""
    known = model.median(boards[1], unit)
    if known is None:
        return BoardAgreement()
    median, runs = known
    factor = model.factor(model.seen.cases[unit], boards[1], boards[0])
    between = model.runs.between(unit) * (1 + 1 / runs) ** 0.5
    plain = is_change(log_seconds - median, BoardFactor(error=0.0), between)
    if not factor.known:
        return BoardAgreement(withheld=1, plain=int(plain))
    return BoardAgreement(1, int(is_change(log_seconds - median - factor.log, factor, between)), 0, int(plain))


def is_change(log_ratio: float, factor: BoardFactor, between: float) -> bool:
    """Return whether a ratio that the factor was taken out of is beyond its errors, and worth a report."""
    limit = quantile(1 - RULES.discoveries / 2, min(factor.freedom, 1e6) if factor.freedom != inf else 1e6)
    return abs(log_ratio) > max(log1p(RULES.least), limit * hypot(factor.error, between))


# What the history knows of the boards of one machine: their factors in every metric, learned when they are needed.

RECENT = 256  # records that factors are learned from: boards age


class KnownBoards:
    """The boards behind the newest records of one machine (that is, of one kind of GPU) and backend.

    `history` is read when the first factor is needed; most comparisons need none.
    """

    def __init__(self, history: Callable[[], History], machine: str, backend: str) -> None:
        self._history, self._owner = history, (machine, backend)
        self._models: dict[str, BoardModel] = {}
        self._own: History | None = None

    def model(self, metric: str) -> BoardModel:
        """Return the model of the metric."""
        if metric not in self._models:
            self._models[metric] = BoardModel(observed(self.own(), metric))
        return self._models[metric]

    def own(self) -> History:
        """Return the records of the machine and backend that were measured last, in the order of measuring."""
        if self._own is None:
            history = self._history()
            places = [
                place for place, facts in enumerate(history.records) if (facts.machine, facts.backend) == self._owner
            ]
            places.sort(key=lambda place: history.records[place].created)
            self._own = history.part(places[-RECENT:])
        return self._own

    def factor(self, metric: str, case: str, first: str, second: str) -> BoardFactor:
        """Return by how much the case takes longer on the second board than on the first."""
        return self.model(metric).factor(case, first, second)


# The boards of each kind of GPU: what is known of them, their anchors, the factors between them, and A/A over them.

# Kernels that every board measures in every run, by what limits them: the `ceiling` of their specs.
ANCHORS = {"launch": "null", "bandwidth": "copy", "read_bandwidth": "read", "fp32": "FMA", "tensor": "tensor"}
PROMISED = 0.005  # of verdicts on one machine code over two boards
_BY_CHANCE = 0.01


@dataclass(frozen=True)
class BoardRow:
    """One board: its `facts`, in how many `runs` it measured something, the newest one, and its `anchors`.

    An anchor is the board's time over the mean of all boards that measured the same.
    """

    uuid: str
    facts: BoardTable
    runs: int
    newest: str
    anchors: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True)
class BoardKind:
    """The boards of one machine (that is, of one kind of GPU) and backend, in one metric.

    `pairs` are the factors of the second of two boards against the first. `missing` are the anchors that no kernel of
    the catalogue measures, or that no board has a time of.
    """

    machine: str
    backend: str
    metric: str
    boards: tuple[BoardRow, ...]
    pairs: Mapping[tuple[str, str], BoardFactor]
    agreement: BoardAgreement
    missing: tuple[str, ...] = ()

    @property
    def broken(self) -> bool:
        """Whether A/A over boards calls more changes than PROMISED, beyond chance."""
        found = self.agreement
        return bool(found.false) and binomial_tail(found.false - 1, found.given, PROMISED) < _BY_CHANCE


def kinds(history: History, metric: str, anchors: Mapping[str, str]) -> Iterator[BoardKind]:
    """Yield the boards of each machine and backend; `anchors` has the ceiling of each kernel with one."""
    for machine, backend in _machines_of(history):
        known = KnownBoards(lambda: history, machine, backend)
        model = known.model(metric)
        if model.boards:
            rows = tuple(_kinds_rows(known.own(), model, anchors))
            pairs = {pair: model.pair(*pair).factor for pair in combinations(model.boards, 2)}
            seen = {kind for row in rows for kind in row.anchors}
            missing = tuple(name for name in ANCHORS.values() if name not in seen) if len(rows) > 1 else ()
            yield BoardKind(machine, backend, metric, rows, pairs, agreement(model.seen), missing)


def _kinds_rows(own: History, model: BoardModel, anchors: Mapping[str, str]) -> Iterator[BoardRow]:
    facts = {str(board["uuid"]): board for record in own.records for board in record.boards}
    levels = _levels(model, anchors)
    for board, uuid in enumerate(model.boards):
        chosen: list[int] = model.seen.sessions[model.seen.boards == board].tolist()
        records = sorted({model.seen.records[session] for session in chosen})
        yield BoardRow(
            uuid, facts.get(uuid, {"uuid": uuid}), len(records), own.records[records[-1]].created, levels[uuid]
        )


def _levels(model: BoardModel, anchors: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """Return each board's anchors: its times over the mean of the boards that measured the same units."""
    logs: dict[str, dict[str, list[float]]] = {uuid: {} for uuid in model.boards}
    for unit, case in enumerate(model.seen.cases):
        kind = anchors.get(case.partition("[")[0].partition(":")[0])
        measured = {uuid: known[0] for uuid in model.boards if (known := model.median(uuid, unit))}
        if kind in ANCHORS and len(measured) > 1:
            for uuid, log in measured.items():
                logs[uuid].setdefault(ANCHORS[kind], []).append(log - fmean(measured.values()))
    return {uuid: {kind: exp(fmean(own)) for kind, own in found.items()} for uuid, found in logs.items()}
