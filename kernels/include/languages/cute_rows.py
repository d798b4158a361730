"""Shared CuTe DSL functions: groups of items in registers, and reductions. Only the compiler's process imports this."""

from typing import Any

import cutlass
import cutlass.cute as cute

WARP = 32


@cute.jit
def load_group(source: cute.Pointer, place: cutlass.Int64, group: cute.Tensor):
    """Load a group of neighbours, which begins on a multiple of its size: one access."""
    at = cute.assume(place, divby=cute.size(group))
    cute.autovec_copy(cute.make_tensor(source + at, cute.make_layout(cute.size(group))), group)


@cute.jit
def store_group(group: cute.Tensor, target: cute.Pointer, place: cutlass.Int64):
    """Store a group of neighbours, which begins on a multiple of its size: one access."""
    at = cute.assume(place, divby=cute.size(group))
    cute.autovec_copy(group, cute.make_tensor(target + at, cute.make_layout(cute.size(group))))


@cute.jit
def place_of(items: cute.Tensor, group: cutlass.Constexpr):
    """Return where the thread's group begins in what the block has: its threads are side by side."""
    thread, _, _ = cute.arch.thread_idx()
    threads, _, _ = cute.arch.block_dim()
    return (group * threads + thread) * cute.size(items, mode=[0])


@cute.jit
def load_items(
    source: cute.Pointer, begin: cutlass.Int64, count: cutlass.Int32, items: cute.Tensor, fill: cutlass.Constexpr
):
    """Load the thread's groups of `count` items from `begin` on; `fill` beyond them. `items` is by group."""
    items.fill(fill)
    for group in cutlass.range_constexpr(cute.size(items, mode=[1])):
        place = place_of(items, group)
        if place < count:
            load_group(source, begin + place, items[None, group])


@cute.jit
def store_items(items: cute.Tensor, target: cute.Pointer, begin: cutlass.Int64, count: cutlass.Int32):
    """Store the thread's groups of `count` items from `begin` on."""
    for group in cutlass.range_constexpr(cute.size(items, mode=[1])):
        place = place_of(items, group)
        if place < count:
            store_group(items[None, group], target, begin + place)


@cute.jit
def higher(one: Any, other: Any):
    """Return the larger number; a NaN is smaller than any."""
    return cute.arch.fmax(one, other)


@cute.jit
def added(one: Any, other: Any):
    """Return the sum."""
    return one + other


@cute.jit
def warp_reduced(value: Any, merge: cutlass.Constexpr):
    """Return what the warp's lanes have, merged, in all of them."""
    for step in cutlass.range_constexpr(5):
        value = merge(value, cute.arch.shuffle_sync_bfly(value, offset=1 << step))
    return value


@cute.jit
def block_reduced(value: Any, merge: cutlass.Constexpr, neutral: cutlass.Constexpr, threads: cutlass.Constexpr):
    """Return what the block's threads have, merged in a fixed order, in all of them."""
    value = warp_reduced(value, merge)
    if cutlass.const_expr(threads > WARP):
        thread, _, _ = cute.arch.thread_idx()
        kind = type(value)
        parts = cute.make_tensor(cute.arch.alloc_smem(kind, threads // WARP), cute.make_layout(threads // WARP))
        if thread % WARP == 0:
            parts[thread // WARP] = value
        cute.arch.sync_threads()
        value = kind(neutral)
        if thread % WARP < threads // WARP:
            value = parts[thread % WARP]
        value = warp_reduced(value, merge)
    return value
