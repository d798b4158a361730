"""Rotary positions in the CuTe DSL: blocks of a token find its angles once, in double precision, and turn all heads."""

from typing import Any

import cutlass
import cutlass.cute as cute

from prism_bench import Launch, Tune, Variant, Workload

from ..include.languages.cute_rows import load_group, store_group


@cute.jit
def place_of(pair: cutlass.Int32, dim: cutlass.Constexpr, halves: cutlass.Constexpr):
    """Return where a pair's first number is in its token's row."""
    half = dim // 2
    return pair // half * dim + pair % half if cutlass.const_expr(halves) else 2 * pair


@cute.jit
def tabulate(turns: cute.Tensor, slope: cutlass.Float64, position: cutlass.Int64, constants: cutlass.Constexpr):
    """Write cosines and sines of a position; a float angle would be off by position 2^-24 radians."""
    threads, dim = constants
    thread, _, _ = cute.arch.thread_idx()
    for pair in cutlass.range(thread, dim // 2, threads, unroll=1):
        angle = cutlass.Float64(position) * cute.math.exp2(slope * cutlass.Float64(pair))
        turns[0, pair] = cutlass.Float32(cute.math.cos(angle))
        turns[1, pair] = cutlass.Float32(cute.math.sin(angle))
    cute.arch.sync_threads()


@cute.jit
def turned(first: cutlass.Float32, second: cutlass.Float32, turns: cute.Tensor, pair: cutlass.Int32):
    """Return a pair turned by its angle."""
    cosine, sine = turns[0, pair], turns[1, pair]
    return cute.math.fma(first, cosine, -second * sine), cute.math.fma(first, sine, second * cosine)


@cute.kernel
def turn_tokens(
    x: cute.Pointer, y: cute.Pointer, slope: cutlass.Float64, offset: cutlass.Int64, length: cutlass.Int32,
    heads: cutlass.Int32, constants: cutlass.Constexpr,
):  # fmt: skip
    """Turn the thread's groups of pairs, which are on their way while the block finds the angles."""
    threads, dim, halves, pairs, each, parts = constants
    width = pairs if halves else 2 * pairs
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    token = cutlass.Int64(block // parts)
    row, groups = token * heads * dim, heads * (dim // 2) // pairs
    turns = cute.make_tensor(cute.arch.alloc_smem(cutlass.Float32, dim), cute.make_layout((2, dim // 2)))
    held = cute.make_rmem_tensor((width, 2 if halves else 1, each), cutlass.Float32)
    begin = block % parts * (each * threads) + thread
    for part in cutlass.range_constexpr(each):
        group = begin + part * threads
        if group < groups:
            place = row + place_of(group * pairs, dim, halves)
            for side in cutlass.range_constexpr(2 if halves else 1):
                load_group(x, place + side * (dim // 2), held[None, side, part])
    tabulate(turns, slope, offset + token % length, (threads, dim))
    for part in cutlass.range_constexpr(each):
        group = begin + part * threads
        if group < groups:
            pair = group * pairs % (dim // 2)
            for at in cutlass.range_constexpr(pairs):
                one, other = ((at, 0, part), (at, 1, part)) if halves else ((2 * at, 0, part), (2 * at + 1, 0, part))
                first, second = turned(held[one], held[other], turns, pair + at)
                held[one] = first
                held[other] = second
            place = row + place_of(group * pairs, dim, halves)
            for side in cutlass.range_constexpr(2 if halves else 1):
                store_group(held[None, side, part], y, place + side * (dim // 2))


@cute.jit
def rope_encoding(
    x: cute.Pointer, y: cute.Pointer, slope: cutlass.Float64, offset: cutlass.Int64, length: cutlass.Int32,
    heads: cutlass.Int32, threads: cutlass.Constexpr, dim: cutlass.Constexpr, halves: cutlass.Constexpr,
    pairs: cutlass.Constexpr, each: cutlass.Constexpr, parts: cutlass.Constexpr,
):  # fmt: skip
    """Launch `turn_tokens`."""
    kernel: Any = turn_tokens(x, y, slope, offset, length, heads, (threads, dim, halves, pairs, each, parts))
    kernel.launch(grid=(1, 1, 1), block=(threads, 1, 1))


def launch(batch: int, length: int, heads: int, dim: int, layout: str, each: int, most: int) -> Launch:
    halves = layout == "halves"
    pairs = (4 if dim % 8 == 0 else 1) if halves else (2 if dim % 4 == 0 else 1)
    groups = heads * (dim // 2) // pairs
    threads = min(most, max(32, -(-groups // (32 * each)) * 32))
    constants = {"threads": threads, "dim": dim, "halves": halves, "pairs": pairs, "each": each}
    parts = -(-groups // (each * threads))
    names = ("x", "y", "slope", "offset", "length", "heads")
    return Launch(batch * length * parts, threads, arguments=names, constants={**constants, "parts": parts})


variant = Variant(
    "in the CuTe DSL: a token's angles once, all heads by 16 bytes an access",
    entry="rope_encoding",
    launch=launch,
    more_edges=tuple(
        Workload(batch=1, length=16, heads=heads, dim=dim, layout=layout, offset=0)
        for heads, dim in ((8, 64), (32, 128))
        for layout in ("interleaved", "halves")
    ),
    tune=Tune(each=(2, 4, 1), most=(512, 256)),
)
