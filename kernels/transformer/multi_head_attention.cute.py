"""Attention in the CuTe DSL, as FlashAttention does it: a block of queries walks over the keys once.

Scores are scaled by log2(e) and weighted by exp2; the running maximum of a query to which no key is open is -inf, and
its weights are zero. Keys and values of the next step are copied while this one is computed. On compute capability 9.0
warpgroups multiply heads 64 or 128 wide (wgmma), with weights as operands in registers; elsewhere warps (mma.sync).
"""

from typing import Any

import cutlass
import cutlass.cute as cute

from prism_bench import Launch, Rule, Tune, Variant, Workload
from prism_bench.spec import Device

from ..include.languages.cute_attention import INFINITY, LOG2E, close_keys, scale_row, store_row, weigh_row
from ..include.languages.cute_tiles import fill_tile, swizzled, tile_layout
from ..include.tensor_cores.tensor_tile import WARPGROUPS


@cute.jit
def as_operand(weights: cute.Tensor):
    """Return weights as the first operand of a product: two instructions' columns are one's depth."""
    half = cute.make_rmem_tensor(weights.layout, cutlass.Float16)
    half.store(weights.load().to(cutlass.Float16))
    parts = cute.logical_divide(half.layout, (None, None, 2))
    shape = ((parts.shape[0], parts.shape[2][0]), parts.shape[1], parts.shape[2][1])
    stride = ((parts.stride[0], parts.stride[2][0]), parts.stride[1], parts.stride[2][1])
    return cute.make_tensor(half.iterator, cute.make_layout(shape, stride=stride))


@cute.jit
def multiply(mma: cute.TiledMma, sums: cute.Tensor, left: Any, right: Any, steps: cutlass.Constexpr):
    """Add a product of operands to sums: registers, with what is copied to them step by step, from where and how."""
    for step in cutlass.range_constexpr(steps):
        for _, copies in (left, right):
            if cutlass.const_expr(copies is not None):
                copy, source, target = copies
                cute.copy(copy, source[None, None, step], target[None, None, step])
        cute.gemm(mma, sums, left[0][None, None, step], right[0][None, None, step], sums)


