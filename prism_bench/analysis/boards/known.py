"""What the history knows of the boards of one machine: their factors in every metric, learned when they are needed."""

from collections.abc import Callable

from prism_bench.analysis.boards.factors import BoardFactor, BoardModel
from prism_bench.analysis.boards.observed import observed
from prism_bench.record.store import History

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
            places = [place for place, facts in enumerate(history.records)
                      if (facts.machine, facts.backend) == self._owner]  # fmt: skip
            places.sort(key=lambda place: history.records[place].created)
            self._own = history.part(places[-RECENT:])
        return self._own

    def factor(self, metric: str, case: str, first: str, second: str) -> BoardFactor:
        """Return by how much the case takes longer on the second board than on the first."""
        return self.model(metric).factor(case, first, second)
