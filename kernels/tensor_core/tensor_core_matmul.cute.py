"""Product of half matrices in the CuTe DSL: tiles are multiplied from a ring in shared memory that copies fill ahead.

On compute capability 9.0, warpgroups multiply large tiles (wgmma), elsewhere warps (mma.sync). Rows that are not whole
16-byte pieces are copied number by number. Neighbouring tiles are walked in groups of rows, so that they find their
operands in L2.
"""

from typing import Any

import cutlass
import cutlass.cute as cute

from prism_bench import Launch, Rule, Tune, Variant, Workload
from prism_bench.spec import Device

from ..include.languages.cute_tiles import fill_tile, swizzled, tile_layout
from ..include.products.half_product import LAYOUTS
from ..include.tensor_cores.tensor_tile import WARPGROUPS

GROUP = 8  # rows of tiles that are walked together


@cute.jit
def tile_place(tile: cutlass.Int32, m: cutlass.Int32, n: cutlass.Int32, sizes: cutlass.Constexpr):
    """Return the first row and column of a tile."""
    in_group = GROUP * ((n + sizes[1] - 1) // sizes[1])
    first = tile // in_group * GROUP
    rows = cutlass.min((m + sizes[0] - 1) // sizes[0] - first, GROUP)
    return (first + tile % in_group % rows) * sizes[0], tile % in_group // rows * sizes[1]


@cute.jit
def store_sums(
    sums: cute.Tensor, c: cute.Pointer, place: Any, extents: Any, coordinates: cute.Tensor, whole: cutlass.Constexpr
):
    """Store the thread's sums that are inside the matrix: two neighbours together where rows are `whole` pieces."""
    (row, col), (m, n) = place, extents
    together = 2 if whole else 1
    part = cute.make_rmem_tensor(together, cutlass.Float32)
    for at in cutlass.range_constexpr(0, cute.size(sums), together):
        here, there = row + coordinates[at][0], col + coordinates[at][1]
        for each in cutlass.range_constexpr(together):
            part[each] = sums[at + each]
        if here < m and there < n:
            begin = cute.assume(cutlass.Int64(here) * n + there, divby=together)
            cute.autovec_copy(part, cute.make_tensor(c + begin, cute.make_layout(together)))


@cute.kernel
def by_warps(
    a: cute.Pointer, b: cute.Pointer, c: cute.Pointer, m: cutlass.Int32, n: cutlass.Int32, k: cutlass.Int32,
    mma: cute.TiledMma, constants: cutlass.Constexpr,
):  # fmt: skip
    """Multiply a tile by warp-wide instructions, a depth at a time."""
    (rows, cols, depth), stages, deep, whole = constants
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    threads = mma.size
    row, col = tile_place(block, m, n, (rows, cols))
    memory = cute.arch.get_dyn_smem(cutlass.Float16, 128)
    left = cute.make_tensor(memory, tile_layout(rows, depth, stages, deep[0]))
    right = cute.make_tensor(memory + rows * depth * stages, tile_layout(cols, depth, stages, deep[1]))
    strides = tuple(cutlass.Int64(k if one else other) for one, other in zip(deep, (m, n), strict=True))
    mine = mma.get_slice(thread)
    sums = cute.make_rmem_tensor(mma.partition_shape_C((rows, cols)), cutlass.Float32)
    ones = mma.make_fragment_A(mine.partition_A(left)[None, None, None, 0])
    others = mma.make_fragment_B(mine.partition_B(right)[None, None, None, 0])
    loads = [cute.make_copy_atom(cute.nvgpu.warp.LdMatrix8x8x16bOp(not one, 4), cutlass.Float16) for one in deep]
    load_left, load_right = cute.make_tiled_copy_A(loads[0], mma), cute.make_tiled_copy_B(loads[1], mma)
    from_left = load_left.get_slice(thread).partition_S(left)
    from_right = load_right.get_slice(thread).partition_S(right)
    to_left = load_left.get_slice(thread).retile(ones)
    to_right = load_right.get_slice(thread).retile(others)
    sums.fill(0.0)
    tiles = (k + depth - 1) // depth
    for ahead in cutlass.range_constexpr(stages - 1):
        if ahead < tiles:
            fill_tile(left[None, None, ahead], a, strides[0], (row, ahead * depth, m, k), (threads, deep[0], whole))
            fill_tile(right[None, None, ahead], b, strides[1], (col, ahead * depth, n, k), (threads, deep[1], whole))
        cute.arch.cp_async_commit_group()
    for tile in cutlass.range(tiles, unroll=1):
        cute.arch.cp_async_wait_group(stages - 2)
        cute.arch.sync_threads()
        ahead, slot = tile + stages - 1, (tile + stages - 1) % stages
        if ahead < tiles:
            fill_tile(left[None, None, slot], a, strides[0], (row, ahead * depth, m, k), (threads, deep[0], whole))
            fill_tile(right[None, None, slot], b, strides[1], (col, ahead * depth, n, k), (threads, deep[1], whole))
        cute.arch.cp_async_commit_group()
        for part in cutlass.range_constexpr(depth // 16):
            cute.copy(load_left, from_left[None, None, part, tile % stages], to_left[None, None, part])
            cute.copy(load_right, from_right[None, None, part, tile % stages], to_right[None, None, part])
        for part in cutlass.range_constexpr(depth // 16):
            cute.gemm(mma, sums, ones[None, None, part], others[None, None, part], sums)
    store_sums(sums, c, (row, col), (m, n), mine.partition_C(cute.make_identity_tensor((rows, cols))), whole)


def warpgroups_product(rows: int, cols: int, deep: tuple[bool, bool]) -> cute.TiledMma:
    """Return the product that adds to its sums, of a warpgroup for every 64 rows."""
    majors = [cute.nvgpu.OperandMajorMode.K if one else cute.nvgpu.OperandMajorMode.MN for one in deep]
    source = cute.nvgpu.warpgroup.OperandSource.SMEM
    instruction = cute.nvgpu.warpgroup.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (64, cols, 16), source, *majors)
    mma = cute.make_tiled_mma(instruction, cute.make_layout((rows // 64, 1, 1)))
    mma.set(cute.nvgpu.warpgroup.Field.ACCUMULATE, True)
    return mma


@cute.jit
def multiply_tile(mma: cute.TiledMma, sums: cute.Tensor, left: cute.Tensor, right: cute.Tensor):
    """Begin to add the products of two tiles in shared memory to a warpgroup's sums."""
    cute.nvgpu.warpgroup.fence()
    for part in cutlass.range_constexpr(cute.size(left, mode=[2])):
        cute.gemm(mma, sums, left[None, None, part], right[None, None, part], sums)
    cute.nvgpu.warpgroup.commit_group()


@cute.kernel
def by_warpgroups(
    a: cute.Pointer, b: cute.Pointer, c: cute.Pointer, m: cutlass.Int32, n: cutlass.Int32, k: cutlass.Int32,
    constants: cutlass.Constexpr,
):  # fmt: skip
    """Multiply a tile by warpgroups, a depth at a time, while copies fill the slot that all have multiplied from.

    Behind the barrier of a step, every warpgroup has waited for its products of the step before the last one.
    """
    (rows, cols, depth), stages, deep, whole = constants
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    mma = warpgroups_product(rows, cols, deep)
    threads = mma.size
    row, col = tile_place(block, m, n, (rows, cols))
    memory = cute.arch.get_dyn_smem(cutlass.Float16, 1024)
    places = memory, memory + rows * depth * stages
    layouts = tile_layout(rows, depth, stages, deep[0]), tile_layout(cols, depth, stages, deep[1])
    left, right = (cute.make_tensor(place, layout) for place, layout in zip(places, layouts, strict=True))
    operands = [swizzled(place, layout) for place, layout in zip(places, layouts, strict=True)]
    strides = tuple(cutlass.Int64(k if one else other) for one, other in zip(deep, (m, n), strict=True))
    group = mma.get_slice(cute.arch.make_warp_uniform(thread // 128) * 128)
    ones = mma.make_fragment_A(group.partition_A(operands[0]))
    others = mma.make_fragment_B(group.partition_B(operands[1]))
    sums = cute.make_rmem_tensor(mma.partition_shape_C((rows, cols)), cutlass.Float32)
    sums.fill(0.0)
    tiles = (k + depth - 1) // depth
    for ahead in cutlass.range_constexpr(stages - 2):
        if ahead < tiles:
            fill_tile(left[None, None, ahead], a, strides[0], (row, ahead * depth, m, k), (threads, deep[0], whole))
            fill_tile(right[None, None, ahead], b, strides[1], (col, ahead * depth, n, k), (threads, deep[1], whole))
        cute.arch.cp_async_commit_group()
    for tile in cutlass.range(tiles, unroll=1):
        cute.arch.cp_async_wait_group(stages - 3)
        cute.arch.fence_view_async_shared()
        cute.arch.sync_threads()
        multiply_tile(mma, sums, ones[None, None, None, tile % stages], others[None, None, None, tile % stages])
        ahead, slot = tile + stages - 2, (tile + stages - 2) % stages
        if ahead < tiles:
            fill_tile(left[None, None, slot], a, strides[0], (row, ahead * depth, m, k), (threads, deep[0], whole))
            fill_tile(right[None, None, slot], b, strides[1], (col, ahead * depth, n, k), (threads, deep[1], whole))
        cute.arch.cp_async_commit_group()
        cute.nvgpu.warpgroup.wait_group(1)
    cute.nvgpu.warpgroup.wait_group(0)
    coordinates = mma.get_slice(thread).partition_C(cute.make_identity_tensor((rows, cols)))
    store_sums(sums, c, (row, col), (m, n), coordinates, whole)


@cute.jit
def tensor_core_matmul(
    a: cute.Pointer, b: cute.Pointer, c: cute.Pointer, m: cutlass.Int32, n: cutlass.Int32, k: cutlass.Int32,
    layout: cutlass.Constexpr, whole: cutlass.Constexpr, rows: cutlass.Constexpr, cols: cutlass.Constexpr,
    depth: cutlass.Constexpr, stages: cutlass.Constexpr, warps: cutlass.Constexpr, shared: cutlass.Constexpr,
):  # fmt: skip
    """Launch `by_warps`: half of the warps share the rows, two the columns."""
    instruction = cute.nvgpu.warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
    grid = (warps // 2, 2, 1)
    mma = cute.make_tiled_mma(instruction, cute.make_layout(grid), permutation_mnk=(grid[0] * 16, grid[1] * 16, 16))
    deep = layout[0] == "n", layout[1] == "t"
    kernel: Any = by_warps(a, b, c, m, n, k, mma, ((rows, cols, depth), stages, deep, whole))
    kernel.launch(grid=(1, 1, 1), block=(32 * warps, 1, 1), smem=shared)


@cute.jit
def tensor_core_matmul_warpgroups(
    a: cute.Pointer, b: cute.Pointer, c: cute.Pointer, m: cutlass.Int32, n: cutlass.Int32, k: cutlass.Int32,
    layout: cutlass.Constexpr, whole: cutlass.Constexpr, rows: cutlass.Constexpr, cols: cutlass.Constexpr,
    depth: cutlass.Constexpr, stages: cutlass.Constexpr, warps: cutlass.Constexpr, shared: cutlass.Constexpr,
):  # fmt: skip
    """Launch `by_warpgroups`, which share the rows."""
    deep = layout[0] == "n", layout[1] == "t"
    kernel: Any = by_warpgroups(a, b, c, m, n, k, ((rows, cols, depth), stages, deep, whole))
    kernel.launch(grid=(1, 1, 1), block=(32 * warps, 1, 1), smem=shared)


# Rows, columns, depth, warps, stages; those of warpgroups have 64 rows for each.
WARPGROUP_TILES = ("128x256x64x8x4", "128x128x64x8x4", "64x256x64x4x4")
TILES = ("128x128x32x4x4", "128x128x32x8x4", "64x64x32x4x3", "128x64x32x4x4")


def shared_bytes(tile: str) -> int:
    rows, cols, depth, _, stages = map(int, tile.split("x"))
    return 2 * depth * stages * (rows + cols)


def has_warpgroups(device: Device) -> bool:
    return device.compute_capability == 90


def chosen(m: int, n: int, device: Device) -> str:
    """Large tiles for products that fill the device with them."""
    if m * n >= 128 * 128 * device.sm_count:
        return WARPGROUP_TILES[0] if has_warpgroups(device) else TILES[0]
    return "64x64x32x4x3"


def launch(m: int, n: int, k: int, layout: str, blocks: str, device: Device) -> Launch:
    sizes = chosen(m, n, device) if blocks == "auto" else blocks
    rows, cols, depth, warps, stages = map(int, sizes.split("x"))
    tile = {"rows": rows, "cols": cols, "depth": depth, "stages": stages, "warps": warps, "shared": shared_bytes(sizes)}
    whole = (m % 8, n % 8, k % 8) == (0, 0, 0)
    grid = -(-m // rows) * -(-n // cols)
    entry = "tensor_core_matmul_warpgroups" if sizes in WARPGROUP_TILES else "tensor_core_matmul"
    return Launch(grid, 32 * warps, entry=entry, constants={"layout": layout, "whole": whole, **tile})


variant = Variant(
    "in the CuTe DSL: instructions of warpgroups or warps, asynchronous copies",
    entry="tensor_core_matmul",
    rules=(Rule("layout is nn, nt, tn or tt", lambda layout: layout in LAYOUTS),),
    requires=lambda blocks: WARPGROUPS if blocks in WARPGROUP_TILES else None,
    launch=launch,
    more_edges=(
        Workload(m=512, n=512, k=80),
        Workload(m=1536, n=2816, k=80),  # fills 132 processors
        *(Workload(m=136, n=137, k=100, blocks=blocks) for blocks in TILES),
        *(Workload(m=136, n=n, k=k, blocks=blocks) for blocks in WARPGROUP_TILES for n, k in ((264, 200), (261, 100))),
        *(Workload(m=136, n=264, k=72, layout=layout, blocks=WARPGROUP_TILES[0]) for layout in ("nt", "tn", "tt")),
    ),
    tune=Tune(
        blocks=("auto", *WARPGROUP_TILES, *TILES),
        rules=(
            Rule(
                "warpgroups multiply on compute capability 9.0",
                lambda blocks, device: blocks not in WARPGROUP_TILES or has_warpgroups(device),
            ),
            Rule(
                "a ring that shared memory holds",
                lambda blocks, device: blocks == "auto" or shared_bytes(blocks) <= device.max_shared_bytes,
            ),
        ),
    ),
)
