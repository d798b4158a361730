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
from prism_bench.errors import unknown
from prism_bench.record.identity import Owner
from prism_bench.record.store import History as store_History
from prism_bench.record.store.history import History
from prism_bench.spec.metric import DERIVED, MEASURED
from prism_bench.units import share_text

# Runs of one series: which are outliers, what scatter they have, and how well a level of several is known.

NEIGHBOURS = 5  # runs whose median an outlier is compared with: what lasts longer than two is no outlier
_LONELY = 5.0  # robust standard deviations from that median
_UNSURE = 8.0  # a scatter learned from n independent runs is taken to be 1 + UNSURE / n times as large
_TICKS = 4  # differences that a clock's tick is learned from, and a tenth of all
_FINEST = 1e-4  # relative: samples are kept to four digits, so no series is known better

Floats = NDArray[numpy.float64]


def middle(values: Floats) -> float:
    """Return the median of the values, of which none is missing; as `numpy.median` does, without its preparations."""
    low, high = (len(values) - 1) // 2, len(values) // 2
    ordered = numpy.partition(values, (low, high))
    return (float(ordered[low]) + float(ordered[high])) / 2


def filtered(values: Floats, size: int, mode: Literal["nearest", "reflect"] = "nearest") -> Floats:
    """Return at each run the median of `size` runs around it, the upper one of two.

    Beyond its ends the series goes on with its outermost value ("nearest"), or backwards ("reflect").
    """
    if not len(values):
        return numpy.empty(0)
    before, after = size // 2, (size - 1) // 2
    if len(values) < size:  # too few to go backwards in one go
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
    """Return the median of five values at each place; sorting each five takes four times as long."""
    low = numpy.maximum(numpy.minimum(a, b), numpy.minimum(c, d))
    high = numpy.minimum(numpy.maximum(a, b), numpy.maximum(c, d))
    return numpy.maximum(numpy.minimum(low, high), numpy.minimum(numpy.maximum(low, high), e))


def jitter(values: Floats) -> float:
    """Return somewhat less than the standard deviation of a run.

    From differences of neighbours, in which levels and drift cancel.
    """
    return 0.8 * 1.4826 * middle(numpy.abs(values[1:] - values[:-1])) / sqrt(2)


@dataclass(frozen=True)
class Scatter:
    """Scatter of runs about their level: `sigma` (robust), and `memory`, the correlation of a run with the next.

    Fast drift makes neighbours alike; ten such runs show less of a level than ten independent ones. `runs` is from how
    many the scatter was learned.
    """

    sigma: float
    memory: float
    runs: int

    @property
    def doubt(self) -> float:
        """How much larger than `sigma` the scatter is taken to be, learned from so few runs: falls towards 1."""
        return 1 + _UNSURE * (1 + self.memory) / (1 - self.memory) / self.runs

    def variance_of_level(self, count: int) -> float:
        """Return the variance of the mean of `count` runs in a row whose correlation fades as memory**distance."""
        return (self.sigma * self.doubt) ** 2 * _inflation(count, round(self.memory, 3)) / count


@lru_cache(4096)
def _inflation(count: int, memory: float) -> float:
    distance = numpy.arange(1, count)
    return 1.0 + 2.0 * float(numpy.sum((1 - distance / count) * memory**distance))


