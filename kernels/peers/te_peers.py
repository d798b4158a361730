"""Peers of the steps of transfer entropy: distances in the maximum norm by PyTorch, a slab of rows at a time."""

from collections.abc import Iterator
from types import ModuleType
from typing import Any

from prism_bench.spec import AnyArray

SLAB = 1 << 14  # rows of a matrix of distances that exist at a time
MOST_EAGER = 1 << 16  # points; beyond them a call takes about a second


def slabs(torch: ModuleType, *parts: AnyArray) -> Iterator[tuple[Any, Any]]:
    """Yield distances of some points from all, a coordinate at a time, and a mask of those of a point from itself.

    Compiled, neither is written to memory where what follows reduces it. `torch.cdist` has other roundings.
    """
    columns = [column for part in parts for column in (part.unbind(1) if part.ndim == 2 else (part,))]
    place = torch.arange(len(columns[0]), device=columns[0].device)
    for first in range(0, len(place), SLAB):
        rows = slice(first, first + SLAB)
        most = (columns[0][rows, None] - columns[0]).abs()
        for column in columns[1:]:
            most = torch.maximum(most, (column[rows, None] - column).abs())
        yield most, place[rows, None] == place


def radii_of(torch: ModuleType, k: int, *parts: AnyArray) -> Any:
    """Return the distance of each point's k-th nearest neighbour."""
    if len(parts[0]) > MOST_EAGER:
        raise ValueError("selection from whole rows of distances takes about a second a call at this size")
    others = (most.masked_fill(own, float("inf")) for most, own in slabs(torch, *parts))
    return torch.cat([far.topk(k, dim=1, largest=False).values[:, -1] for far in others])


def counts_within(torch: ModuleType, eps: AnyArray, *parts: AnyArray) -> Any:
    """Return how many neighbours of each point are nearer than its radius."""
    if len(eps) > MOST_EAGER and not torch.compiler.is_compiling():
        raise ValueError("a call in eager mode takes about a second at this size")
    near = zip(slabs(torch, *parts), torch.split(eps, SLAB), strict=True)
    return torch.cat([((most < radius[:, None]) & ~own).sum(1) for (most, own), radius in near]).int()
