"""Persistence of superlevel sets for the reference of persistence.cuh: basins of maxima, merged in falling order."""

import numpy as np


def order_of(x):
    """Ranks in which pixels enter, the first the highest; ties by index, NaN never (rank -1)."""
    flat = x.reshape(-1)
    entering = np.argsort(np.where(np.isnan(flat), np.inf, -flat), kind="stable")
    rank = np.empty(flat.size, dtype="int64")
    rank[entering] = np.arange(flat.size, 0, -1)
    return np.where(np.isnan(flat), -1, rank).reshape(x.shape)


def shifted(array, i, j, outside):
    """What stands i rows below and j columns to the right of each pixel."""
    padded = np.pad(array, 1, constant_values=outside)
    return padded[1 + i : 1 + i + array.shape[0], 1 + j : 1 + j + array.shape[1]]


def deaths(x, least, connectivity):
    """When the component of each local maximum dies by the elder rule; other pixels die as they enter."""
    death = x.reshape(-1).copy()
    if x.size == 0:
        return death.reshape(x.shape)
    rank, place = order_of(x), np.arange(x.size).reshape(x.shape)
    steps = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i or j) and (connectivity == 8 or not (i and j))]
    ranks = np.stack([rank, *(shifted(rank, i, j, -1) for i, j in steps)])
    places = np.stack([place, *(shifted(place, i, j, -1) for i, j in steps)])
    above = np.take_along_axis(places, ranks.argmax(axis=0)[None], axis=0)[0].reshape(-1)
    while (above[above] != above).any():
        above = above[above]
    flat = rank.reshape(-1)
    maxima = np.flatnonzero((above == place.reshape(-1)) & (flat > 0))
    death[maxima] = -np.inf
    older = {int(p): int(p) for p in maxima}

    def oldest(p):
        while older[p] != p:
            p = older[p]
        return p

    meetings = [
        (flat[p], p, q)
        for k in range(1, len(ranks))
        for p, q in zip(*(part[(ranks[k] > rank) & (rank > 0)].tolist() for part in (place, places[k])), strict=True)
        if above[p] != above[q]
    ]
    for _, p, q in sorted(meetings, reverse=True):
        one, other = sorted((oldest(int(above[p])), oldest(int(above[q]))), key=lambda m: flat[m])
        if one != other:
            older[one] = other
            death[one] = x.reshape(-1)[one] if x.reshape(-1)[one] - x.reshape(-1)[p] < least else x.reshape(-1)[p]
    return death.reshape(x.shape)


def reference(x, least, connectivity, xp):
    on_host = x if xp is np else x.get()
    return xp.asarray(deaths(on_host, least, connectivity))
