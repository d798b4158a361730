"""Series of points: one case's metric over the runs of a machine, its steps, and windows tested together."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from math import exp, prod, sqrt
from pathlib import Path
from typing import Any, Literal

import numpy
from numpy.typing import ArrayLike, NDArray

from prism_bench.analysis.boards import BoardFactor, BoardModel, observed, several_boards
from prism_bench.analysis.compare.noise import path_for, read_noise
from prism_bench.errors import UsageError, unknown
from prism_bench.record.identity import Owner
from prism_bench.record.store.history import History
from prism_bench.spec.metric import CODE, DERIVED, ELSEWHERE, MEASURED
from prism_bench.units import share_text

# Runs of one series: outliers, scatter, and the error of a level of several runs.

NEIGHBOURS = 5  # runs whose median an outlier is compared with: more than two equal runs are no outliers
_LONELY = 5.0  # robust standard deviations from that median
_UNSURE = 8.0  # a scatter learned from n independent runs is assumed to be 1 + UNSURE / n times as large
_TICKS = 4  # fewest differences from which a clock's tick is learned; they are also a tenth of all
_FINEST = 1e-4  # relative: samples are kept to four digits, so no series is more precise

Floats = NDArray[numpy.float64]


def middle(values: Floats) -> float:
    """Return the median of the values, without NaN; as `numpy.median` does, without its overhead."""
    low, high = (len(values) - 1) // 2, len(values) // 2
    ordered = numpy.partition(values, (low, high))
    return (float(ordered[low]) + float(ordered[high])) / 2


def filtered(values: Floats, size: int, mode: Literal["nearest", "reflect"] = "nearest") -> Floats:
    """Return at each run the median of `size` runs around it, the upper one of two.

    Beyond its ends the series continues with its outermost value ("nearest"), or backwards ("reflect").
    """
    if not len(values):
        return numpy.empty(0)
    before, after = size // 2, (size - 1) // 2
    if len(values) < size:  # too few to reflect them once
        padded = numpy.pad(values, (before, after), mode="edge" if mode == "nearest" else "symmetric")
    elif mode == "nearest":
        padded = numpy.concatenate([values[:1].repeat(before), values, values[-1:].repeat(after)])
    else:
        padded = numpy.concatenate([values[:before][::-1], values, values[len(values) - after :][::-1]])
    if size == NEIGHBOURS:
        return _middle_of_five(*(padded[place : place + len(values)] for place in range(size))).astype(float)
    windows = numpy.ndarray((len(values), size), padded.dtype, padded, strides=padded.strides * 2)
    return numpy.partition(windows, size // 2, axis=1)[:, size // 2].astype(float)


def _middle_of_five(a: Floats, b: Floats, c: Floats, d: Floats, e: Floats) -> Floats:
    """Return the median of five values at each position; sorting takes four times as long."""
    low = numpy.maximum(numpy.minimum(a, b), numpy.minimum(c, d))
    high = numpy.minimum(numpy.maximum(a, b), numpy.maximum(c, d))
    return numpy.maximum(numpy.minimum(low, high), numpy.minimum(numpy.maximum(low, high), e))


def jitter(values: Floats) -> float:
    """Return a low estimate of the standard deviation of a run, from differences of neighbours.

    Levels and drift cancel in them.
    """
    return 0.8 * 1.4826 * middle(numpy.abs(values[1:] - values[:-1])) / sqrt(2)


@dataclass(frozen=True)
class Scatter:
    """Scatter of runs about their level: `sigma` (robust), and `memory`, the correlation of a run with the next.

    Fast drift makes neighbours similar; ten such runs show less of a level than ten independent runs. The scatter was
    learned from `runs` runs.
    """

    sigma: float
    memory: float
    runs: int

    @property
    def doubt(self) -> float:
        """Factor on `sigma` for the uncertainty of a scatter from few runs; it falls towards 1."""
        return 1 + _UNSURE * (1 + self.memory) / (1 - self.memory) / self.runs

    def variance_of_level(self, count: int) -> float:
        """Return the variance of the mean of `count` consecutive runs, whose correlation fades as memory**distance."""
        return (self.sigma * self.doubt) ** 2 * _inflation(count, round(self.memory, 3)) / count


@lru_cache(4096)
def _inflation(count: int, memory: float) -> float:
    distance = numpy.arange(1, count)
    return 1.0 + 2.0 * float(numpy.sum((1 - distance / count) * memory**distance))


@dataclass(frozen=True, eq=False)
class SeriesRuns:
    """Values of one series, oldest first (logarithms, so that differences are relative), and the outliers (`odd`).

    Odd runs count neither for a level nor for the scatter, but they show how far the series strays. `near` are the
    medians of each run's neighbours, with odd runs.
    """

    values: Floats
    odd: NDArray[numpy.bool_]
    near: Floats

    @classmethod
    def of(cls, logs: ArrayLike, floor: float) -> "SeriesRuns":
        """Return the runs with their outliers (Hampel's filter): far from all neighbours, for two runs at most.

        The two newest runs are never odd: the next runs may be similar.
        """
        values: Floats = numpy.asarray(logs, float)
        near = filtered(values, NEIGHBOURS)
        away = numpy.abs(values - near)
        odd = away > max(_LONELY * 1.4826 * middle(away), 2 * floor)
        odd[-(NEIGHBOURS // 2) :] = False
        return cls(values, odd, near)

    @cached_property
    def kept(self) -> NDArray[numpy.intp]:
        """The positions of the runs that are not odd."""
        return numpy.flatnonzero(~self.odd)

    @cached_property
    def plain(self) -> Floats:
        """The runs that are not odd."""
        return self.values[self.kept]

    @cached_property
    def middles(self) -> Floats:
        """The median of the neighbours of each run that is not odd, without odd runs."""
        return self.near if len(self.kept) == len(self.values) else filtered(self.plain, NEIGHBOURS)

    @cached_property
    def jitter(self) -> float:
        """The jitter of the runs that are not odd."""
        return jitter(self.plain)

    @cached_property
    def quantum(self) -> float:
        """The typical difference of unequal neighbours: the tick of a clock that is coarser than the noise.

        0 if nearly all neighbours are equal: their few differences are steps, not ticks.
        """
        steps = numpy.abs(numpy.diff(self.plain))
        differing = steps[steps > _FINEST / 10]
        return middle(differing) if len(differing) >= max(_TICKS, len(steps) / 10) else 0.0

    def level(self, start: int, end: int) -> float:
        """Return the median of the runs from `start` to before `end`, without odd runs."""
        return middle(self.usual(start, end))

    def usual(self, start: int, end: int) -> Floats:
        """Return the runs from `start` to before `end` that are not odd, or all runs if all are odd."""
        piece = self.values[start:end]
        usual = piece[~self.odd[start:end]]
        return usual if len(usual) else piece

    def residuals(self, bounds: Sequence[int]) -> Floats:
        """Return all runs less the level of their piece, for the pieces between successive `bounds`."""
        return numpy.concatenate([self.values[a:b] - self.level(a, b) for a, b in pairwise(bounds)])

    def scatter(self, bounds: Sequence[int], apart: tuple[int, int] = (0, 0)) -> Scatter:
        """Return the scatter about the levels of the pieces, without the runs from the first to the second of `apart`.

        A correlation r estimated from n runs is (1 + 4 r) / n too low on average: M. G. Kendall, "Note on bias in the
        estimation of autocorrelation", Biometrika 41, 1954.
        """
        counted = ~self.odd[bounds[0] : bounds[-1]]
        counted[max(apart[0] - bounds[0], 0) : max(apart[1] - bounds[0], 0)] = False
        rest = self.residuals(bounds)[counted]
        sigma = max(1.4826 * middle(numpy.abs(rest - middle(rest))), self.quantum / sqrt(12), _FINEST)
        tame = numpy.clip(rest, -3 * sigma, 3 * sigma)
        power = float(tame @ tame)
        memory = float(tame[1:] @ tame[:-1]) / power if power else 0.0
        memory += (1 + 4 * memory) / len(rest)
        return Scatter(sigma, min(max(memory, 0.0), 0.95), len(rest))


# Parts of a trend: steps with their causes, and breakpoints.

CauseKind = Literal["protocol", "toolchain", "code", "device", "library", "driver", "clock", "sources", "unexplained"]
# Of several changes, the first change in this order that explains the step is named as the cause.
CAUSES: dict[CauseKind, str] = {
    "protocol": "the way of measuring changed",
    "toolchain": "the compiler or runtime changed",
    "code": "the machine code changed",
    "device": "another device of the same name",
    "library": "the library changed",
    "driver": "the driver changed",
    "clock": "the device ran at another clock",
    "sources": "the sources changed",
    "unexplained": "nothing changed that the records know of",
}


@dataclass(frozen=True)
class Key:
    """Identity of a series."""

    machine: str
    backend: str
    case: str
    metric: str
    subject: str
    environment: str = ""

    @property
    def owner(self) -> Owner:
        """Machine, backend and environment."""
        return self.machine, self.backend, self.environment


@dataclass(frozen=True)
class Cause:
    """Cause of a change of level: its `kind` and description, and other changes in the same run."""

    kind: CauseKind
    words: str
    also: tuple[str, ...] = ()


@dataclass(frozen=True)
class Step:
    """Change of the level of a series: from `before` to `after`, medians of the two pieces in the metric's unit.

    Of an exact metric they are the first values of the two pieces.

    `previous` is the last record of the old level, `record` the first of the new level; `commits` are theirs. `since`
    (UTC) is the time of the new commit, or of measuring if the commit is unknown or the old one. The new level lasted
    `nights` records of the series; `age` counts the records since. `worse` is the direction, `recovered` means that the
    newest level is no longer worse than `before`.
    """

    key: Key
    before: float
    after: float
    previous: str
    record: str
    since: str
    commits: tuple[str | None, str | None]
    nights: int
    age: int
    worse: bool
    recovered: bool
    cause: Cause

    @property
    def ratio(self) -> float:
        """The new level over the old level."""
        return self.after / self.before


@dataclass(frozen=True)
class Breakpoint:
    """Change in `record`, made at `since`, that may move every series of the machine.

    The series continue across it. `kind` is one of `CAUSES`.
    """

    machine: str
    backend: str
    record: str
    since: str
    kind: CauseKind
    words: str
    environment: str = ""


# Series of points: one case's metric over the runs of a machine, without untrusted runs.
#
# If several boards of one kind measured the runs, each run is divided by its board's factor. The factors are learned
# from the window's records, so that its findings depend on nothing else. A step at which other boards take over counts
# only beyond the error of their factors; the error of an unknown factor is that of boards without a comparison.

_CLOCK_RUNS = 15  # runs whose median clock is the usual one: a state that lasts longer than half of them is no visit
_CLOCK_SHARE = 0.02  # a time that is measured further off the usual clock shows nothing about the code

Ints = NDArray[numpy.integer]
_KEY = ("case", "metric", "subject")
_OF_RUNS = ("record", "value", "clock", "code", "build", "board")


@dataclass(frozen=True, eq=False)
class Course:
    """Trusted runs of one `key`, oldest first: `records` are their positions in the history, `values` the medians."""

    key: Key
    records: Ints
    values: Floats


@dataclass(frozen=True)
class BoardLevels:
    """Factors of a series' boards against its most frequent board, by the board's number among `names`."""

    names: Sequence[str]
    factors: Mapping[int, BoardFactor]

    def reach(self, before: Sequence[int], after: Sequence[int]) -> float:
        """Return the largest step, in log time, that the boards of these runs may cause."""
        moved = self._moved(before, after)
        return sqrt(sum((share * self.factors[board].reach) ** 2 for board, share in moved.items()))

    def words(self, before: Sequence[int], after: Sequence[int]) -> str:
        """Return which board's factor is not known well enough, and why."""
        moved = self._moved(before, after)
        board = max(moved, key=lambda board: abs(moved[board]) * self.factors[board].reach)
        why = self.factors[board].reason or f"it may be off by {share_text(self.factors[board].reach)}"
        return f"board {self.names[board]} measured other runs than before; its factor is not known well enough: {why}"

    def _moved(self, before: Sequence[int], after: Sequence[int]) -> dict[int, float]:
        """Return the growth of each board's share of the runs."""
        return {
            board: list(after).count(board) / len(after) - list(before).count(board) / len(before)
            for board in {*before, *after}
        }


@dataclass(frozen=True, eq=False)
class CaseSeries(Course):
    """The course of a key with possible causes of its moves.

    `clocks` are in hertz, 0 if not read; `codes` number the machine codes, `builds` their sources and compilers,
    `boards` the GPUs. `aside` counts the runs that were set aside, by reason. `levels` are the factors of several
    boards, by which the values are divided.
    """

    clocks: Floats
    codes: Ints
    builds: Ints
    boards: Ints
    aside: dict[str, int]
    levels: BoardLevels | None = None

    @property
    def logs(self) -> Floats:
        """The values as logarithms: their differences are relative changes."""
        return numpy.log(self.values)


@dataclass(frozen=True, eq=False)
class SeriesPoints:
    """Points of a history, sorted by series, oldest first. `starts` are the first rows of all series."""

    columns: Mapping[str, NDArray[Any]]
    starts: Ints
    vocabulary: Mapping[str, list[str]]

    @classmethod
    def of(cls, history: History) -> "SeriesPoints":
        """Return the points of a history; each column is freed when it is sorted, so that they are in memory once."""
        table = history.read(("value", "clock"))
        left, vocabulary = dict(table.columns), table.vocabulary
        del table
        numbers = {owner: number for number, owner in enumerate(_owners(history))}
        owner = numpy.array([numbers[facts.owner] for facts in history.records], "i4")[left["record"]]
        sizes = [len(vocabulary[name]) for name in _KEY]
        number = owner.astype("i4" if prod(sizes) * len(numbers) < 1 << 31 else "i8")
        for name, size in zip(_KEY, sizes, strict=True):
            number *= size
            number += left[name]
        order = numpy.argsort(number, kind="stable")
        number = number[order]
        starts = numpy.flatnonzero(number[1:] != number[:-1]) + 1
        starts = numpy.concatenate([numpy.zeros(min(len(number), 1), int), starts])
        left["owner"] = owner
        del number, owner
        return cls({name: left.pop(name).take(order) for name in list(left)}, starts, vocabulary)


def series_of(history: History, first: int = 0, points: SeriesPoints | None = None) -> Iterator[CaseSeries]:
    """Yield every series of the history, with empty arrays for a key without a trusted run.

    Runs are set aside if their record does not trust them, or if the device ran at another clock than in the runs
    around: they show the clock. A compile time from the cache is one measurement, however many runs repeat it. Only
    runs from the record at position `first` on are counted as set aside. `points` are those of the history, if the
    caller has them.
    """
    points = points or SeriesPoints.of(history)
    columns, names, starts = points.columns, points.vocabulary, points.starts
    if not len(starts):
        return
    owners = _owners(history)
    sound = numpy.array([doubt == "" for doubt in names["doubt"]], bool)
    trusted = sound[columns["doubt"]]
    plain = _is_plain(columns["clock"], trusted, starts)
    for number, (start, end) in enumerate(pairwise([*starts.tolist(), len(trusted)])):
        case, metric, subject = (names[name][int(columns[name][start])] for name in _KEY)
        machine, backend, environment = owners[int(columns["owner"][start])]
        key = Key(machine, backend, case, metric, subject, environment)
        runs = [columns[name][start:end] for name in _OF_RUNS]
        aside: Counter[str] = Counter()
        if not plain[number]:
            is_trusted, counted = trusted[start:end], columns["record"][start:end] >= first
            doubts: list[int] = columns["doubt"][start:end][~is_trusted & counted].tolist()
            aside.update(names["doubt"][doubt] for doubt in doubts)
            visits = visiting(columns["clock"][start:end][is_trusted])
            if count := int((visits & counted[is_trusted]).sum()):
                aside["the device ran at another clock than in the runs around"] = count
            runs = [column[is_trusted][~visits] for column in runs]
        if metric == "compile_seconds":
            repeats = _repeats(*(runs[_OF_RUNS.index(name)] for name in ("value", "code", "build")))
            if count := int((repeats & (runs[0] >= first)).sum()):
                aside["the compiler did not run: its time is that of the run before, from the cache"] = count
            runs = [column[~repeats] for column in runs]
        record, value, clock, code, build, board = runs
        yield CaseSeries(key, record, value, clock, code, build, board, aside)


def _repeats(*columns: NDArray[Any]) -> NDArray[numpy.bool_]:
    """Return for each run whether it has what the run before has in all columns."""
    same = numpy.logical_and.reduce([column[1:] == column[:-1] for column in columns])
    return numpy.concatenate([numpy.zeros(min(len(columns[0]), 1), bool), same])


def _is_plain(clocks: NDArray[Any], trusted: NDArray[numpy.bool_], starts: Ints) -> list[bool]:
    """Return for each series whether it certainly has no run to set aside: all are trusted, and no clock differs."""
    lowest, highest = (reduce.reduceat(clocks.astype(float), starts) for reduce in (numpy.minimum, numpy.maximum))
    with numpy.errstate(divide="ignore", invalid="ignore"):
        close = (highest / lowest - 1 <= _CLOCK_SHARE) & (lowest > 0)
    return (numpy.logical_and.reduceat(trusted, starts) & (close | (highest <= 0))).tolist()


def _owners(history: History) -> list[Owner]:
    """Return the distinct owners of the records."""
    return list(dict.fromkeys(facts.owner for facts in history.records))


def visiting(clocks: Floats) -> NDArray[numpy.bool_]:
    """Return for each run whether its clock differs from the usual clock of the runs around; False without clocks."""
    known = clocks > 0
    visits = numpy.zeros(len(clocks), bool)
    if known.any():
        read = clocks[known].astype(float)
        visits[known] = numpy.abs(read / _usual(read) - 1) > _CLOCK_SHARE
    return visits


def _usual(clocks: Floats) -> Floats:
    """Return at each run the median of the CLOCK_RUNS runs around it, near the ends of the first or last runs."""
    half = _CLOCK_RUNS // 2
    if len(clocks) <= _CLOCK_RUNS:
        return numpy.full(len(clocks), numpy.median(clocks))
    middle = filtered(clocks, _CLOCK_RUNS, "reflect")[half:-half]
    return numpy.pad(middle, half, mode="edge")


def levelled(history: History, every: Iterable[CaseSeries], names: Sequence[str]) -> Iterator[CaseSeries]:
    """Yield the series, those of several boards divided by the boards' factors; the history is of one window.

    `names` are those of the boards that the series number.
    """
    if not several_boards(history.records):
        yield from every
        return
    models: dict[str, BoardModel] = {}
    for series in every:
        metric = series.key.metric
        if metric in CODE or len(set(series.boards.tolist())) == 1 or not len(series.boards):
            yield series
            continue
        if metric not in models:
            models[metric] = BoardModel(observed(history, metric))
        yield _levelled(series, models[metric], names)


def _levelled(series: CaseSeries, model: BoardModel, names: Sequence[str]) -> CaseSeries:
    numbers, counts = numpy.unique(series.boards, return_counts=True)
    usual = int(numbers[counts.argmax()])
    case = series.key.case if series.key.subject == "kernel" else ""  # a library's case has the usual factor
    factors = {board: model.factor(case, names[usual], names[board]) for board in map(int, numbers)}
    ratios = numpy.array([exp(factors[board].log) for board in series.boards.tolist()])
    return replace(series, values=series.values / ratios, levels=BoardLevels(names, factors))


def higher_is_better(metric: str) -> bool:
    """Return whether a larger value of the metric is better; False for an unknown metric."""
    known = MEASURED.get(metric) or DERIVED.get(metric)
    return known is not None and known.better == "higher"


def timed(history: History) -> History:
    """Return the history without the values of the code, unless it is of chosen metrics: no time follows from them."""
    if history.metrics is not None:
        return history
    return replace(history, metrics=frozenset(history.names("metric")) - CODE.keys())


# Parts of a history: some cases, metrics or machines, and the noise floors kept for its machines.


def chosen(
    history: History, names: Sequence[str] = (), metrics: Sequence[str] = (), machines: Sequence[str] = ()
) -> History:
    """Return the part of the history of these machines, metrics and cases; an empty sequence chooses all.

    A name is that of a kernel, of a variant (`kernel:variant`) or of a case in full. Raise a UsageError for a name that
    is in no record.
    """
    if not history.records:
        return history
    known_cases, cases = history.names("case"), list[str]()
    for name in names:
        named = [case for case in known_cases if name in _names(case)]
        if not named:
            raise unknown("kernel or case", name, {part for case in known_cases for part in _names(case)})
        cases += named
    require_metrics(history, metrics)
    part = replace(
        history,
        cases=frozenset(cases) if cases else history.cases,
        metrics=frozenset(metrics) if metrics else history.metrics,
    )
    if not machines:
        return part
    _require("machine", machines, {facts.machine for facts in history.records})
    kept = [position for position, facts in enumerate(history.records) if facts.machine in machines]
    return replace(part.part(kept), problems=history.problems)


def _names(case: str) -> tuple[str, str, str]:
    kernel = case.partition("[")[0]
    return case, kernel, kernel.partition(":")[0]


def require_metrics(history: History, metrics: Iterable[str]) -> None:
    """Raise a UsageError for a metric that is unknown, or that no record of the history has."""
    known = history.names("metric")
    for metric in metrics:
        if metric not in known and metric in {**MEASURED, **ELSEWHERE, **CODE}:
            raise UsageError(f"no record has the metric {metric}; the records have {', '.join(sorted(known))}")
        _require("metric", [metric], known)


def _require(kind: str, names: Sequence[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise unknown(kind, name, known)


def kept_floors(history: History, folder: Path) -> dict[tuple[str, str, str, str], float]:
    """Return the noise floors by machine, backend, case and metric that `prism-bench compare --itself` measured."""
    floors: dict[tuple[str, str, str, str], float] = {}
    if not folder.is_dir():
        return floors
    for machine in sorted({facts.machine for facts in history.records}):
        if noise := read_noise(path_for(machine, folder)):
            for (case, metric), floor in noise.floors.items():
                floors[machine, noise.backend, case, metric] = floor.smallest_change
    return floors


# Windows of a history: blocks of consecutive records of one owner whose series are tested together.
#
# A history of years is tested by windows, so that neither memory nor the time for one more run grows with it. A window
# begins with the last records of the window before: a step near its end is tested with runs on both sides. The start of
# a window depends only on the number of records before it.

LENGTH = 768  # records of a window that no earlier window has
OVERLAP = 256  # records that a window shares with the window before


@dataclass(frozen=True)
class RecordWindow:
    """Records of one owner: their `places` (positions) in the history, of which `shared` are in an earlier window."""

    machine: str
    backend: str
    number: int
    places: Sequence[int]
    shared: int
    is_last: bool
    environment: str = ""

    def tests(self, record: int) -> bool:
        """Return whether this window must detect a step that begins at this position of the window."""
        return (not self.shared or record >= OVERLAP // 2) and (self.is_last or record < self.end)

    @property
    def end(self) -> int:
        """The position from which on the next window must detect steps."""
        return len(self.places) if self.is_last else len(self.places) - OVERLAP // 2


def windows_of(history: History) -> Iterator[RecordWindow]:
    """Yield the windows of each machine, backend and environment, the oldest first."""
    owners: dict[Owner, list[int]] = {}
    for place, facts in enumerate(history.records):
        owners.setdefault(facts.owner, []).append(place)
    for (machine, backend, environment), places in owners.items():
        for number, first in enumerate(range(0, len(places), LENGTH)):
            begin, end = max(0, first - OVERLAP), first + LENGTH
            yield RecordWindow(
                machine, backend, number, places[begin:end], first - begin, end >= len(places), environment
            )


@dataclass(frozen=True, eq=False)
class BoardCourse(Course):
    """A course with the GPU of each run; a GPU has the same number in all courses of a history.

    It is the point's board, since a merged record has several; if that is unknown, or several boards measured the case,
    the record's device.
    """

    boards: Ints


def window_courses(history: History, backend: str | None = None) -> Iterator[list[BoardCourse]]:
    """Yield for each window, of one backend or of all, the courses of its runs that no earlier window has.

    A key without a trusted run there has no course. At most one window is in memory.
    """
    numbers: dict[str, int] = {}
    for window in windows_of(history):
        if backend in (None, window.backend):
            yield list(_new_courses(history.part(window.places), window, numbers))


def _new_courses(part: History, window: RecordWindow, numbers: dict[str, int]) -> Iterator[BoardCourse]:
    """Yield the courses of the runs that no earlier window has, as arrays without other runs."""
    places, points = numpy.array(window.places, "i4"), SeriesPoints.of(part)
    devices = _numbered((facts.device for facts in part.records), numbers)
    known = _numbered(points.vocabulary["board"], numbers)
    unknown_board = numbers.get("", -1)
    for series in series_of(part, points=points):
        new = series.records >= window.shared
        if new.any():
            boards, within = known[series.boards[new]], series.records[new]
            boards = numpy.where(boards == unknown_board, devices[within], boards)
            yield BoardCourse(series.key, places[within], series.values[new], boards)


def courses(history: History, wanted: Collection[Key] | None = None) -> Iterator[BoardCourse]:
    """Yield the whole course of every key with a trusted run, or only of the `wanted` keys."""
    parts: dict[Key, list[BoardCourse]] = {}
    for window in window_courses(history):
        for course in window:
            if wanted is None or course.key in wanted:
                parts.setdefault(course.key, []).append(course)
    for key, several in parts.items():
        yield BoardCourse(
            key,
            numpy.concatenate([course.records for course in several]),
            numpy.concatenate([course.values for course in several]),
            numpy.concatenate([course.boards for course in several]),
        )


def _numbered(texts: Iterable[str], numbers: dict[str, int]) -> Ints:
    """Return the number of each text; a new text gets the next number."""
    return numpy.array([numbers.setdefault(text, len(numbers)) for text in texts], "i4")
