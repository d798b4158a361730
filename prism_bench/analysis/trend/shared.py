"""Moves that other cases share at a run: what a change of every case, such as another GPU unit, explains."""

from collections.abc import Iterable, Mapping
from math import copysign

import numpy

from prism_bench.analysis.trend.series import CaseSeries

AROUND = 5  # runs before and after, by whose medians a move is measured
FEWEST = 3  # other cases: fewer show nothing
COMMON = 0.75  # of the others, sorted by how far they moved; a quarter of them moved at least so far

_Owner = tuple[str, str, str]


class SharedMoves:
    """Moves of the cases whose machine code stayed the same, run by run, computed when they are needed."""

    def __init__(self, series: Iterable[CaseSeries], unknown: int) -> None:
        self._unknown = unknown
        self._series: dict[_Owner, list[CaseSeries]] = {}
        self._moves: dict[tuple[_Owner, int], Mapping[str, float]] = {}
        for one in series:
            if one.key.subject == "kernel":
                self._series.setdefault(_owner(one), []).append(one)

    def move(self, series: CaseSeries, place: int, change: float) -> float | None:
        """Return the change of log time that other cases share with a `change` of the series at `place`.

        Cases differ in what they use of a device, so it is enough that a quarter of them moved. None where fewer than
        FEWEST other cases kept their machine code.
        """
        record = int(series.records[place])
        moves = [move for case, move in self._moves_at(_owner(series), record).items() if case != series.key.case]
        if len(moves) < FEWEST:
            return None
        sign = copysign(1.0, change)
        return sign * max(0.0, float(numpy.quantile(sign * numpy.array(moves), COMMON)))

    def _moves_at(self, owner: _Owner, record: int) -> Mapping[str, float]:
        if (owner, record) not in self._moves:
            found = ((one.key.case, self._move(one, record)) for one in self._series.get(owner, ()))
            self._moves[owner, record] = {case: move for case, move in found if move is not None}
        return self._moves[owner, record]

    def _move(self, series: CaseSeries, record: int) -> float | None:
        """Return how far the series moved from the runs before the record to those from it on; None with new code."""
        place = int(numpy.searchsorted(series.records, record))
        inside = 0 < place < len(series.records) and int(series.records[place]) == record
        if not inside or series.codes[place - 1] != series.codes[place] or series.codes[place] == self._unknown:
            return None
        before, after = series.values[max(0, place - AROUND) : place], series.values[place : place + AROUND]
        return float(numpy.log(numpy.median(after) / numpy.median(before)))


def _owner(series: CaseSeries) -> _Owner:
    return series.key.machine, series.key.backend, series.key.metric
