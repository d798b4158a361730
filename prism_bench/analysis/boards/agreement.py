"""A/A over boards: how often one machine code on two boards would be called changed, with and without the factors.

Every session is judged once against each other board: the factor is learned anew without it, so that no time is judged
by what it was learned from.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import hypot, inf, log1p

import numpy

from prism_bench.analysis.boards.factors import BoardFactor, BoardModel
from prism_bench.analysis.boards.observed import Observations
from prism_bench.analysis.compare.estimate import quantile
from prism_bench.analysis.compare.verdict import RULES

MOST_SESSIONS = 200  # the newest; each is one more fit


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
        return BoardAgreement(self.given + other.given, self.false + other.false, self.withheld + other.withheld,
                              self.plain + other.plain)  # fmt: skip


def agreement(seen: Observations) -> BoardAgreement:
    """Return the verdicts on every session of the newest against every other board."""
    found = BoardAgreement()
    sessions: list[int] = numpy.unique(seen.sessions).tolist()
    newest = sorted(sessions, key=seen.records.__getitem__, reverse=True)[:MOST_SESSIONS]
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
