"""Shared CuTe DSL functions: rows of attention's scores, weights and sums in the registers of their lanes.

Only the compiler's process imports this module.
"""

from typing import Any

import cutlass
import cutlass.cute as cute

from .cute_rows import added, higher

LOG2E = 1.4426950408889634
INFINITY = float("inf")


@cute.jit
def quad_reduced(value: cutlass.Float32, merge: cutlass.Constexpr):
    """Return what the four lanes that share rows of sums have, merged."""
    for step in cutlass.range_constexpr(2):
        value = merge(value, cute.arch.shuffle_sync_bfly(value, offset=1 << step))
    return value


@cute.jit
def close_keys(scores: cute.Tensor, coordinates: cute.Tensor, mask: cute.Pointer, place: Any, flags: cutlass.Constexpr):
    """Add the mask to scores, and close keys behind the last one or, if causal, behind the query.

    `place` has the first query, the first key, their number and the scale, which scores have where there is a mask.
    """
    causal, masked = flags
    query, key, length, scale = place
    for at in cutlass.range_constexpr(cute.size(scores)):
        row, col = query + coordinates[at][0], key + coordinates[at][1]
        if cutlass.const_expr(masked):
            bias = cutlass.Float32(0)
            if row < length and col < length:
                bias = mask[cutlass.Int64(row) * length + col]
            scores[at] = scores[at] * scale + bias * LOG2E
        closed = col >= length
        if cutlass.const_expr(causal):
            closed = closed or col > row
        if closed:
            scores[at] = -cutlass.Float32.inf


@cute.jit
def weigh_row(scores: cute.Tensor, state: Any, row: cutlass.Constexpr, scale: cutlass.Float32):
    """Turn a row of scores into weights relative to the row's maximum so far; return what scales its sums to that."""
    tops, totals = state
    half, part = row % 2, row // 2
    top = tops[row]
    for at in cutlass.range_constexpr(2 * cute.size(scores, mode=[2])):
        top = higher(top, scores[(at % 2, half), part, at // 2])
    top = quad_reduced(top, higher)
    shift = top
    if top == -INFINITY:
        shift = cutlass.Float32(0)
    rescale = cute.arch.exp2((tops[row] - shift) * scale)
    below = -shift * scale
    total = totals[row] * rescale
    for at in cutlass.range_constexpr(2 * cute.size(scores, mode=[2])):
        place = ((at % 2, half), part, at // 2)
        weight = cute.arch.exp2(cute.math.fma(scores[place], scale, below))
        scores[place] = weight
        total += weight
    tops[row] = top
    totals[row] = total
    return rescale


@cute.jit
def scale_row(sums: cute.Tensor, row: cutlass.Constexpr, factor: cutlass.Float32):
    """Multiply a row of sums."""
    for at in cutlass.range_constexpr(2 * cute.size(sums, mode=[2])):
        place = ((at % 2, row % 2), row // 2, at // 2)
        sums[place] = sums[place] * factor


@cute.jit
def store_row(sums: cute.Tensor, o: cute.Pointer, total: cutlass.Float32, place: Any, constants: cutlass.Constexpr):
    """Store a row's sums over its total; zeros where no key was open."""
    row, whole, coordinates = constants
    begin, width = place
    total = quad_reduced(total, added)
    factor = cutlass.Float32(1) / (cutlass.Float32(1) if total == 0.0 else total)
    pair = cute.make_rmem_tensor(2, cutlass.Float16)
    for at in cutlass.range_constexpr(cute.size(sums, mode=[2])):
        lane = coordinates[(0, row % 2), row // 2, at][1]
        for each in cutlass.range_constexpr(2):
            pair[each] = (sums[(each, row % 2), row // 2, at] * factor).to(cutlass.Float16)
        if cutlass.const_expr(whole):
            if lane < width:
                target = cute.make_tensor(o + cute.assume(begin + lane, divby=2), cute.make_layout(2))
                cute.autovec_copy(pair, target)
        else:
            for each in cutlass.range_constexpr(2):
                if lane + each < width:
                    o[begin + lane + each] = pair[each]
