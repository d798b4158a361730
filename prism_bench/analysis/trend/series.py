"""Series of points: one case's metric over the runs of a machine, without what evidence shows cannot be trusted.

Where several boards of one kind measured the runs, each run is divided by its board's factor. The factors are learned
from the window's own records, so that what a window finds depends on nothing else. A step at which other boards take
over counts only beyond what their factors may be off by; where they are not known, that is what boards which nobody
compared may differ by.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import exp, prod, sqrt
from typing import Any

import numpy
from numpy.typing import NDArray

from prism_bench.analysis.boards.factors import BoardFactor, BoardModel
from prism_bench.analysis.boards.observed import observed, several_boards
from prism_bench.analysis.trend.runs import Floats, filtered
from prism_bench.analysis.trend.step import Key
from prism_bench.record.identity import Owner
from prism_bench.record.store.history import History
from prism_bench.spec.metric import DERIVED, MEASURED
from prism_bench.units import share_text

CLOCK_RUNS = 15  # runs whose median clock is the usual one: a state that lasts longer than half of them is no visit
CLOCK_SHARE = 0.02  # off the usual clock by more, a time shows nothing about the code

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
        return {board: list(after).count(board) / len(after) - list(before).count(board) / len(before)
                for board in {*before, *after}}  # fmt: skip


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
        close = (highest / lowest - 1 <= CLOCK_SHARE) & (lowest > 0)
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
        found[known] = numpy.abs(read / _usual(read) - 1) > CLOCK_SHARE
    return found


def _usual(clocks: Floats) -> Floats:
    """Return at each run the median of CLOCK_RUNS runs: those around it, at both ends the first and the last ones."""
    half = CLOCK_RUNS // 2
    if len(clocks) <= CLOCK_RUNS:
        return numpy.full(len(clocks), numpy.median(clocks))
    middle = filtered(clocks, CLOCK_RUNS, "reflect")[half:-half]
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
