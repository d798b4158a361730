"""Boards of one kind of GPU: measurements of the same code, factors between boards, and A/A over boards."""

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
from prism_bench.io.documents import json_line
from prism_bench.measure.distributions import binomial_tail
from prism_bench.record.identity import BoardTable
from prism_bench.record.store import History
from prism_bench.record.store.points import Facts
from prism_bench.units import share_text

# Measurements of boards of one kind: log medians by unit and session.
#
# A unit is a case with one machine code, under one driver, toolkit and protocol. A session is the measurements of one
# board in one run.

Ints = NDArray[numpy.int64]
Floats = NDArray[numpy.float64]
_Item = TypeVar("_Item")
_Unit = tuple[str, str, int]  # case, code, surroundings


@dataclass(frozen=True, eq=False)
class Observations:
    """Trusted medians of one machine, backend and metric, each a row.

    `units`, `sessions` and `boards` number the rows' units, sessions and boards, the latter in `names`; `logs` are the
    natural logs of the medians in seconds. `cases` has the case of each unit, `records` the position of each session's
    record in the history.
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


def several_boards(records: Sequence[Facts]) -> bool:
    """Return whether more than one board is behind the records."""
    return len({board for facts in records for board in facts.device.split("+") if board}) > 1


def observed(history: History, metric: str) -> Observations:
    """Return the measurements of the history's boards in `metric`; its records are of one machine and backend.

    Medians that are not trusted, or of unknown code, are left out.
    """
    rows = list(_observed_rows(history, metric))
    names, units, runs = _Numbers[str](), _Numbers[_Unit](), _Numbers[tuple[int, str]]()
    return Observations(
        boards=numpy.array([names.of(board) for _, board, _, _ in rows], "i8"),
        units=numpy.array([units.of(unit) for _, _, unit, _ in rows], "i8"),
        sessions=numpy.array([runs.of((record, board)) for record, board, _, _ in rows], "i8"),
        logs=numpy.log(numpy.array([seconds for *_, seconds in rows], "f8")),
        names=tuple(names.known),
        cases=tuple(case for case, _, _ in units.known),
        records=tuple(record for record, _ in runs.known),
    )


class _Numbers(Generic[_Item]):
    """Numbers of items, in the order of their first appearance."""

    def __init__(self) -> None:
        self.known: dict[_Item, int] = {}

    def of(self, item: _Item) -> int:
        """Return the item's number."""
        return self.known.setdefault(item, len(self.known))


def _observed_rows(history: History, metric: str) -> Iterator[tuple[int, str, _Unit, float]]:
    """Yield record, board, unit and seconds of every point of a known board, and of the anchors of several boards."""
    points = history.table
    known = {code for code in points.vocabulary["code"] if code}
    wanted = points.rows_with({"metric": {metric}, "subject": {"kernel"}, "doubt": {""}, "code": known})
    points = points.chosen(wanted & (points.columns["value"] > 0))
    numbers = _Numbers[str]()
    surroundings: list[int] = []  # of each record: equal if times may be compared
    for facts in history.records:
        software = {name: version for name, version in facts.software.items() if name.startswith(SOFTWARE)}
        surroundings.append(numbers.of(json_line([software, value_settings(facts.protocol)])))
    positions: list[int] = points.columns["record"].tolist()
    times: list[float] = points.columns["value"].tolist()
    cases, codes, boards = (points.texts(name) for name in ("case", "code", "board"))
    for record, case, code, board, seconds in zip(positions, cases, codes, boards, times, strict=True):
        unit = case, code, surroundings[record]
        if board:
            yield record, board, unit, seconds
        for other, anchors in history.records[record].anchors.items():
            anchor = anchors.get(case, {}).get(metric, 0.0)
            if anchor > 0:
                yield record, other, unit, anchor


# Sessions of one board: the scatter of its runs, which a difference between two boards must exceed.
#
# Sessions and units are fitted in turn, by Huber's weighted means, which resist a few odd cases.

_TURNS, _HUBER = 50, 1.345
_SAME = 1e-9
_ONE_IN_TWENTY = 1.6449  # standard deviations that one normal value in twenty exceeds


