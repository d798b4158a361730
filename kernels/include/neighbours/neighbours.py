"""Who launches the steps of `neighbours.cuh`, and distances as its references know them."""

from dataclasses import replace
from types import ModuleType
from typing import Any

from prism_bench import Launch, normal
from prism_bench.spec import AnyArray, ArrayModule, real

SAMPLES = replace(normal(), domain=real().with_finite_numbers())  # an infinite one has no distance to another

BLOCK, POINTS = 128, 4  # threads, points of each
BLOCKS = 4224  # shares of the neighbours bring small problems up to so many blocks
TABLE = 1 << 27  # minima that a problem may have, where a point has more than 2^13 neighbours


def group_of(n: int, least_group: int, runs: int = 1) -> int:
    """Neighbours of a group: few for few points; more for many, so that the table of minima stays small."""
    group = max(least_group, 32 if n < 4096 else 64)
    while group < 8192 and runs * n * -(-n // group) > TABLE:
        group *= 2
    return group


def splits_of(n: int, group: int, runs: int = 1) -> int:
    """Shares of the neighbours, of whole groups."""
    points = max(1, -(-n // (BLOCK * POINTS)))
    return max(1, min(32, BLOCKS // (points * runs), -(-n // group)))


def pairs(entry: str, arguments: tuple[str, ...], n: int, splits: int, runs: int = 1) -> Launch:
    """A step that compares every point with all neighbours, share by share."""
    return Launch((-(-n // (BLOCK * POINTS)) * splits, runs), BLOCK, entry=entry, arguments=arguments)


def warps(entry: str, arguments: tuple[str, ...], n: int, runs: int = 1) -> Launch:
    """A step with a warp for every point."""
    return Launch((-(-n // (BLOCK // 32)), runs), BLOCK, entry=entry, arguments=arguments)


def slabs(n: int) -> Any:
    """Rows of the table of pairs, 2^24 pairs at once."""
    rows = max(1, (1 << 24) // max(n, 1))
    return [slice(first, min(n, first + rows)) for first in range(0, n, rows)]


def apart(space: AnyArray, own: Any, xp: ArrayModule) -> AnyArray:
    """Maximum norms from float32 differences, on which strict comparisons depend; a point is not its own neighbour."""
    most = xp.zeros((own.stop - own.start, len(space)), "float32")
    for column in space.T.astype("float32"):
        most = xp.maximum(most, xp.abs(column[own, None] - column[None]))
    at = xp.arange(len(most))
    most[at, at + own.start] = xp.inf
    return xp.where(xp.isnan(most), xp.inf, most)


def nearest(x: AnyArray, k: int, xp: ArrayModule) -> tuple[AnyArray, AnyArray]:
    """Distances and indices of the k nearest in order: k times the smallest.

    Of equal distances the lower index comes first.
    """
    n = len(x)
    x = xp.where(xp.isfinite(x).all(axis=1)[:, None], x, xp.nan)
    distances, indices = xp.empty((n, k), "float32"), xp.empty((n, k), "int32")
    for own in slabs(n):
        table = apart(x, own, xp)
        at = xp.arange(len(table))
        for q in range(k):
            index = table.argmin(axis=1)
            distances[own, q] = table[at, index]
            indices[own, q] = xp.where(xp.isfinite(distances[own, q]), index, -1)
            table[at, index] = xp.inf
    return distances, indices


def kth_smallest(table: AnyArray, k: int, xp: ArrayModule) -> AnyArray:
    """k times the smallest, which then counts no more."""
    table, at = table.copy(), xp.arange(len(table))
    for _ in range(k - 1):
        table[at, table.argmin(axis=1)] = xp.inf
    return table.min(axis=1)


def _space(arrays: tuple[AnyArray, ...], xp: ArrayModule) -> AnyArray:
    """The points of several arrays, of a row or a number each, as one."""
    return xp.concatenate([array.reshape(len(array), -1) for array in arrays], axis=1)


def kth_distance(arrays: tuple[AnyArray, AnyArray, AnyArray], k: int, xp: ArrayModule) -> AnyArray:
    """The distance of each point's k-th neighbour, ties counted."""
    space = _space(arrays, xp)
    slab = [kth_smallest(apart(space, own, xp), k, xp) for own in slabs(len(space))]
    return xp.concatenate(slab)


def nearer_than(arrays: tuple[AnyArray, ...], radius: AnyArray, xp: ArrayModule) -> AnyArray:
    """How many other points are strictly nearer to each than its radius."""
    space = _space(arrays, xp)
    return xp.concatenate([(apart(space, own, xp) < radius[own, None]).sum(axis=1) for own in slabs(len(space))])


def psi(n: AnyArray, special: ModuleType) -> AnyArray:
    """The digamma function."""
    return special.digamma(n)


def psi_size(n: AnyArray, special: ModuleType) -> AnyArray:
    return abs(special.digamma(n))
