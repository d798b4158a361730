"""Shared CuTe DSL functions: tiles of matrices in shared memory. Only the compiler's process imports this module."""

from typing import Any

import cutlass
import cutlass.cute as cute

PIECE = 8  # half numbers of one copy: 16 bytes


def tile_layout(rows: int, depth: int, stages: int, deep: bool) -> Any:
    """Return the layout of a ring of tiles whose lines are `deep`, else along the rows; pieces swap within lines.

    A line's pieces are spread over the banks, so that the matrix loads of eight lines meet no bank twice.
    """
    line = min(64, depth if deep else rows)
    bits = {64: 3, 32: 2, 16: 1}[line]
    outer = cute.make_layout((8, line), stride=(line, 1)) if deep else cute.make_layout((line, 8), stride=(1, line))
    atom = cute.make_composed_layout(cute.make_swizzle(bits, 3, 3), 0, outer)
    return cute.tile_to_shape(atom, (rows, depth, stages), (0, 1, 2))


def swizzled(place: cute.Pointer, layout: Any) -> cute.Tensor:
    """Return a ring of tiles with lines of 64 for warpgroups' instructions, which swap pieces by bits of addresses."""
    return cute.make_tensor(cute.recast_ptr(place, cute.make_swizzle(3, 4, 3)), layout.outer)


@cute.jit
def copy_piece(target: cute.Pointer, source: cute.Pointer, inside: cutlass.Boolean):
    """Copy 16 bytes to shared memory asynchronously; zeros where they are not inside."""
    size = cutlass.Int32(16) if inside else cutlass.Int32(0)
    cute.arch.inline_ptx(
        "cp.async.cg.shared.global [{$r0}], [{$r1}], 16, {$r2};",
        read_only_args=[target.toint(), source.toint(), size],
    )


@cute.jit
def fill_tile(tile: cute.Tensor, source: cute.Pointer, stride: cutlass.Int64, place: Any, constants: cutlass.Constexpr):
    """Copy a tile of a matrix of half numbers to shared memory, zeros beyond it; each thread has its pieces.

    `place` has the first row and depth, and how many the matrix has. Lines are `deep`, or along the rows, and `stride`
    apart.
    Without `whole` lines may begin anywhere, and numbers are copied one by one.
    """
    threads, deep, whole = constants
    first, first_depth, rows, depths = place
    thread, _, _ = cute.arch.thread_idx()
    pieces = cute.size(tile, mode=[1 if deep else 0]) // PIECE
    for step in cutlass.range_constexpr(cute.size(tile) // (PIECE * threads)):
        at = step * threads + thread
        line, along = at // pieces, at % pieces * PIECE
        row, depth = (line, along) if deep else (along, line)
        here, deeper = first + row, first_depth + depth
        begin = cutlass.Int64(here if deep else deeper) * stride + (deeper if deep else here)
        if cutlass.const_expr(whole):
            inside = here < rows and deeper < depths
            begin = begin if inside else cutlass.Int64(0)
            copy_piece(tile.iterator + cute.crd2idx((row, depth), tile.layout), source + begin, inside)
        else:
            for each in cutlass.range_constexpr(PIECE):
                next_row, next_depth = (row, depth + each) if deep else (row + each, depth)
                number = cutlass.Float16(0)
                if first + next_row < rows and first_depth + next_depth < depths:
                    number = source[begin + each]
                tile[next_row, next_depth] = number
