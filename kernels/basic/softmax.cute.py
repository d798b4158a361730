"""Softmax of rows in the CuTe DSL: a row is held in the registers of its blocks between one read and one write.

Blocks that share a row merge their maxima and sums by words in memory, as in the CUDA form; a row that is too long for
the device's blocks is read three times by one.
"""

from typing import Any

import cutlass
import cutlass.cute as cute

from prism_bench import Launch, Rule, Tune, Variant, Workload, Zero
from prism_bench.spec import Device

from ..include.languages.cute_rows import WARP, added, block_reduced, higher, load_items, store_items, warp_reduced

INFINITY = float("inf")
BLOCKS = (256, 128, 64, 32, 512)
LONGEST_PART = 8192  # 32 items of 256 threads


@cute.jit
def weight(value: cutlass.Float32, top: cutlass.Float32, scale: cutlass.Float32):
    """Return exp(scale (value - top)): 0 for -inf even where the maximum is -inf, too."""
    shift = top
    if top == -INFINITY:
        shift = cutlass.Float32(0)
    return cute.math.exp(scale * (value - shift))


@cute.jit
def rescale(top: cutlass.Float32, highest: cutlass.Float32, scale: cutlass.Float32):
    """Return what turns weights relative to `top` into those relative to `highest`."""
    factor = cutlass.Float32(1)
    if top != highest:
        factor = cute.math.exp(scale * (top - highest))
    return factor


@cute.jit
def publish(state: cute.Pointer, top: cutlass.Float32, total: cutlass.Float32):
    """Write a part's maximum and sum as one word: never 0, as the sum is at least 1 or NaN, or the maximum is -inf."""
    high, low = (one.bitcast(cutlass.Uint32).to(cutlass.Uint64) for one in (total, top))
    cute.arch.atomic_exch(state, (high << 32) | low, sem="relaxed", scope="gpu")


@cute.jit
def awaited(state: cute.Pointer):
    """Return a part's maximum and sum as soon as they are there."""
    word = cutlass.Uint64(0)
    while word == 0:
        word = cute.arch.atomic_add(state, cutlass.Uint64(0), sem="relaxed", scope="gpu")
    low, high = (one.to(cutlass.Uint32).bitcast(cutlass.Float32) for one in (word, word >> 32))
    return low, high


@cute.jit
def merged_parts(own: Any, states: cute.Pointer, part: Any, parts: cutlass.Int32, scale: cutlass.Float32):
    """Return the row's maximum and sum from those of its parts, in a fixed order.

    The parts of a row are neighbours in the grid: a block waits only for blocks that are running or next in line.
    """
    thread, _, _ = cute.arch.thread_idx()
    row = cute.make_tensor(cute.arch.alloc_smem(cutlass.Float32, 2), cute.make_layout(2))
    if thread < WARP:
        if thread == 0:
            publish(states + part, own[0], own[1])
        highest, whole = -cutlass.Float32.inf, cutlass.Float32(0)
        for at in cutlass.range(thread, parts, WARP, unroll=1):
            top, total = awaited(states + at)
            above = higher(highest, top)
            whole = rescale(highest, above, scale) * whole + rescale(top, above, scale) * total
            highest = above
        above = warp_reduced(highest, higher)
        whole = warp_reduced(rescale(highest, above, scale) * whole, added)
        if thread == 0:
            row[0] = above
            row[1] = whole
    cute.arch.sync_threads()
    return row[0], row[1]


