"""Series of one kind of GPU whose runs several boards measured: each run divided by its board's factor.

The factors are learned from the window's own records, so that what a window finds depends on nothing else. A step at
which other boards take over counts only beyond what their factors may be off by; where they are not known, that is what
boards which nobody compared may differ by.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, sqrt

import numpy

from prism_bench.analysis.boards.factors import BoardFactor, BoardModel
from prism_bench.analysis.boards.observed import observed, several_boards
from prism_bench.analysis.trend.series import CaseSeries
from prism_bench.record.store import History
from prism_bench.units import share_text


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
