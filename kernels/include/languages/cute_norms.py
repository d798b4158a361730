"""Shared CuTe DSL functions: layer norms of rows, and GELU. Only the compiler's process imports this module."""

from typing import Any

import cutlass
import cutlass.cute as cute

from .cute_rows import added, block_reduced, load_group, load_items, place_of, store_group

LOG2E = 1.4426950408889634
# Of exp(s^2 / 2) (s + 3) times the upper tail of a normal variable, by powers of (s - 3) / (s + 3), the highest first.
TAIL = (
    -2.945531450677663e-4, -9.446349577046931e-4, 1.084897667169571e-3, 6.954221986234188e-3, -1.0477311909198761e-2,
    -4.7262221574783325e-2, 2.3001867532730103e-1, -5.09332001209259e-1, 7.290836572647095e-1,
)  # fmt: skip


@cute.jit
def upper_tail(size: cutlass.Float32):
    """Return the probability that a normal variable exceeds `size`, 0 <= size <= 20: a minimax polynomial."""
    reciprocal = cute.arch.rcp_approx(size + 3.0)
    at = (size - 3.0) * reciprocal
    total = cutlass.Float32(TAIL[0])
    for factor in cutlass.range_constexpr(1, len(TAIL)):
        total = cute.math.fma(total, at, cutlass.Float32(TAIL[factor]))
    return total * reciprocal * cute.math.exp2(size * size * (-0.5 * LOG2E))


@cute.jit
def tail_of_tanh(size: cutlass.Float32):
    """Return what GELU's tanh form has instead: 1 / (1 + exp(2 u)), u = sqrt(2 / pi) (size + 0.044715 size^3)."""
    twice = size * cute.math.fma(size * size, cutlass.Float32(0.07135481627), cutlass.Float32(1.59576912161))
    small = cute.math.exp(-twice)
    whole = 1.0 + small
    reciprocal = cute.arch.rcp_approx(whole)
    quotient = small * reciprocal
    return cute.math.fma(cute.math.fma(-whole, quotient, small), reciprocal, quotient)


@cute.jit
def gelu_of(value: cutlass.Float32, tanh: cutlass.Constexpr):
    """Return x Phi(x) by the tail beyond |x|, which keeps the relative accuracy of negative results."""
    size = cute.math.absf(value)
    clipped = size
    if size > 20.0:
        clipped = cutlass.Float32(20.0)
    tail = tail_of_tanh(clipped) if cutlass.const_expr(tanh) else upper_tail(clipped)
    lost = clipped * tail
    result = -lost
    if value > 0.0:
        result = value - lost
    return result


@cute.jit
def activated(value: cutlass.Float32, form: cutlass.Constexpr):
    """Return GELU of a value in the form `none` or `tanh`, the value itself without one."""
    return gelu_of(value, form == "tanh") if cutlass.const_expr(form) else value


@cute.kernel
def row_in_registers(
    x: cute.Pointer, gamma: cute.Pointer, beta: cute.Pointer, y: cute.Pointer, cols: cutlass.Int32,
    eps: cutlass.Float32, constants: cutlass.Constexpr,
):  # fmt: skip
    """Normalise a row, which is read once. What the mean is off by corrects the mean, and the variance."""
    threads, items, width, form = constants
    block, _, _ = cute.arch.block_idx()
    begin, count = cutlass.Int64(block) * cols, cutlass.Float32(cols)
    held = cute.make_rmem_tensor((width, items // width), cutlass.Float32)
    load_items(x, begin, cols, held, 0.0)
    total = cutlass.Float32(0)
    for at in cutlass.range_constexpr(items):
        total += held[at]
    mean = block_reduced(total, added, 0.0, threads) / count
    rest, squares = cutlass.Float32(0), cutlass.Float32(0)
    for group in cutlass.range_constexpr(items // width):
        inside = place_of(held, group) < cols
        for each in cutlass.range_constexpr(width):
            held[each, group] = held[each, group] - mean
            centred = held[each, group] if inside else cutlass.Float32(0)
            rest += centred
            squares = cute.math.fma(centred, centred, squares)
    low = block_reduced(rest, added, 0.0, threads) / count
    variance = cute.math.fma(-low, low, block_reduced(squares, added, 0.0, threads) / count)
    scale = 1.0 / cute.math.sqrt(variance + eps)
    factor, shift = (cute.make_rmem_tensor(width, cutlass.Float32) for _ in range(2))
    for group in cutlass.range_constexpr(items // width):
        place = place_of(held, group)
        if place < cols:
            load_group(gamma, cutlass.Int64(place), factor)
            load_group(beta, cutlass.Int64(place), shift)
            for each in cutlass.range_constexpr(width):
                normal = cute.math.fma((held[each, group] - low) * scale, factor[each], shift[each])
                held[each, group] = activated(normal, form)
            store_group(held[None, group], y, begin + place)


@cute.kernel
def row_three_times(
    x: cute.Pointer, gamma: cute.Pointer, beta: cute.Pointer, y: cute.Pointer, cols: cutlass.Int32,
    eps: cutlass.Float32, constants: cutlass.Constexpr,
):  # fmt: skip
    """Normalise a row of any length, read three times: the mean is that of what differs from a first value."""
    threads, _, _, form = constants
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    begin, count = cutlass.Int64(block) * cols, cutlass.Float32(cols)
    source, target = (cute.make_tensor(array + begin, cute.make_layout(cols)) for array in (x, y))
    first = source[0]
    total = cutlass.Float32(0)
    for at in cutlass.range(thread, cols, threads, unroll=8):
        total += source[at] - first
    mean = first + block_reduced(total, added, 0.0, threads) / count
    rest, squares = cutlass.Float32(0), cutlass.Float32(0)
    for at in cutlass.range(thread, cols, threads, unroll=8):
        centred = source[at] - mean
        rest += centred
        squares = cute.math.fma(centred, centred, squares)
    low = block_reduced(rest, added, 0.0, threads) / count
    variance = cute.math.fma(-low, low, block_reduced(squares, added, 0.0, threads) / count)
    scale = 1.0 / cute.math.sqrt(variance + eps)
    for at in cutlass.range(thread, cols, threads, unroll=4):
        target[at] = activated(cute.math.fma((source[at] - mean - low) * scale, gamma[at], beta[at]), form)


@cute.jit
def launch_rows(arrays: Any, cols: cutlass.Int32, eps: cutlass.Float32, once: cutlass.Constexpr, constants: Any):
    """Launch the kernel of rows that are read once, or that of longer ones."""
    chosen: Any = row_in_registers if cutlass.const_expr(once) else row_three_times
    kernel = chosen(*arrays, cols, eps, constants)
    kernel.launch(grid=(1, 1, 1), block=(constants[0], 1, 1))
