"""Persistence of superlevel sets for the reference of persistence.cuh: basins of maxima, merged in falling order."""

import numpy as np

from prism_bench.spec import AnyArray, ArrayModule


def order_of(x: AnyArray) -> AnyArray:
    """Ranks in which pixels enter, the first the highest; ties by index, NaN never (rank -1)."""
    flat = x.reshape(-1)
    entering = np.argsort(np.where(np.isnan(flat), np.inf, -flat), kind="stable")
    rank = np.empty(flat.size, dtype="int64")
    rank[entering] = np.arange(flat.size, 0, -1)
    return np.where(np.isnan(flat), -1, rank).reshape(x.shape)


def steps(connectivity: int) -> list[tuple[int, ...]]:
    return [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i or j) and (connectivity == 8 or not (i and j))]


def shifted(array: AnyArray, i: int, j: int, outside: int) -> AnyArray:
    """What is i rows below and j columns to the right of each pixel."""
    result = np.full_like(array, outside)
    rows, cols = array.shape
    to = slice(max(0, -i), rows - max(0, i)), slice(max(0, -j), cols - max(0, j))
    result[to] = array[max(0, i) : rows + min(0, i), max(0, j) : cols + min(0, j)]
    return result


def basins(rank: AnyArray, connectivity: int) -> AnyArray:
    """The local maximum that steepest ascent from each pixel ends at."""
    above, best = np.arange(rank.size, dtype="int32").reshape(rank.shape), rank.copy()
    place = above.copy()
    for i, j in steps(connectivity):
        other = shifted(rank, i, j, -1)
        above = np.where(other > best, shifted(place, i, j, -1), above)
        best = np.maximum(best, other)
    above = np.where(rank < 0, place, above).reshape(-1)
    while (above[above] != above).any():
        above = above[above]
    return above


def passes(rank: AnyArray, basin: AnyArray, connectivity: int) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Pairs of basins that meet, and the rank of the first pixel at which they do."""
    own, size = basin.reshape(rank.shape), rank.size
    entering = np.argsort(-rank.reshape(-1), kind="stable")[: (rank > 0).sum()]
    others = np.empty((len(entering), len(steps(connectivity))), dtype="int32")
    for k, (i, j) in enumerate(steps(connectivity)):
        earlier = shifted(rank, i, j, -1) > rank
        others[:, k] = np.where(earlier, shifted(own, i, j, -1), own).reshape(-1)[entering]
    mine = basin[entering][:, None]
    pixel, k = np.nonzero(others != mine)  # the first to enter first
    one, two = basin[entering[pixel]].astype("int64"), others[pixel, k].astype("int64")
    pairs, first = np.unique(np.minimum(one, two) * size + np.maximum(one, two), return_index=True)
    return pairs // size, pairs % size, rank.reshape(-1)[entering[pixel[first]]]


def merges(low: AnyArray, high: AnyArray, ranks: AnyArray, pixels: int) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Those of a spanning forest, by the highest pixels: no other joins what is apart. In falling order."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import minimum_spanning_tree

    weights = coo_array((pixels + 1.0 - ranks, (low, high)), shape=(pixels, pixels))
    forest = minimum_spanning_tree(weights.tocsr()).tocoo()
    order = np.argsort(forest.data, kind="stable")
    return forest.row[order], forest.col[order], (pixels + 1 - forest.data[order]).astype("int64")


def deaths(x: AnyArray, least: float, connectivity: int) -> AnyArray:
    """When the component of each local maximum dies by the elder rule; other pixels die as they enter."""
    flat, death = x.reshape(-1), x.reshape(-1).copy()
    if x.size == 0:
        return death.reshape(x.shape)
    ranked = order_of(x)
    rank, pixel_of = ranked.reshape(-1), np.zeros(x.size + 1, "int64")
    pixel_of[rank[rank > 0]] = np.flatnonzero(rank > 0)
    basin = basins(ranked, connectivity)
    death[(basin == np.arange(x.size)) & (rank > 0)] = -np.inf
    older = {}

    def oldest(p: int) -> int:
        while p in older:
            p = older[p]
        return p

    low, high, ranks = merges(*passes(ranked, basin, connectivity), x.size)
    values = flat[pixel_of[ranks]]
    for p, q, value in zip(low.tolist(), high.tolist(), values.tolist(), strict=True):
        a, b = oldest(p), oldest(q)
        young, old = (a, b) if rank[a] < rank[b] else (b, a)
        older[young] = old
        for passed in (p, q):  # a shorter way next time
            if passed != old:
                older[passed] = old
        death[young] = flat[young] if flat[young] - value < least else value
    return death.reshape(x.shape)


def on_host(x: AnyArray, xp: ArrayModule) -> AnyArray:
    return x if xp is np else x.get()


def reference(x: AnyArray, least: float, connectivity: int, xp: ArrayModule) -> AnyArray:
    return xp.asarray(deaths(on_host(x, xp), least, connectivity))