@dataclass(frozen=True)
class _SessionSpread:
    """Scatter of the sessions of a board: `sigma` of all units and `noise` of one unit, as standard deviations of logs.

    `memory` is the correlation of a session with the board's next session; `freedom` the degrees of freedom of sigma.
    `noisy` has the noise of units that are noisier than the others.
    """

    sigma: float = 0.0
    noise: float = 0.0
    memory: float = 0.0
    freedom: float = 0.0
    noisy: Mapping[int, float] = field(default_factory=dict[int, float])

    def noise_of(self, unit: int) -> float:
        """Return the noise of a unit: that of all units, or more if the unit is noisy."""
        return max(self.noise, self.noisy.get(unit, 0.0))

    def between(self, unit: int) -> float:
        """Return the standard deviation between two sessions of a unit on one board."""
        return hypot(self.sigma, self.noise_of(unit))

    def independent(self, count: float) -> float:
        """Return the number of independent sessions that are worth `count` sessions in a row."""
        return max(1.0, count * (1 - self.memory) / (1 + self.memory))


def _runs_of(seen: Observations) -> _SessionSpread:
    """Return the scatter of sessions, from all boards with several sessions of the same units."""
    squares = products = 0.0
    freedom, left, residuals, fitted = 0, 0, list[Floats](), list[Ints]()
    for board in range(len(seen.names)):
        rows = seen.rows(seen.boards == board)
        effects, rest, groups = _two_way(rows.units, rows.sessions, rows.logs)
        residuals.append(rest)
        fitted.append(rows.units)
        left += len(rest) - len(set(rows.units.tolist())) - len(effects) + groups
        values = numpy.array([effects[session] for session in sorted(effects, key=seen.records.__getitem__)])
        squares += float(values @ values)
        products += float(values[1:] @ values[:-1])
        freedom += len(effects) - groups
    if freedom < 1 or left < 1:
        return _SessionSpread()
    memory = products / squares if squares else 0.0
    memory += (1 + 4 * memory) / (freedom + 1)  # Kendall 1954, as in `trend.runs`
    rest = numpy.concatenate(residuals)
    noise = 1.4826 * float(numpy.median(numpy.abs(rest))) * sqrt(len(rest) / left)
    noisy = _noise_by_unit(fitted, rest, noise)
    return _SessionSpread(sqrt(squares / freedom), noise, min(max(memory, 0.0), 0.9), freedom, noisy)


def _noise_by_unit(fitted: Sequence[Ints], residuals: Floats, usual: float) -> dict[int, float]:
    """Return the noise of each unit that exceeds the `usual` noise by more than one unit in twenty does by chance.

    A unit's degrees of freedom are its residuals less its fitted levels, one on each board.
    """
    units, levels = numpy.concatenate(fitted), numpy.concatenate([numpy.unique(board) for board in fitted])
    freedom = numpy.bincount(units) - numpy.bincount(levels)
    variances = numpy.bincount(units, residuals**2) / numpy.maximum(freedom, 1)
    spread = 2 / (9 * numpy.maximum(freedom, 1))
    # Quantile of a chi-square: E. B. Wilson and M. M. Hilferty, PNAS 17, 1931.
    most = usual**2 * (1 - spread + _ONE_IN_TWENTY * numpy.sqrt(spread)) ** 3
    noisy = numpy.flatnonzero((freedom > 0) & (variances > most))
    return dict(zip(noisy.tolist(), numpy.sqrt(variances[noisy]).tolist(), strict=True))


