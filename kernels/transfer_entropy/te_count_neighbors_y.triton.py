"""Neighbours of points in Triton: a program compares a block of points with all others, a block at a time."""

import triton
import triton.language as tl

from prism_bench import Launch, Tune, Variant, Workload


@triton.jit
def te_count_neighbors_y(
    y_future, y_past, eps, counts, n, DY: tl.constexpr, POINTS: tl.constexpr, OTHERS: tl.constexpr
):
    own = tl.program_id(0) * POINTS + tl.arange(0, POINTS)
    radius = tl.load(eps + own, own < n, other=0.0)
    future = tl.load(y_future + own, own < n, other=0.0)
    found = tl.zeros([POINTS, OTHERS], tl.int32)
    for first in range(0, n, OTHERS):
        others = first + tl.arange(0, OTHERS)
        farthest = tl.abs(future[:, None] - tl.load(y_future + others, others < n, other=0.0)[None, :])
        for axis in tl.static_range(DY):
            mine = tl.load(y_past + own * DY + axis, own < n, other=0.0)
            theirs = tl.load(y_past + others * DY + axis, others < n, other=0.0)
            farthest = tl.maximum(farthest, tl.abs(mine[:, None] - theirs[None, :]))
        near = (farthest < radius[:, None]) & (others < n)[None, :] & (own[:, None] != others[None, :])
        found += near.to(tl.int32)
    tl.store(counts + own, tl.sum(found, 1), own < n)


def launch(n: int, dy: int, points: int, others: int) -> Launch:
    return Launch(triton.cdiv(n, points), constants={"DY": dy, "POINTS": points, "OTHERS": others, "num_warps": 4})


variant = Variant(
    "in Triton: a block of points with all others, a block at a time",
    entry="te_count_neighbors_y",
    launch=launch,
    more_edges=(Workload(n=272), Workload(n=272, dx=3, dy=3, points=32)),
    tune=Tune(points=(32, 16, 64), others=(128, 64, 256), default={"points": lambda n: 16 if n <= 16_384 else 32}),
)