@cute.kernel
def in_registers(
    x: cute.Pointer, y: cute.Pointer, states: cute.Pointer, cols: cutlass.Int32, size: cutlass.Int32,
    parts: cutlass.Int32, temperature: cutlass.Float32, constants: cutlass.Constexpr,
):  # fmt: skip
    """Normalise a part of a row: its weights relative to its own maximum, then to the row's."""
    threads, items, width = constants
    block, _, _ = cute.arch.block_idx()
    row, part = cutlass.Int64(block // parts), block % parts
    begin, count = row * cols + part * size, cutlass.min(size, cols - part * size)
    scale = 1.0 / temperature
    held = cute.make_rmem_tensor((width, items // width), cutlass.Float32)
    load_items(x, begin, count, held, -INFINITY)
    top = -cutlass.Float32.inf
    for at in cutlass.range_constexpr(items):
        top = higher(top, held[at])
    top = block_reduced(top, higher, -INFINITY, threads)
    total = cutlass.Float32(0)
    for at in cutlass.range_constexpr(items):
        held[at] = weight(held[at], top, scale)
        total += held[at]
    total = block_reduced(total, added, 0.0, threads)
    factor = 1.0 / total
    if parts > 1:
        highest, whole = merged_parts((top, total), states + row * parts, part, parts, scale)
        factor = rescale(top, highest, scale) / whole
    for at in cutlass.range_constexpr(items):
        held[at] = held[at] * factor
    store_items(held, y, begin, count)


@cute.kernel
def three_reads(
    x: cute.Pointer, y: cute.Pointer, cols: cutlass.Int32, temperature: cutlass.Float32, threads: cutlass.Constexpr
):
    """Normalise a row of any length: its maximum, its sum, its weights."""
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    begin, scale = cutlass.Int64(block) * cols, 1.0 / temperature
    source, target = (cute.make_tensor(array + begin, cute.make_layout(cols)) for array in (x, y))
    top = -cutlass.Float32.inf
    for at in cutlass.range(thread, cols, threads, unroll=8):
        top = higher(top, source[at])
    top = block_reduced(top, higher, -INFINITY, threads)
    total = cutlass.Float32(0)
    for at in cutlass.range(thread, cols, threads, unroll=8):
        total += weight(source[at], top, scale)
    factor = 1.0 / block_reduced(total, added, 0.0, threads)
    for at in cutlass.range(thread, cols, threads, unroll=8):
        target[at] = weight(source[at], top, scale) * factor


@cute.jit
def softmax(
    x: cute.Pointer, y: cute.Pointer, states: cute.Pointer, cols: cutlass.Int32, size: cutlass.Int32,
    parts: cutlass.Int32, temperature: cutlass.Float32, threads: cutlass.Constexpr, items: cutlass.Constexpr,
    width: cutlass.Constexpr, warps: cutlass.Constexpr,
):  # fmt: skip
    """Launch `in_registers`, with registers for at least so many warps of a multiprocessor."""
    kernel: Any = in_registers(x, y, states, cols, size, parts, temperature, (threads, items, width))
    resident = min(32, WARP * warps // threads)
    kernel.launch(grid=(1, 1, 1), block=(threads, 1, 1), min_blocks_per_mp=resident, preferred_smem_carveout=-1)


@cute.jit
def softmax_three_reads(
    x: cute.Pointer, y: cute.Pointer, cols: cutlass.Int32, temperature: cutlass.Float32, threads: cutlass.Constexpr
):
    """Launch `three_reads`."""
    kernel: Any = three_reads(x, y, cols, temperature, threads)
    kernel.launch(grid=(1, 1, 1), block=(threads, 1, 1))


def launch(
    rows: int, cols: int, parts: int, device: Device, part: int, block: int, warps: int
) -> Launch | tuple[Launch | Zero, ...]:
    if parts > device.sm_count:
        names = ("x", "y", "cols", "temperature")
        return Launch(rows, 1024, entry="softmax_three_reads", arguments=names, constants={"threads": 1024})
    items = next(i for i in (4, 8, 16, 32) if i * block >= min(cols, part))
    constants = {"threads": block, "items": items, "width": 4 if cols % 4 == 0 else 1, "warps": warps}
    step = Launch(rows * parts, block, constants=constants)
    return (Zero("states"), step) if parts > 1 else step


def fewest_threads(cols: int) -> int:
    return next(b for b in (32, 64, 128, 256) if 8 * b >= cols or b == 256)


variant = Variant(
    "in the CuTe DSL: rows in the registers of one block or several",
    entry="softmax",
    launch=launch,
    more_edges=(Workload(rows=5, cols=1000), Workload(rows=1, cols=131_072)),
    tune=Tune(
        part=(LONGEST_PART, LONGEST_PART // 2, 2 * LONGEST_PART),
        block=BLOCKS,
        warps=(32, 40, 48, 24),
        default={"block": fewest_threads},
        rules=(Rule("a part in 32 items a thread", lambda cols, part, block: 32 * block >= min(cols, part)),),
    ),
)