@cute.kernel
def attend(
    q: cute.Pointer, k: cute.Pointer, v: cute.Pointer, mask: cute.Pointer, o: cute.Pointer, heads: cutlass.Int32,
    length: cutlass.Int32, width: cutlass.Int32, scale: cutlass.Float32, mma: cute.TiledMma,
    constants: cutlass.Constexpr,
):  # fmt: skip
    """Attend for the block's queries of one head: products and weights for a tile of keys at a time."""
    (queries, keys, depth), causal, masked, whole = constants
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    threads, tiles = mma.size, (length + queries - 1) // queries
    tile, head = block % tiles, block // tiles
    first = (tiles - 1 - tile) * queries  # the longest first where causal
    stride = cutlass.Int64(heads) * width
    base = cutlass.Int64(head // heads) * length * stride + head % heads * width
    if cutlass.const_expr(whole):
        base, stride = cute.assume(base, divby=8), cute.assume(stride, divby=8)
    memory = cute.arch.get_dyn_smem(cutlass.Float16, 128)
    one = cute.make_tensor(memory, tile_layout(queries, depth, 1, True))[None, None, 0]
    others = cute.make_tensor(memory + queries * depth, tile_layout(keys, depth, 2, True))
    values = cute.make_tensor(memory + (queries + 2 * keys) * depth, tile_layout(depth, keys, 2, False))
    mine = mma.get_slice(thread)
    scores = cute.make_rmem_tensor(mma.partition_shape_C((queries, keys)), cutlass.Float32)
    sums = cute.make_rmem_tensor(mma.partition_shape_C((queries, depth)), cutlass.Float32)
    held = [
        mma.make_fragment_A(mine.partition_A(one)),
        mma.make_fragment_B(mine.partition_B(others)[None, None, None, 0]),
        mma.make_fragment_B(mine.partition_B(values)[None, None, None, 0]),
    ]
    atoms = [
        cute.make_copy_atom(cute.nvgpu.warp.LdMatrix8x8x16bOp(turned, 4), cutlass.Float16) for turned in (False, True)
    ]
    load_one, load_other = cute.make_tiled_copy_A(atoms[0], mma), cute.make_tiled_copy_B(atoms[0], mma)
    load_value = cute.make_tiled_copy_B(atoms[1], mma)
    from_one = load_one.get_slice(thread).partition_S(one)
    from_others = load_other.get_slice(thread).partition_S(others)
    from_values = load_value.get_slice(thread).partition_S(values)
    to_one, to_other, to_value = (
        copy.get_slice(thread).retile(part) for copy, part in zip((load_one, load_other, load_value), held, strict=True)
    )
    coordinates = mine.partition_C(cute.make_identity_tensor((queries, keys)))
    rows = 2 * cute.size(sums, mode=[1])
    tops, totals = (cute.make_rmem_tensor(rows, cutlass.Float32) for _ in range(2))
    tops.fill(-INFINITY)
    totals.fill(0.0)
    sums.fill(0.0)
    end = cutlass.min(length, first + queries) if causal else length
    steps = (end + keys - 1) // keys
    deep, flat = (threads, True, whole), (threads, False, whole)
    fill_tile(one, q + base, stride, (first, 0, length, width), deep)
    fill_tile(others[None, None, 0], k + base, stride, (0, 0, length, width), deep)
    fill_tile(values[None, None, 0], v + base, stride, (0, 0, width, length), flat)
    cute.arch.cp_async_commit_group()
    factor = scale * LOG2E
    left = cutlass.Float32(1) if masked else factor  # to scale in the exponential
    for step in cutlass.range(steps, unroll=1):
        slot, key = step % 2, step * keys
        cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()
        if step + 1 < steps:
            fill_tile(others[None, None, 1 - slot], k + base, stride, (key + keys, 0, length, width), deep)
            fill_tile(values[None, None, 1 - slot], v + base, stride, (0, key + keys, width, length), flat)
        cute.arch.cp_async_commit_group()
        scores.fill(0.0)
        keyed = (held[1], (load_other, from_others[None, None, None, slot], to_other))
        multiply(mma, scores, (held[0], (load_one, from_one, to_one)), keyed, depth // 16)
        if masked or key + keys > length or (causal and key + keys > first):
            close_keys(scores, coordinates, mask, (first, key, length, factor), (causal, masked))
        for row in cutlass.range_constexpr(rows):
            scale_row(sums, row, weigh_row(scores, (tops, totals), row, left))
        valued = (held[2], (load_value, from_values[None, None, None, slot], to_value))
        multiply(mma, sums, (as_operand(scores), None), valued, keys // 16)
    lanes = mine.partition_C(cute.make_identity_tensor((queries, depth)))
    for row in cutlass.range_constexpr(rows):
        query = first + lanes[(0, row % 2), row // 2, 0][0]
        if query < length:
            store_row(sums, o, totals[row], (base + query * stride, width), (row, whole, lanes))


def product_of(rows: int, cols: int, source: Any, right: Any) -> cute.TiledMma:
    """Return the product that adds to its sums, of a warpgroup for every 64 rows."""
    kind, deep = cute.nvgpu.warpgroup.MmaF16BF16Op, cute.nvgpu.OperandMajorMode.K
    instruction = kind(cutlass.Float16, cutlass.Float32, (64, cols, 16), source, deep, right)
    mma = cute.make_tiled_mma(instruction, cute.make_layout((rows // 64, 1, 1)))
    mma.set(cute.nvgpu.warpgroup.Field.ACCUMULATE, True)
    return mma


def by_rows(sums: cute.Tensor) -> cute.Tensor:
    """Return a warpgroup's sums as those of warps: pairs and halves of rows, then blocks of eight columns."""
    (pair, half, blocks), rows, _ = sums.layout.shape
    (to_pair, to_half, to_block), to_row, _ = sums.layout.stride
    layout = cute.make_layout(((pair, half), rows, blocks), stride=((to_pair, to_half), to_row, to_block))
    return cute.make_tensor(sums.iterator, layout)


@cute.jit
def begin_products(mma: cute.TiledMma, sums: cute.Tensor, left: cute.Tensor, right: cute.Tensor):
    """Begin to add a product of operands to a warpgroup's sums: a batch to wait for."""
    cute.nvgpu.warpgroup.fence()
    for part in cutlass.range_constexpr(cute.size(right, mode=[2])):
        cute.gemm(mma, sums, left[None, None, part], right[None, None, part], sums)
    cute.nvgpu.warpgroup.commit_group()


@cute.jit
def show_copies():
    """Wait for this block's asynchronous copies, and show them to warpgroups' instructions."""
    cute.arch.cp_async_commit_group()
    cute.arch.cp_async_wait_group(0)
    cute.arch.fence_view_async_shared()
    cute.arch.sync_threads()


@cute.kernel
def attend_by_warpgroups(
    q: cute.Pointer, k: cute.Pointer, v: cute.Pointer, mask: cute.Pointer, o: cute.Pointer, heads: cutlass.Int32,
    length: cutlass.Int32, width: cutlass.Int32, scale: cutlass.Float32, constants: cutlass.Constexpr,
):  # fmt: skip
    """Attend for the block's queries of one head, 64 of them a warpgroup."""
    (queries, keys, depth), causal, masked, whole = constants
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    modes, sources = cute.nvgpu.OperandMajorMode, cute.nvgpu.warpgroup.OperandSource
    scored = product_of(queries, keys, sources.SMEM, modes.K)
    weighted = product_of(queries, depth, sources.RMEM, modes.MN)
    threads, tiles = scored.size, (length + queries - 1) // queries
    tile, head = block % tiles, block // tiles
    first = (tiles - 1 - tile) * queries  # the longest first where causal
    stride = cutlass.Int64(heads) * width
    base = cutlass.Int64(head // heads) * length * stride + head % heads * width
    if cutlass.const_expr(whole):
        base, stride = cute.assume(base, divby=8), cute.assume(stride, divby=8)
    memory = cute.arch.get_dyn_smem(cutlass.Float16, 1024)
    places = memory, memory + queries * depth, memory + (queries + 2 * keys) * depth
    layouts = (
        tile_layout(queries, depth, 1, True), tile_layout(keys, depth, 2, True), tile_layout(depth, keys, 2, False)
    )  # fmt: skip
    one, others, values = (cute.make_tensor(place, layout) for place, layout in zip(places, layouts, strict=True))
    operands = [swizzled(place, layout) for place, layout in zip(places, layouts, strict=True)]
    warpgroup = cute.arch.make_warp_uniform(thread // 128) * 128
    group, second = scored.get_slice(warpgroup), weighted.get_slice(warpgroup)
    query_parts = scored.make_fragment_A(group.partition_A(operands[0]))
    key_parts = scored.make_fragment_B(group.partition_B(operands[1]))
    value_parts = weighted.make_fragment_B(second.partition_B(operands[2]))
    scores = cute.make_rmem_tensor(scored.partition_shape_C((queries, keys)), cutlass.Float32)
    sums = cute.make_rmem_tensor(weighted.partition_shape_C((queries, depth)), cutlass.Float32)
    half = cute.make_rmem_tensor(scores.layout, cutlass.Float16)
    parts = cute.make_layout(((2, 2, 2), 1, keys // 16), stride=((1, 2, 4), 0, 8))
    weights = cute.make_tensor(half.iterator, parts)
    score_rows, sum_rows = by_rows(scores), by_rows(sums)
    coordinates = scored.get_slice(thread).partition_C(cute.make_identity_tensor((queries, keys)))
    tops, totals, factors = (cute.make_rmem_tensor(2, cutlass.Float32) for _ in range(3))
    tops.fill(-INFINITY)
    totals.fill(0.0)
    sums.fill(0.0)
    end = cutlass.min(length, first + queries) if causal else length
    steps = (end + keys - 1) // keys
    deep, flat = (threads, True, whole), (threads, False, whole)
    fill_tile(one[None, None, 0], q + base, stride, (first, 0, length, width), deep)
    fill_tile(others[None, None, 0], k + base, stride, (0, 0, length, width), deep)
    factor = scale * LOG2E
    left = cutlass.Float32(1) if masked else factor  # to scale in the exponential
    for step in cutlass.range(steps, unroll=1):  # the last step's weights meet their values while scores are computed
        slot, key = step % 2, step * keys
        show_copies()
        if step + 1 < steps:
            fill_tile(others[None, None, 1 - slot], k + base, stride, (key + keys, 0, length, width), deep)
        fill_tile(values[None, None, slot], v + base, stride, (0, key, width, length), flat)
        cute.arch.cp_async_commit_group()
        scores.fill(0.0)
        begin_products(scored, scores, query_parts[None, None, None, 0], key_parts[None, None, None, slot])
        if step > 0:
            begin_products(weighted, sums, weights, value_parts[None, None, None, 1 - slot])
            cute.nvgpu.warpgroup.wait_group(1)
        else:
            cute.nvgpu.warpgroup.wait_group(0)
        if masked or key + keys > length or (causal and key + keys > first):
            close_keys(scores, coordinates, mask, (first, key, length, factor), (causal, masked))
        for row in cutlass.range_constexpr(2):
            factors[row] = weigh_row(score_rows, (tops, totals), row, left)
        cute.nvgpu.warpgroup.wait_group(0)
        for row in cutlass.range_constexpr(2):
            scale_row(sum_rows, row, factors[row])
        half.store(scores.load().to(cutlass.Float16))
    show_copies()
    begin_products(weighted, sums, weights, value_parts[None, None, None, (steps - 1) % 2])
    cute.nvgpu.warpgroup.wait_group(0)
    lanes = by_rows(weighted.get_slice(thread).partition_C(cute.make_identity_tensor((queries, depth))))
    for row in cutlass.range_constexpr(2):
        query = first + lanes[(0, row % 2), row // 2, 0][0]
        if query < length:
            store_row(sum_rows, o, totals[row], (base + query * stride, width), (row, whole, lanes))


@cute.jit
def multi_head_attention_warpgroups(
    q: cute.Pointer, k: cute.Pointer, v: cute.Pointer, mask: cute.Pointer, o: cute.Pointer, heads: cutlass.Int32,
    length: cutlass.Int32, width: cutlass.Int32, scale: cutlass.Float32, causal: cutlass.Constexpr,
    masked: cutlass.Constexpr, whole: cutlass.Constexpr, queries: cutlass.Constexpr, keys: cutlass.Constexpr,
    depth: cutlass.Constexpr, warps: cutlass.Constexpr, shared: cutlass.Constexpr,
):  # fmt: skip
    """Launch `attend_by_warpgroups`."""
    constants = (queries, keys, depth), causal, masked, whole
    kernel: Any = attend_by_warpgroups(q, k, v, mask, o, heads, length, width, scale, constants)
    kernel.launch(grid=(1, 1, 1), block=(32 * warps, 1, 1), smem=shared)


@cute.jit
def multi_head_attention(
    q: cute.Pointer, k: cute.Pointer, v: cute.Pointer, mask: cute.Pointer, o: cute.Pointer, heads: cutlass.Int32,
    length: cutlass.Int32, width: cutlass.Int32, scale: cutlass.Float32, causal: cutlass.Constexpr,
    masked: cutlass.Constexpr, whole: cutlass.Constexpr, queries: cutlass.Constexpr, keys: cutlass.Constexpr,
    depth: cutlass.Constexpr, warps: cutlass.Constexpr, shared: cutlass.Constexpr,
):  # fmt: skip
    """Launch `attend`: warps share the queries."""
    instruction = cute.nvgpu.warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
    grid = cute.make_layout((warps, 1, 1))
    mma = cute.make_tiled_mma(instruction, grid, permutation_mnk=(16 * warps, 16, 16))
    constants = (queries, keys, depth), causal, masked, whole
    kernel: Any = attend(q, k, v, mask, o, heads, length, width, scale, mma, constants)
    kernel.launch(grid=(1, 1, 1), block=(32 * warps, 1, 1), smem=shared)


GROUPED = (64, 128)  # widths of heads that warpgroups multiply


def padded(model: int, heads: int) -> int:
    return next(depth for depth in (16, 32, 64, 128, 256) if heads * depth >= model)


def fitting(queries: int, keys: int, warps: int, model: int, heads: int) -> bool:
    """Sums and scores in the registers of their threads."""
    return queries % (16 * warps) == 0 and queries * (padded(model, heads) + keys) <= 192 * 32 * warps


def grouped(length: int, depth: int, groups: int | str, device: Device) -> int:
    """The warpgroups of a block, each with 64 queries and 128 keys at a time; 0 where warps multiply.

    Three blocks of heads 64 wide are on a multiprocessor together, so that one multiplies while another one weighs; of
    heads 128 wide shared memory has one block.
    """
    if groups != "auto":
        return int(groups)
    if device.compute_capability != 90 or depth not in GROUPED or length <= 256:
        return 0
    return 1 if depth == 64 else 2


def launch(
    batch: int, heads: int, length: int, width: int, causal: int, masked: int, queries: int, keys: int, warps: int,
    groups: int | str, device: Device,
) -> Launch:  # fmt: skip
    depth = padded(width, 1)
    found = grouped(length, depth, groups, device)
    if found:
        queries, keys, warps = 64 * found, 128, 4 * found
    flags = {"causal": bool(causal), "masked": bool(masked), "whole": width % 8 == 0}
    shared = 2 * depth * (queries + 4 * keys)
    sizes = {"queries": queries, "keys": keys, "depth": depth, "warps": warps, "shared": shared}
    entry = "multi_head_attention_warpgroups" if found else "multi_head_attention"
    return Launch(batch * heads * -(-length // queries), 32 * warps, entry=entry, constants=flags | sizes)


variant = Variant(
    "in the CuTe DSL: online softmax over tiles of keys",
    entry="multi_head_attention",
    launch=launch,
    edges=(
        Workload(batch=0, heads=2, length=5, model=16),
        Workload(batch=1, heads=3, length=1, model=3),
        Workload(batch=2, heads=2, length=70, model=80, causal=1),
        Workload(batch=1, heads=1, length=129, model=9, masked=1),
        Workload(batch=2, heads=3, length=130, model=192),
        Workload(batch=1, heads=1, length=67, model=72, causal=1, masked=1),
        Workload(batch=1, heads=5, length=140, model=640, causal=1),
        Workload(batch=1, heads=1, length=33, model=200, scaling=0.5),
        Workload(batch=2, heads=2, length=77, model=128, causal=1),
        Workload(batch=1, heads=2, length=80, model=128),
        *(Workload(batch=1, heads=16, length=144, model=model, queries=128) for model in (1024, 2048)),
        *(Workload(batch=1, heads=16, length=272, model=model) for model in (1024, 2048)),
        *(
            Workload(batch=1, heads=2, length=length, model=model, causal=causal, groups=groups)
            for length, model, causal, groups in (
                (128, 128, 0, 1),
                (300, 128, 1, 2),
                (300, 256, 0, 2),
                (129, 250, 1, 1),
            )
        ),
        Workload(batch=1, heads=1, length=200, model=72, masked=1, groups=2),
        Workload(batch=2, heads=3, length=400, model=192, causal=1, masked=1, groups=2),
    ),
    requires=lambda groups: WARPGROUPS if groups not in ("auto", 0) else None,
    tune=Tune(
        queries=(128, 64),
        keys=(64, 32, 128),
        warps=(4, 8),
        groups=("auto", 0, 1, 2),
        default={
            "queries": lambda length, model, heads: 64 if length <= 256 or model > 128 * heads else 128,
            "keys": lambda model, heads: 32 if model > 128 * heads else 64,
            "warps": lambda length, model, heads: 8 if length > 256 and 64 * heads < model <= 128 * heads else 4,
        },
        rules=(
            Rule("sums and scores in the registers of their threads", fitting),
            Rule(
                "warpgroups have heads 64 or 128 wide",
                lambda model, heads, groups: groups in ("auto", 0) or padded(model, heads) in GROUPED,
            ),
        ),
    ),
)
