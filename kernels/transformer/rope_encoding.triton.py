"""Rotary positions in Triton: a program finds angles of a token once, while its numbers are on their way."""

import math

import triton
import triton.language as tl

from prism_bench import Launch, Tune, Variant, Workload

TURN, TURNS = tl.constexpr(2 * math.pi), tl.constexpr(0.5 / math.pi)


@triton.jit
def cosine_and_sine(slope, position, pairs):
    """Find the angle in double precision, as a float would be off by position 2^-24 radians, and its rest in float.

    The rest is within an eighth of a turn of a multiple of a quarter, so that its float is as exact as the results.
    """
    turns = position.to(tl.float64) * tl.exp2(slope * pairs.to(tl.float64)) * TURNS
    quarters = tl.floor(4.0 * turns + 0.5)
    rest = ((turns - 0.25 * quarters) * TURN).to(tl.float32)
    quarter = quarters.to(tl.int64) & 3
    cosine, sine = tl.cos(rest), tl.sin(rest)
    across, along = tl.where(quarter % 2 == 1, sine, cosine), tl.where(quarter % 2 == 1, cosine, sine)
    return tl.where((quarter == 1) | (quarter == 2), -across, across), tl.where(quarter >= 2, -along, along)


@triton.jit
def rope_encoding(
    x, y, slope: tl.float64, offset: tl.int64, length, heads, dim, NEIGHBOURS: tl.constexpr, PAIRS: tl.constexpr,
    HEADS: tl.constexpr,
):  # fmt: skip
    parts = tl.cdiv(heads, HEADS)
    token = (tl.program_id(0) // parts).to(tl.int64)
    head = tl.program_id(0) % parts * HEADS + tl.arange(0, HEADS)
    pairs = tl.arange(0, PAIRS)
    row = (token * heads + head)[:, None] * dim
    if NEIGHBOURS:
        column = tl.arange(0, 2 * PAIRS)
        inside = (head < heads)[:, None] & (column < dim)[None, :]
        both = tl.load(x + row + column[None, :], inside, other=0.0)
        cosine, sine = cosine_and_sine(slope, offset + token % length, pairs)
        first, second = tl.split(tl.reshape(both, HEADS, PAIRS, 2))
        turned = tl.join(first * cosine - second * sine, first * sine + second * cosine)
        tl.store(y + row + column[None, :], tl.reshape(turned, HEADS, 2 * PAIRS), inside)
    else:
        inside = (head < heads)[:, None] & (pairs < dim // 2)[None, :]
        at = row + pairs[None, :]
        first = tl.load(x + at, inside, other=0.0)
        second = tl.load(x + at + dim // 2, inside, other=0.0)
        cosine, sine = cosine_and_sine(slope, offset + token % length, pairs)
        tl.store(y + at, first * cosine - second * sine, inside)
        tl.store(y + at + dim // 2, first * sine + second * cosine, inside)


def launch(batch: int, length: int, heads: int, dim: int, layout: str, floats: int, warps: int) -> Launch:
    pairs = max(16, triton.next_power_of_2(dim // 2))
    group = min(triton.next_power_of_2(heads), max(1, floats // (2 * pairs)))
    constants = {"NEIGHBOURS": layout == "interleaved", "PAIRS": pairs, "HEADS": group}
    names = ("x", "y", "slope", "offset", "length", "heads", "dim")
    fewest = max(1, min(warps, group * pairs // 64))  # four floats a thread
    return Launch(batch * length * -(-heads // group), arguments=names, constants={**constants, "num_warps": fewest})


variant = Variant(
    "in Triton: a token's angles once, its heads in one tile or several",
    entry="rope_encoding",
    launch=launch,
    more_edges=tuple(
        Workload(batch=1, length=16, heads=heads, dim=dim, layout=layout, offset=0)
        for heads, dim in ((8, 64), (32, 128), (33, 128)) for layout in ("interleaved", "halves")
    ),
    tune=Tune(floats=(4096, 2048, 1024), warps=(8, 4, 16)),
)  # fmt: skip