@dataclass(frozen=True, eq=False)
class SeriesRuns:
    """Values of one series, oldest first (logarithms, so that differences are relative), and which of them are `odd`.

    Odd runs count neither for a level nor for the scatter, but they show how far the series strays. `near` are the
    medians of each run's neighbours, odd ones too.
    """

    values: Floats
    odd: NDArray[numpy.bool_]
    near: Floats

    @classmethod
    def of(cls, logs: ArrayLike, floor: float) -> "SeriesRuns":
        """Return the runs, outliers set apart (Hampel's filter): far from all neighbours, for two runs at most.

        The two newest are never odd: it is unknown yet whether the next ones are alike.
        """
        values: Floats = numpy.asarray(logs, float)
        near = filtered(values, NEIGHBOURS)
        away = numpy.abs(values - near)
        odd = away > max(_LONELY * 1.4826 * middle(away), 2 * floor)
        odd[-(NEIGHBOURS // 2) :] = False
        return cls(values, odd, near)

    @cached_property
    def kept(self) -> NDArray[numpy.intp]:
        """The places of the runs that are not odd."""
        return numpy.flatnonzero(~self.odd)

    @cached_property
    def plain(self) -> Floats:
        """The runs that are not odd."""
        return self.values[self.kept]

    @cached_property
    def middles(self) -> Floats:
        """The median of the neighbours of each run that is not odd, without odd ones."""
        return self.near if len(self.kept) == len(self.values) else filtered(self.plain, NEIGHBOURS)

    @cached_property
    def jitter(self) -> float:
        """That of the runs that are not odd."""
        return jitter(self.plain)

    @cached_property
    def quantum(self) -> float:
        """The typical difference of neighbours that differ: the tick of a clock that is coarser than the noise.

        0 where nearly all neighbours are the same: their few differences are steps, and no ticks.
        """
        steps = numpy.abs(numpy.diff(self.plain))
        differing = steps[steps > _FINEST / 10]
        return middle(differing) if len(differing) >= max(_TICKS, len(steps) / 10) else 0.0

    def level(self, start: int, end: int) -> float:
        """Return the median of the runs from `start` to before `end`, odd ones left out."""
        return middle(self.usual(start, end))

    def usual(self, start: int, end: int) -> Floats:
        """Return the runs from `start` to before `end` that are not odd; all of them where all are."""
        piece = self.values[start:end]
        usual = piece[~self.odd[start:end]]
        return usual if len(usual) else piece

    def residuals(self, bounds: Sequence[int]) -> Floats:
        """Return runs less the level of their piece, for the pieces between successive `bounds`; odd ones too."""
        return numpy.concatenate([self.values[a:b] - self.level(a, b) for a, b in pairwise(bounds)])

    def scatter(self, bounds: Sequence[int], apart: tuple[int, int] = (0, 0)) -> Scatter:
        """Return the scatter about the levels of the pieces, without the runs from the first to the second of `apart`.

        A correlation estimated from n runs is (1 + 4 r) / n too low on average: M. G. Kendall, "Note on bias in the
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
# Of several things that changed, the first one in this order that explains the step is named as the cause.
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
    """Cause of a change of level: its `kind`, what changed in words, and what else changed in the same run."""

    kind: CauseKind
    words: str
    also: tuple[str, ...] = ()


@dataclass(frozen=True)
class Step:
    """Change of the level of a series: from `before` to `after`, medians of the two pieces in the metric's unit.

    `record` is the first record of the new level, `since` (UTC) the time of its commit, of measuring where that is
    unknown or the old one's; `previous` is the last of the old one. `commits`
    are those of the two. `nights` is how many records of the series the new level lasted. `age` is how many there were
    since. `worse` is the direction, `recovered` that the newest level is no longer worse than `before`.
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
        """The new level over the old one."""
        return self.after / self.before


@dataclass(frozen=True)
class Breakpoint:
    """Place from which on, `record` made at `since`, something differs that may move every series of the machine.

    The series go on across it. `kind` is one of `CAUSES`.
    """

    machine: str
    backend: str
    record: str
    since: str
    kind: CauseKind
    words: str
    environment: str = ""


# Series of points: one case's metric over the runs of a machine, without what evidence shows cannot be trusted.
#
# Where several boards of one kind measured the runs, each run is divided by its board's factor. The factors are learned
# from the window's own records, so that what a window finds depends on nothing else. A step at which other boards take
# over counts only beyond what their factors may be off by; where they are not known, that is what boards which nobody
# compared may differ by.

_CLOCK_RUNS = 15  # runs whose median clock is the usual one: a state that lasts longer than half of them is no visit
_CLOCK_SHARE = 0.02  # off the usual clock by more, a time shows nothing about the code

Ints = NDArray[numpy.integer]
_KEY = ("case", "metric", "subject")
_OF_RUNS = ("record", "value", "clock", "code", "build", "board")


@dataclass(frozen=True, eq=False)
class Course:
    """Trusted runs of one `key`, oldest first: `records` are their places in the history, `values` the medians."""

    key: Key
    records: Ints
    values: Floats


@dataclass(frozen=True)
class BoardLevels:
    """The factors of a series' boards against its most frequent one, by the board's number among `names`."""

    names: Sequence[str]
    factors: Mapping[int, BoardFactor]

    def reach(self, before: Sequence[int], after: Sequence[int]) -> float:
        """Return by how much, in log time, a step between these runs' boards may be due to them."""
        moved = self._moved(before, after)
        return sqrt(sum((share * self.factors[board].reach) ** 2 for board, share in moved.items()))

    def words(self, before: Sequence[int], after: Sequence[int]) -> str:
        """Return what is not known of the boards that took over."""
        moved = self._moved(before, after)
        board = max(moved, key=lambda one: abs(moved[one]) * self.factors[one].reach)
        why = self.factors[board].reason or f"it may be off by {share_text(self.factors[board].reach)}"
        return f"board {self.names[board]} measured other runs than before; its factor is not known well enough: {why}"

    def _moved(self, before: Sequence[int], after: Sequence[int]) -> dict[int, float]:
        """Return by how much each board's share of the runs grew."""
        return {
            board: list(after).count(board) / len(after) - list(before).count(board) / len(before)
            for board in {*before, *after}
        }


@dataclass(frozen=True, eq=False)
class CaseSeries(Course):
    """The course of a key with what may have moved it.

    `clocks` are in hertz, 0 where none was read; `codes` number the machine codes, `builds` what they were made of, and
    by which compiler; `boards` number the GPUs. `aside` are the runs that were set aside, by reason. `levels` are the
    factors of several boards, by which the values are divided.
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
    """Points of a history: those of each series together, oldest first. `starts` are the first rows of all series."""

    columns: Mapping[str, NDArray[Any]]
    starts: Ints
    vocabulary: Mapping[str, list[str]]

    @classmethod
    def of(cls, history: History) -> "SeriesPoints":
        """Return the points of a history, which are in memory once: each column goes when it has been sorted."""
        table = history.read(("value", "clock"))
        left, vocabulary = dict(table.columns), table.vocabulary
        del table
        owner = _owner_numbers(history)[left["record"]]
        sizes = [len(vocabulary[name]) for name in _KEY]
        number = owner.astype("i4" if prod(sizes) * len(_owners(history)) < 1 << 31 else "i8")
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
    """Yield every series of the history; a key without a single trusted run is one with empty arrays.

    Set aside is what its record does not trust, and a run in which the device ran at another clock than in the runs
    around it: such a run shows the clock. Only those from the record at place `first` on are counted as set aside.
    `points` are those of the history, where the caller has them.
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
        own = {name: columns[name][start:end] for name in _OF_RUNS}
        if plain[number]:
            yield _of_columns(key, own, {})
        else:
            counted = _Counted(names["doubt"], columns["record"][start:end] >= first)
            yield _series(key, own, columns["doubt"][start:end], sound, counted)


def _is_plain(clocks: NDArray[Any], trusted: NDArray[numpy.bool_], starts: Ints) -> list[bool]:
    """Return which series have no run to set aside, at a glance: all are trusted, and no two clocks are far apart."""
    lowest, highest = (reduce.reduceat(clocks.astype(float), starts) for reduce in (numpy.minimum, numpy.maximum))
    with numpy.errstate(divide="ignore", invalid="ignore"):
        close = (highest / lowest - 1 <= _CLOCK_SHARE) & (lowest > 0)
    return (numpy.logical_and.reduceat(trusted, starts) & (close | (highest <= 0))).tolist()


def _owners(history: History) -> list[Owner]:
    """Return the owners of the records, each once."""
    return list(dict.fromkeys(facts.owner for facts in history.records))


def _owner_numbers(history: History) -> Ints:
    """Return the place of each record's owner among the owners."""
    numbers = {owner: number for number, owner in enumerate(_owners(history))}
    return numpy.array([numbers[facts.owner] for facts in history.records], "i4")


@dataclass(frozen=True, eq=False)
class _Counted:
    """The texts of `doubts`, and which runs of a series are counted where they are set aside."""

    doubts: Sequence[str]
    runs: NDArray[numpy.bool_]


def _series(
    key: Key, columns: Mapping[str, NDArray[Any]], doubts: Ints, sound: NDArray[numpy.bool_], counted: _Counted
) -> CaseSeries:
    trusted = sound[doubts]
    aside = Counter(counted.doubts[int(place)] for place in doubts[~trusted & counted.runs].tolist())
    visits = visiting(columns["clock"][trusted])
    if count := int((visits & counted.runs[trusted]).sum()):
        aside["the device ran at another clock than in the runs around"] = count
    return _of_columns(key, {name: column[trusted][~visits] for name, column in columns.items()}, aside)


def _of_columns(key: Key, columns: Mapping[str, NDArray[Any]], aside: dict[str, int]) -> CaseSeries:
    record, value, clock, code, build, board = (columns[name] for name in _OF_RUNS)
    return CaseSeries(key, record, value, clock, code, build, board, aside)


def visiting(clocks: Floats) -> NDArray[numpy.bool_]:
    """Return which runs had a clock that is not the usual one of the runs around them; none without clocks."""
    known = clocks > 0
    found = numpy.zeros(len(clocks), bool)
    if known.any():
        read = clocks[known].astype(float)
        found[known] = numpy.abs(read / _usual(read) - 1) > _CLOCK_SHARE
    return found


def _usual(clocks: Floats) -> Floats:
    """Return at each run the median of CLOCK_RUNS runs: those around it, at both ends the first and the last ones."""
    half = _CLOCK_RUNS // 2
    if len(clocks) <= _CLOCK_RUNS:
        return numpy.full(len(clocks), numpy.median(clocks))
    middle = filtered(clocks, _CLOCK_RUNS, "reflect")[half:-half]
    return numpy.pad(middle, half, mode="edge")


def levelled(history: History, every: Iterable[CaseSeries], names: Sequence[str]) -> Iterator[CaseSeries]:
    """Yield the series, those of several boards divided by the boards' factors; the history is of one window.

    `names` are those of the boards that the series number.
    """
    series = list(every)
    if not several_boards(history.records):
        yield from series
        return
    metrics = {one.key.metric for one in series if len(set(one.boards.tolist())) > 1}
    models = {metric: BoardModel(observed(history, metric)) for metric in metrics}
    for one in series:
        several = len(set(one.boards.tolist())) > 1
        yield _levelled(one, models[one.key.metric], names) if several else one


def _levelled(series: CaseSeries, model: BoardModel, names: Sequence[str]) -> CaseSeries:
    numbers, counts = numpy.unique(series.boards, return_counts=True)
    usual = int(numbers[counts.argmax()])
    case = series.key.case if series.key.subject == "kernel" else ""  # what a library does there is the usual factor
    factors = {board: model.factor(case, names[usual], names[board]) for board in map(int, numbers)}
    ratios = numpy.array([exp(factors[board].log) for board in series.boards.tolist()])
    return replace(series, values=series.values / ratios, levels=BoardLevels(names, factors))


def higher_is_better(metric: str) -> bool:
    """Return whether a larger value of the metric is better; of an unknown metric, a smaller one is."""
    known = MEASURED.get(metric) or DERIVED.get(metric)
    return known is not None and known.better == "higher"


# Parts of a history: some cases, metrics or machines, and the noise floors kept for its machines.


def chosen(
    history: store_History, names: Sequence[str] = (), metrics: Sequence[str] = (), machines: Sequence[str] = ()
) -> store_History:
    """Return the part of the history of these machines and metrics and of cases with these names; all without one.

    A name is that of a kernel, of a variant (`kernel:variant`) or of a case in full. What no record knows is an error.
    """
    if not history.records:
        return history
    cases, known = _cases(history.names("case"), names), history.names("metric")
    _require("metric", metrics, known)
    only = replace(
        history,
        cases=frozenset(cases) if cases else history.cases,
        metrics=frozenset(metrics) if metrics else history.metrics,
    )
    return _of_machines(only, machines)


def _cases(known: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return every known case that one of the names means."""
    found = {name: [case for case in known if name in _names(case)] for name in names}
    for name in names:
        if not found[name]:
            raise unknown("kernel or case", name, {one for case in known for one in _names(case)})
    return [case for cases in found.values() for case in cases]


def _names(case: str) -> tuple[str, str, str]:
    kernel = case.partition("[")[0]
    return case, kernel, kernel.partition(":")[0]


def _of_machines(history: store_History, machines: Sequence[str]) -> store_History:
    if not machines:
        return history
    _require("machine", machines, {facts.machine for facts in history.records})
    kept = [place for place, facts in enumerate(history.records) if facts.machine in machines]
    return replace(history.part(kept), problems=history.problems)


def _require(kind: str, wanted: Sequence[str], known: Collection[str]) -> None:
    for one in wanted:
        if one not in known:
            raise unknown(kind, one, known)


def kept_floors(history: store_History, folder: Path) -> dict[tuple[str, str, str, str], float]:
    """Return the noise floors by machine, backend, case and metric, as far as `prism-bench noise` measured them."""
    floors: dict[tuple[str, str, str, str], float] = {}
    if not folder.is_dir():
        return floors
    for machine in sorted({facts.machine for facts in history.records}):
        if noise := read_noise(path_for(machine, folder)):
            for (case, metric), floor in noise.floors.items():
                floors[machine, noise.backend, case, metric] = floor.smallest_change
    return floors


# Windows of a history: so many records of one machine, backend and environment that their series are tested together.
#
# A history of years is tested piece by piece, so that neither memory nor the time for one run more grows with it. A
# window begins with the last records of the one before it: a step near its end is tested with runs on both sides. Where
# a window begins depends on nothing but the number of records before it.

LENGTH = 768  # records of a window that no earlier one has
OVERLAP = 256  # records that it shares with the one before


@dataclass(frozen=True)
class RecordWindow:
    """Records of one owner: their `places` in the history, of which `shared` are in an earlier window."""

    machine: str
    backend: str
    number: int
    places: Sequence[int]
    shared: int
    is_last: bool
    environment: str = ""

    def tests(self, record: int) -> bool:
        """Return whether a step that begins at this place of the window is for this window to find."""
        return (not self.shared or record >= OVERLAP // 2) and (self.is_last or record < self.end)

    @property
    def end(self) -> int:
        """The place from which on steps are for the next window to find."""
        return len(self.places) if self.is_last else len(self.places) - OVERLAP // 2


def windows_of(history: store_History) -> Iterator[RecordWindow]:
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
    """A course with the GPU of each run: the same number in `boards` for the same one, in every course of a history.

    It is the point's own board, since a merged record has several; where that is unknown, or several boards measured
    the case, what its record was measured on.
    """

    boards: Ints


def window_courses(history: store_History, backend: str | None = None) -> Iterator[list[BoardCourse]]:
    """Yield for each window, of one backend or of all, the courses of its runs that no earlier window has.

    A key without a trusted run there has none. No more than one window is in memory.
    """
    numbers: dict[str, int] = {}
    for window in windows_of(history):
        if backend in (None, window.backend):
            yield list(_own_courses(history.part(window.places), window, numbers))


def _own_courses(part: store_History, window: RecordWindow, numbers: dict[str, int]) -> Iterator[BoardCourse]:
    """Yield the courses of a window's own runs, as arrays that hold no others."""
    places, points = numpy.array(window.places, "i4"), SeriesPoints.of(part)
    devices = _numbered((facts.device for facts in part.records), numbers)
    known = _numbered(points.vocabulary["board"], numbers)
    unknown = numbers.get("", -1)
    for one in series_of(part, points=points):
        own = one.records >= window.shared
        if own.any():
            boards, within = known[one.boards[own]], one.records[own]
            boards = numpy.where(boards == unknown, devices[within], boards)
            yield BoardCourse(one.key, places[within], one.values[own], boards)


def courses(history: store_History, wanted: Collection[Key] | None = None) -> Iterator[BoardCourse]:
    """Yield the whole course of every key with a trusted run, or of the `wanted` ones; they may be many."""
    found: dict[Key, list[BoardCourse]] = {}
    for window in window_courses(history):
        for one in window:
            if wanted is None or one.key in wanted:
                found.setdefault(one.key, []).append(one)
    for key, parts in found.items():
        yield BoardCourse(
            key,
            numpy.concatenate([one.records for one in parts]),
            numpy.concatenate([one.values for one in parts]),
            numpy.concatenate([one.boards for one in parts]),
        )


def _numbered(words: Iterable[str], numbers: dict[str, int]) -> Ints:
    """Return the number of each word; a new one gets the next."""
    return numpy.array([numbers.setdefault(word, len(numbers)) for word in words], "i4")
