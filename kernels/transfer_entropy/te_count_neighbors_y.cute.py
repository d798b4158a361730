"""Neighbours of points in the CuTe DSL: a warp has several points, its lanes share the neighbours in shared memory."""

from typing import Any

import cutlass
import cutlass.cute as cute

from prism_bench import Launch, Tune, Variant, Workload

from ..include.languages.cute_rows import WARP, added, warp_reduced

TILE = 512  # neighbours in shared memory
INFINITY = float("inf")


@cute.jit
def read_point(future: cute.Pointer, past: cute.Pointer, place: cutlass.Int32, n: cutlass.Int32, point: cute.Tensor):
    """Read a point: infinities where it is not finite or there is none, so that it is near to none."""
    point.fill(INFINITY)
    if place < n:
        point[0] = future[place]
        finite = cute.math.absf(point[0]) < INFINITY
        for axis in cutlass.range_constexpr(1, cute.size(point)):
            point[axis] = past[cutlass.Int64(place) * (cute.size(point) - 1) + axis - 1]
            finite = finite and cute.math.absf(point[axis]) < INFINITY
        if not finite:
            point.fill(INFINITY)


@cute.jit
def distance(one: cute.Tensor, other: cute.Tensor):
    """Return the largest difference of two points; NaN, which is near to nothing, for two at infinity."""
    farthest = cute.math.absf(one[0] - other[0])
    for axis in cutlass.range_constexpr(1, cute.size(one)):
        farthest = cute.arch.fmax(farthest, cute.math.absf(one[axis] - other[axis]))
    return farthest


@cute.kernel
def count(
    future: cute.Pointer, past: cute.Pointer, eps: cute.Pointer, counts: cute.Pointer, n: cutlass.Int32,
    constants: cutlass.Constexpr,
):  # fmt: skip
    """Count the neighbours of the warp's points; a point that counted itself is taken off."""
    threads, axes, own = constants
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    lane, begin = thread % WARP, (block * (threads // WARP) + thread // WARP) * own
    tile = cute.make_tensor(cute.arch.alloc_smem(cutlass.Float32, axes * TILE, 16), cute.make_layout((TILE, axes)))
    points, radius = cute.make_rmem_tensor((axes, own), cutlass.Float32), cute.make_rmem_tensor(own, cutlass.Float32)
    found, near = (cute.make_rmem_tensor(own, kind) for kind in (cutlass.Int32, cutlass.Float32))
    other = cute.make_rmem_tensor(axes, cutlass.Float32)
    for point in cutlass.range_constexpr(own):
        read_point(future, past, begin + point, n, points[None, point])
        radius[point] = eps[begin + point] if begin + point < n else cutlass.Float32(0)
        found[point] = cutlass.Int32(0)
    for first in cutlass.range(0, n, TILE, unroll=1):
        cute.arch.sync_threads()
        for at in cutlass.range(thread, TILE, threads, unroll=1):
            read_point(future, past, first + at, n, other)
            for axis in cutlass.range_constexpr(axes):
                tile[at, axis] = other[axis]
        cute.arch.sync_threads()
        near.fill(0.0)  # of this tile: sums of floats leave more to the units that compare
        for at in cutlass.range(lane, cutlass.min(TILE, (n - first + WARP - 1) // WARP * WARP), WARP, unroll=2):
            for axis in cutlass.range_constexpr(axes):
                other[axis] = tile[at, axis]
            for point in cutlass.range_constexpr(own):
                is_near = distance(points[None, point], other) < radius[point]
                near[point] = near[point] + (cutlass.Float32(1) if is_near else cutlass.Float32(0))
        for point in cutlass.range_constexpr(own):
            found[point] = found[point] + near[point].to(cutlass.Int32)
    for point in cutlass.range_constexpr(own):
        itself = distance(points[None, point], points[None, point]) < radius[point]
        total = warp_reduced(found[point], added) - (cutlass.Int32(1) if itself else cutlass.Int32(0))
        if begin + point < n and lane == point:
            counts[begin + point] = total


@cute.jit
def te_count_neighbors_y(
    y_future: cute.Pointer, y_past: cute.Pointer, eps: cute.Pointer, counts: cute.Pointer, n: cutlass.Int32,
    threads: cutlass.Constexpr, axes: cutlass.Constexpr, own: cutlass.Constexpr,
):  # fmt: skip
    """Launch `count`."""
    kernel: Any = count(y_future, y_past, eps, counts, n, (threads, axes, own))
    kernel.launch(grid=(1, 1, 1), block=(threads, 1, 1))


def launch(n: int, dy: int, own: int, block: int) -> Launch:
    constants = {"threads": block, "axes": 1 + dy, "own": own}
    return Launch(-(-n // (block // 32 * own)), block, constants=constants)


variant = Variant(
    "in the CuTe DSL: warps with several points",
    entry="te_count_neighbors_y",
    launch=launch,
    more_edges=(Workload(n=272), Workload(n=272, own=8), Workload(n=272, dx=3, dy=3, own=8)),
    tune=Tune(own=(8, 4, 2, 1), block=(256, 128), default={"own": lambda n: 8 if n > 12_000 else 4 if n > 6000 else 1}),
)
