"""Layer norm of rows in Triton: a program per row, read once where it fits a block, else three times."""

import triton
import triton.language as tl

from prism_bench import Launch, Tune, Variant, Workload

from ..include.languages.triton_norms import centred_row, long_row_moments

LONGEST = 16_384  # columns that the registers of a block hold


@triton.jit
def layer_norm(x, gamma, beta, y, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    at = tl.arange(0, BLOCK)
    inside = at < cols
    centred = centred_row(tl.load(x + row + at, inside, other=0.0), inside, cols)
    scale = 1.0 / tl.sqrt(tl.sum(centred * centred, 0) / cols + eps)
    tl.store(y + row + at, centred * scale * tl.load(gamma + at, inside) + tl.load(beta + at, inside), inside)


@triton.jit
def layer_norm_three_reads(x, gamma, beta, y, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    mean, off, variance = long_row_moments(x + row, cols, BLOCK)
    scale = 1.0 / tl.sqrt(variance + eps)
    for first in range(0, cols, BLOCK):
        at = first + tl.arange(0, BLOCK)
        inside = at < cols
        centred = tl.load(x + row + at, inside, other=0.0) - mean - off
        tl.store(y + row + at, centred * scale * tl.load(gamma + at, inside) + tl.load(beta + at, inside), inside)


def launch(batch: int, length: int, cols: int, warps: int) -> Launch:
    fits = cols <= LONGEST
    constants = {"BLOCK": max(32, triton.next_power_of_2(cols)) if fits else 4096, "num_warps": warps}
    return Launch(batch * length, entry="layer_norm" if fits else "layer_norm_three_reads", constants=constants)


variant = Variant(
    "in Triton: a program per row",
    launch=launch,
    more_edges=(Workload(length=3, cols=128),),
    tune=Tune(warps=(4, 8, 16, 1), default={"warps": lambda cols: 1 if cols <= 512 else 4 if cols <= 2048 else 8}),
)
