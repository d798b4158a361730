"""From points to series: one case's metric over the runs of a machine, without what evidence says cannot be trusted."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy
from scipy.ndimage import median_filter

from prism_bench.analysis.trend.step import Key
from prism_bench.metric import DERIVED, MEASURED
from prism_bench.store.history import History

CLOCK_NIGHTS = 15  # nights whose median clock is the usual one: a state that lasts longer than half of them is no visit
CLOCK_SHARE = 0.02  # off the usual clock by more, a time says nothing about the code

_KEY = ("case", "metric", "subject")


@dataclass(frozen=True, eq=False)
class CaseSeries:
    """The trusted nights of one `key`, oldest first: `records` are their places in the history, `values` the medians.

    `clocks` are in hertz, 0 where none was read; `codes` tell machine codes apart. `aside` are the nights that
    were set aside, by reason.
    """

    key: Key
    records: numpy.ndarray
    values: numpy.ndarray
    clocks: numpy.ndarray
    codes: numpy.ndarray
    aside: dict[str, int]

    @property
    def logs(self) -> numpy.ndarray:
        """The values as logarithms: their differences are relative changes."""
        return numpy.log(self.values)


def series_of(history: History) -> Iterator[CaseSeries]:
    """Every series of the history; a key without a single trusted night is one with empty arrays.

    Set aside is what its record does not trust, and a night on which the device ran at another clock than in the
    nights around it: such a night tells about the clock.
    """
    columns, groups = _grouped(history)
    names = {name: history.points[name].cat.categories.tolist() for name in (*_KEY, "doubt")}
    sound = numpy.array([doubt == "" for doubt in names["doubt"]], bool)
    for rows in groups:
        first = rows[0]
        place, (case, metric, subject) = columns["owner"][first], (names[n][columns[n][first]] for n in _KEY)
        key = Key(*columns["owners"][place], case, metric, subject)
        own = {name: columns[name][rows] for name in ("record", "value", "clock", "code", "doubt")}
        yield _series(key, own, sound[own["doubt"]], names["doubt"])


def _grouped(history):
    """The columns as arrays, and for every series its rows, oldest first."""
    points = history.points
    columns = {name: points[name].cat.codes.to_numpy() for name in (*_KEY, "code", "doubt")}
    columns |= {name: points[name].to_numpy() for name in ("record", "value", "clock")}
    owners = [(facts.machine, facts.backend) for facts in history.records]
    columns["owners"] = list(dict.fromkeys(owners))
    owner = numpy.array([columns["owners"].index(one) for one in owners], "i4")
    columns["owner"] = owner[columns["record"]] if len(points) else numpy.empty(0, "i4")
    number = columns["owner"].astype("i8")
    for name in _KEY:
        number = number * len(points[name].cat.categories) + columns[name]
    order = numpy.argsort(number, kind="stable")
    return columns, numpy.split(order, numpy.flatnonzero(numpy.diff(number[order])) + 1) if len(order) else []


def _series(key, columns, trusted, doubts):
    aside = {}
    for doubt in columns["doubt"][~trusted].tolist():
        aside[doubts[doubt]] = aside.get(doubts[doubt], 0) + 1
    visits = visiting(columns["clock"][trusted])
    if visits.any():
        aside["the device ran at another clock than in the nights around"] = int(visits.sum())
    kept = {name: column[trusted][~visits] for name, column in columns.items()}
    return CaseSeries(key, kept["record"], kept["value"], kept["clock"], kept["code"], aside)


def visiting(clocks: numpy.ndarray) -> numpy.ndarray:
    """Which nights ran at a clock that is not the usual one of the nights around them; none where no clock was read."""
    known = clocks > 0
    found = numpy.zeros(len(clocks), bool)
    if known.any():
        read = clocks[known].astype(float)
        found[known] = numpy.abs(read / _usual(read) - 1) > CLOCK_SHARE
    return found


def _usual(clocks):
    """At each night the median of CLOCK_NIGHTS nights: those around it, at both ends the first and the last ones."""
    half = CLOCK_NIGHTS // 2
    if len(clocks) <= CLOCK_NIGHTS:
        return numpy.full(len(clocks), numpy.median(clocks))
    middle = median_filter(clocks, CLOCK_NIGHTS)[half:-half]
    return numpy.pad(middle, half, mode="edge")


def higher_is_better(metric: str) -> bool:
    """Whether a larger value of the metric is better; of a metric that is not ours, a smaller one is."""
    known = MEASURED.get(metric) or DERIVED.get(metric)
    return known is not None and known.better == "higher"