def _two_way(units: Ints, sessions: Ints, logs: Floats) -> tuple[dict[int, float], Floats, int]:
    """Return the effect of each session, the residuals, and the number of groups of sessions that share no unit.

    Huber's weighted means of rows and columns in turn; the effects of a group have the mean 0.
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


def _means(groups: Ints, values: Floats, weights: Floats) -> Floats:
    return numpy.bincount(groups, values * weights) / numpy.maximum(numpy.bincount(groups, weights), _SAME)


def _groups(unit: Ints, session: Ints, count: int) -> Ints:
    """Return the group of each session: sessions that share a unit are in one group."""
    group = numpy.arange(count)
    while True:
        least = numpy.full(int(unit.max()) + 1, count)
        numpy.minimum.at(least, unit, group[session])
        merged = group.copy()
        numpy.minimum.at(merged, session, least[unit])
        if (merged == group).all():
            return numpy.unique(group, return_inverse=True)[1]
        group = merged


# Factors between boards of one kind, with their errors.
#
# The log of a time is the level of its unit (case, code, surroundings), plus effects of the board, of the board on this
# case and of the session, plus noise: a two-way layout (J. W. Tukey, Exploratory Data Analysis, 1977, chapter 10) with
# random effects of sessions and of cases. Two boards are compared by the medians of the units that both measured. The
# error has three parts. Sessions of one board differ (learned from boards with several runs; the part shrinks with the
# number of runs). Cases respond differently to a board (a case that both boards measured is drawn to its measured
# ratio, by the ratio of variances: G. K. Robinson, "That BLUP is a good thing", Statistical Science 6, 1991). Few units
# show the usual response badly. Student's t with the degrees of freedom of the first part accounts for the uncertainty
# of the errors. A case with noisier runs than others has its measured noise: launches of a few microseconds are an
# example.

_CHANCE = 0.0005  # one-sided probability that the true factor is outside of the interval
# Boards of one kind differ by 8 % on average and by 22 % at most (P. Sinha et al., "Not all GPUs are created equal",
# SC 2022): half of the latter is the standard error of an unmeasured factor.
_UNMEASURED = 0.11
_FEWEST = 3  # units that both boards measured
_OF_MEDIANS = 1.5708  # variance of a median over that of a mean of as many values
_OUTER, _SIGMAS = 0.95, 1.96
_ONE_RUN = "no board was measured in two runs of one code, so what a board differs by from itself is not known"


@dataclass(frozen=True)
class BoardFactor:
    """Ratio of the times of two boards: its `log`, with standard `error` and degrees of `freedom`.

    `scatter` is the standard deviation of the log between cases, `between_runs` that between two runs on one board.
    `runs` counts the runs behind the factor on each board, `units` the units that both measured. A factor with a
    `reason` is unknown: its log is 0, and its error that of boards without a comparison.
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
        """Whether the factor was measured well enough to be used."""
        return self.reason is None

    @property
    def ratio(self) -> float:
        """The times of the second board over those of the first."""
        return exp(self.log)

    @property
    def reach(self) -> float:
        """Half of the interval of the log that contains it, except for CHANCE on either side."""
        return _at(1 - _CHANCE, self.freedom) * self.error

    @property
    def sure_error(self) -> float:
        """The standard error of a normal variable with the same reach, for users without degrees of freedom."""
        return self.reach / _at(1 - _CHANCE, inf)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the interval of the ratio."""
        half = _at((1 + confidence) / 2, self.freedom) * self.error
        return exp(self.log - half), exp(self.log + half)


def _at(chance: float, freedom: float) -> float:
    """Return the quantile of Student's t; of the normal distribution if `freedom` is infinite."""
    return quantile(chance, min(freedom, 1e6))


@dataclass(frozen=True)
class _CaseShown:
    """Measured ratio of two boards in a case: its log and variance, and the standard deviation between two runs."""

    log: float
    variance: float
    between_runs: float


@dataclass(frozen=True)
class BoardPair:
    """Measured ratios of two boards: the usual `factor`, and those of single cases."""

    factor: BoardFactor
    cases: Mapping[str, _CaseShown] = field(default_factory=dict[str, _CaseShown])
    sessions_error: float = 0.0

    def of(self, case: str) -> BoardFactor:
        """Return the factor of a case: drawn to its measured ratio, else the usual factor with its scatter."""
        usual = self.factor
        if not usual.known:
            return usual
        variance = usual.scatter**2
        shown = self.cases.get(case, _CaseShown(usual.log, inf, usual.between_runs))
        share = variance / (variance + shown.variance) if variance + shown.variance > 0 else 0.0
        rest = (1 - share) * variance * (1 + _OF_MEDIANS / usual.units)
        error = hypot(self.sessions_error, sqrt(rest)) if variance else usual.error
        log_ratio = usual.log + share * (shown.log - usual.log)
        factor = replace(usual, log=log_ratio, error=error, between_runs=shown.between_runs)
        if factor.reach < BoardFactor().reach:
            return factor
        reason = f"it may be off by {share_text(expm1(factor.reach))}"
        return BoardFactor(runs=usual.runs, units=usual.units, reason=reason)


