"""Softmax of rows in Triton: a program per row, which is read once where it fits a block, else twice.

The second read of a longer row merges running maxima and sums lane by lane, so that each step has no reduction.
"""

import triton
import triton.language as tl

from prism_bench import In, Launch, Out, Rule, Scalar, Size, Tune, Variant, Workload

LONGEST = 32_768  # columns that the registers of a block hold


@triton.jit
def softmax(x, y, cols, temperature, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row + at, at < cols, other=-float("inf"))
    weights = tl.exp((values - tl.max(values, 0)) / temperature)
    tl.store(y + row + at, weights / tl.sum(weights, 0), at < cols)


@triton.jit
def softmax_two_reads(x, y, cols, temperature, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    lanes = tl.arange(0, BLOCK)
    top = tl.full([BLOCK], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for first in range(0, cols, BLOCK):
        values = tl.load(x + row + first + lanes, first + lanes < cols, other=-float("inf"))
        higher = tl.maximum(top, values)
        shift = tl.where(higher == -float("inf"), 0.0, higher)  # nothing but -inf so far: weights of 0
        total = total * tl.exp((top - shift) / temperature) + tl.exp((values - shift) / temperature)
        top = higher
    highest = tl.max(top, 0)
    whole = tl.sum(total * tl.exp((top - highest) / temperature), 0)
    for first in range(0, cols, BLOCK):
        values = tl.load(x + row + first + lanes, first + lanes < cols, other=-float("inf"))
        weights = tl.exp((values - highest) / temperature) / whole
        tl.store(y + row + first + lanes, weights, first + lanes < cols)


def launch(rows: int, cols: int, warps: int) -> Launch:
    if cols > LONGEST:
        return Launch(rows, entry="softmax_two_reads", constants={"BLOCK": 512 * warps, "num_warps": warps})
    return Launch(rows, constants={"BLOCK": max(32, triton.next_power_of_2(cols)), "num_warps": warps})


variant = Variant(
    "in Triton: a program per row, read once where a block holds it",
    entry="softmax",
    arguments=(In("x", "rows cols"), Out("y", "rows cols"), Size("cols"), Scalar("temperature")),
    derived={},
    rules=(Rule("temperature > 0", lambda temperature: temperature > 0),),
    launch=launch,
    more_edges=(Workload(rows=5, cols=1000), Workload(rows=2, cols=LONGEST)),
    tune=Tune(warps=(8, 4, 16, 32, 1), default={"warps": lambda cols: 1 if cols <= 256 else 4 if cols <= 4096 else 16}),
)
