"""Placement levels of processes: what a difference between two groups of processes proves, however they differ.

A process may be placed well or badly (memory, clock, other tenants) and keep its level until it ends. Three processes
of either side then differ as two kernels would, without any spread within a side. Two answers follow. Enough processes
exclude it: the chance that processes dealt at random are separated, or nearly so, becomes small enough.
And where processes of one side differ by some level anywhere in the suite, a difference of that size proves nothing.
"""

from collections.abc import Sequence
from functools import cache
from math import comb

from prism_bench.analysis.compare.medians import Medians

# The chance of complete separation from which on levels explain no difference: 13 processes a side. It is that small
# because one process or two on the wrong side leave the difference almost as large, and are far more likely.
SUPPORTED = 2e-7
TRIMMED = 0.01  # the share of cases whose processes may stray alone, without witness against the others
STALE = 16.0  # times the stored variance: an F of 8 and 8 degrees of freedom that one case in 3,000 reaches
WITNESSES = 20  # cases, fewer of which may show no level by luck
FEW = 5  # fewer processes a side rarely show a level in one case, so no case is left out


@cache
def supported(processes_a: int, processes_b: int) -> bool:
    """Return whether so many processes a side exclude that they were dealt into two sides by chance.

    Two in all ways to choose A's processes separate the sides as far as possible: the smallest p of a permutation test.
    """
    return processes_a > 0 < processes_b and 2 / comb(processes_a + processes_b, processes_a) <= SUPPORTED


NEEDED = next(count for count in range(1, 99) if supported(count, count))


def level_floor(sides: Sequence[tuple[Medians, Medians]]) -> float:
    """Return the log difference between processes of one side that this suite shows: nearly the largest of all cases.

    Only a few processes a side show too little to leave any case out; of more, 1 % of the cases may stray alone.
    """
    spreads = sorted((max(_spread(a), _spread(b)) for a, b in sides), reverse=True)
    few = any(min(len(a.logs), len(b.logs)) < FEW for a, b in sides)
    return spreads[0 if few else min(int(TRIMMED * len(spreads)), len(spreads) - 1)] if spreads else 0.0


def stale_floor(sides: Sequence[tuple[Medians, Medians, float]]) -> float:
    """Return the same of cases whose noise is known, where it no longer holds.

    0 unless the variance of more than 1 % of them exceeds the known one by a factor (the third value) that chance
    excludes.
    """
    spreads = sorted((max(_spread(a), _spread(b)) for a, b, factor in sides if factor > STALE), reverse=True)
    alone = int(TRIMMED * len(sides))
    return spreads[alone] if len(spreads) > alone else 0.0


def _spread(side: Medians) -> float:
    return side.spread if side.logs else 0.0