class BoardModel:
    """Model of the boards of one machine, backend and metric."""

    def __init__(self, seen: Observations) -> None:
        self.seen, self.runs = seen, _runs_of(seen)
        self._positions = {name: position for position, name in enumerate(seen.names)}
        self._pairs: dict[tuple[int, int], BoardPair] = {}
        self._medians = [_medians(seen.rows(seen.boards == board)) for board in range(len(seen.names))]

    @property
    def boards(self) -> tuple[str, ...]:
        """The UUIDs of the boards, in the order of their first measurement."""
        return self.seen.names

    def factor(self, case: str, first: str, second: str) -> BoardFactor:
        """Return the factor of the case: its time on the second board over that on the first."""
        return BoardFactor(error=0.0) if first == second else self.pair(first, second).of(case)

    def median(self, board: str, unit: int) -> tuple[float, int] | None:
        """Return the median log of a unit on a board, and the number of its sessions; None without a time."""
        return self._medians[self._positions[board]].get(unit)

    def pair(self, first: str, second: str) -> BoardPair:
        """Return the measured ratios of the second board over the first."""
        if first not in self._positions or second not in self._positions:
            missing = second if first in self._positions else first
            return BoardPair(BoardFactor(reason=f"the history has no trusted time of board {missing}"))
        pair = self._positions[first], self._positions[second]
        if pair not in self._pairs:
            self._pairs[pair] = self._compared(*pair)
        return self._pairs[pair]

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
        by_case: dict[str, list[_CaseShown]] = {}
        for unit, log, variance in zip(units, logs.tolist(), noise.tolist(), strict=True):
            by_case.setdefault(self.seen.cases[unit], []).append(_CaseShown(log, variance, self.runs.between(unit)))
        return {
            case: _CaseShown(
                fmean(unit.log for unit in shown),
                fmean(unit.variance for unit in shown) / len(shown),
                max(unit.between_runs for unit in shown),
            )
            for case, shown in by_case.items()
        }

    def _sessions(self, board: int, units: list[int]) -> float:
        """Return the number of the board's sessions behind the units, each weighted by its number of units."""
        chosen = (self.seen.boards == board) & numpy.isin(self.seen.units, units)
        counts = numpy.bincount(self.seen.sessions[chosen]).astype(float)
        return float(counts.sum() ** 2 / (counts @ counts)) if counts.any() else 0.0


def _medians(board: Observations) -> dict[int, tuple[float, int]]:
    """Return the median log and the number of sessions of each unit that a board measured."""
    order = numpy.argsort(board.units, kind="stable")
    units, logs = board.units[order], board.logs[order]
    bounds = numpy.flatnonzero(numpy.diff(units)) + 1
    pieces = numpy.split(logs, bounds) if len(logs) else []
    return {
        int(unit): (float(numpy.median(piece)), len(piece))
        for unit, piece in zip(numpy.unique(units), pieces, strict=True)
    }


def _usual(logs: Floats) -> tuple[float, float]:
    """Return the median, and the standard deviation about it with which at least 95 % are within 1.96 of it."""
    usual = float(numpy.median(logs))
    away = numpy.abs(logs - usual)
    outer = float(numpy.quantile(away, _OUTER, method="higher")) / _SIGMAS
    return usual, max(1.4826 * float(numpy.median(away)), outer)


# A/A over boards: false changes of one machine code on two boards, with and without the factors.
#
# Every session is judged once against each other board, by a factor that is learned without it.

_MOST_SESSIONS = 200  # the newest; each costs a fit


@dataclass(frozen=True)
class BoardAgreement:
    """Verdicts on one machine code over two boards: the numbers of `given` verdicts, and of `false` ones among them.

    Verdicts without a known factor are `withheld`. `plain` counts the changes that the same rule would call in total
    without factors.
    """

    given: int = 0
    false: int = 0
    withheld: int = 0
    plain: int = 0

    @property
    def rate(self) -> float | None:
        """The share of false verdicts among the given verdicts; None without verdicts."""
        return self.false / self.given if self.given else None

    @property
    def plain_rate(self) -> float | None:
        """The share of all verdicts that would call a change without factors; None without verdicts."""
        total = self.given + self.withheld
        return self.plain / total if total else None

    def __add__(self, other: "BoardAgreement") -> "BoardAgreement":
        """Return the verdicts of both."""
        return BoardAgreement(
            self.given + other.given, self.false + other.false, self.withheld + other.withheld, self.plain + other.plain
        )


def agreement(seen: Observations) -> BoardAgreement:
    """Return the verdicts on each of the newest sessions against every other board."""
    verdicts = BoardAgreement()
    sessions: list[int] = numpy.unique(seen.sessions).tolist()
    newest = sorted(sessions, key=seen.records.__getitem__, reverse=True)[:_MOST_SESSIONS]
    for session in newest if len(seen.names) > 1 else ():
        held = seen.sessions == session
        model = BoardModel(seen.rows(~held))
        rows = seen.rows(held)
        times: list[tuple[int, float]] = list(zip(rows.units.tolist(), rows.logs.tolist(), strict=True))
        board = seen.names[int(seen.boards[held][0])]
        others = [name for name in seen.names if name != board]
        for other, (unit, log_seconds) in product(others, times):
            verdicts += _verdict(model, unit, log_seconds, (board, other))
    return verdicts


def _verdict(model: BoardModel, unit: int, log_seconds: float, boards: tuple[str, str]) -> BoardAgreement:
    """Return the verdict on one session's time of a unit against the other board's median."""
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
    """Return whether a ratio, divided by the factor, exceeds its error and is worth a report."""
    limit = _at(1 - RULES.discoveries / 2, factor.freedom)
    return abs(log_ratio) > max(log1p(RULES.least), limit * hypot(factor.error, between))


# Boards of one machine in the history: their factors in every metric, learned when needed.

RECENT = 256  # records from which factors are learned: boards age


class KnownBoards:
    """The boards behind the newest records of one machine (that is, of one kind of GPU) and backend.

    `history` is read when the first factor is needed; most comparisons need none.
    """

    def __init__(self, history: Callable[[], History], machine: str, backend: str) -> None:
        self._history, self._owner = history, (machine, backend)
        self._models: dict[str, BoardModel] = {}
        self._recent: History | None = None

    def model(self, metric: str) -> BoardModel:
        """Return the model of the metric."""
        if metric not in self._models:
            self._models[metric] = BoardModel(observed(self.recent(), metric))
        return self._models[metric]

    def recent(self) -> History:
        """Return the last measured records of the machine and backend, in the order of measuring."""
        if self._recent is None:
            history = self._history()
            positions = [
                position
                for position, facts in enumerate(history.records)
                if (facts.machine, facts.backend) == self._owner
            ]
            positions.sort(key=lambda position: history.records[position].created)
            self._recent = history.part(positions[-RECENT:])
        return self._recent

    def factor(self, metric: str, case: str, first: str, second: str) -> BoardFactor:
        """Return the factor of the case: its time on the second board over that on the first."""
        return self.model(metric).factor(case, first, second)


# Boards of each kind of GPU, for a report: their facts, anchors and factors, and A/A over them.

# Kernels that every board measures in every run, by the `ceiling` of their specs.
ANCHORS = {"launch": "null", "bandwidth": "copy", "read_bandwidth": "read", "fp32": "FMA", "tensor": "tensor"}
PROMISED = 0.005  # of verdicts on one machine code over two boards
_BY_CHANCE = 0.01


@dataclass(frozen=True)
class BoardRow:
    """One board: its `facts`, the number of its `runs` with the newest run's time, and its `anchors`.

    An anchor is the board's time over the mean of all boards that measured the same unit.
    """

    uuid: str
    facts: BoardTable
    runs: int
    newest: str
    anchors: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True)
class BoardKind:
    """The boards of one machine (that is, of one kind of GPU) and backend, in one metric.

    `pairs` are the factors of the second of two boards against the first. `missing` are the anchors without a kernel in
    the catalogue or without a time.
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
        verdicts = self.agreement
        return bool(verdicts.false) and binomial_tail(verdicts.false - 1, verdicts.given, PROMISED) < _BY_CHANCE


def kinds(history: History, metric: str, anchors: Mapping[str, str]) -> Iterator[BoardKind]:
    """Yield the boards of each machine and backend; `anchors` has the ceiling of each kernel with a ceiling."""
    for machine, backend in dict.fromkeys((facts.machine, facts.backend) for facts in history.records):
        known = KnownBoards(lambda: history, machine, backend)
        model = known.model(metric)
        if model.boards:
            rows = tuple(_board_rows(known.recent(), model, anchors))
            pairs = {pair: model.pair(*pair).factor for pair in combinations(model.boards, 2)}
            seen = {kind for row in rows for kind in row.anchors}
            missing = tuple(name for name in ANCHORS.values() if name not in seen) if len(rows) > 1 else ()
            yield BoardKind(machine, backend, metric, rows, pairs, agreement(model.seen), missing)


def _board_rows(history: History, model: BoardModel, anchors: Mapping[str, str]) -> Iterator[BoardRow]:
    facts = {str(board["uuid"]): board for record in history.records for board in record.boards}
    # Logs of each board's anchors over the mean of the boards that measured the same units.
    logs: dict[str, dict[str, list[float]]] = {uuid: {} for uuid in model.boards}
    for unit, case in enumerate(model.seen.cases):
        kind = anchors.get(case.partition("[")[0].partition(":")[0])
        measured = {uuid: known[0] for uuid in model.boards if (known := model.median(uuid, unit))}
        if kind in ANCHORS and len(measured) > 1:
            for uuid, log in measured.items():
                logs[uuid].setdefault(ANCHORS[kind], []).append(log - fmean(measured.values()))
    for board, uuid in enumerate(model.boards):
        sessions: list[int] = model.seen.sessions[model.seen.boards == board].tolist()
        records = sorted({model.seen.records[session] for session in sessions})
        yield BoardRow(
            uuid,
            facts.get(uuid, {"uuid": uuid}),
            runs=len(records),
            newest=history.records[records[-1]].created,
            anchors={kind: exp(fmean(values)) for kind, values in logs[uuid].items()},
        )
