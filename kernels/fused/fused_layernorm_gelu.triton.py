"""GELU of a layer norm in Triton: a program per row, read once where it fits a block, else three times."""

import triton
import triton.language as tl

from prism_bench import Launch, Tune, Variant, Workload

from ..include.languages.triton_norms import centred_row, gelu_of, long_row_moments

LONGEST = 16_384  # columns that the registers of a block hold


@triton.jit
def fused_layernorm_gelu(x, gamma, beta, y, cols, eps, TANH: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    at = tl.arange(0, BLOCK)
    inside = at < cols
    centred = centred_row(tl.load(x + row + at, inside, other=0.0), inside, cols)
    scale = 1.0 / tl.sqrt(tl.sum(centred * centred, 0) / cols + eps)
    normal = centred * scale * tl.load(gamma + at, inside) + tl.load(beta + at, inside)
    tl.store(y + row + at, gelu_of(normal, TANH), inside)


@triton.jit
def three_reads(x, gamma, beta, y, cols, eps, TANH: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    mean, off, variance = long_row_moments(x + row, cols, BLOCK)
    scale = 1.0 / tl.sqrt(variance + eps)
    for first in range(0, cols, BLOCK):
        at = first + tl.arange(0, BLOCK)
        inside = at < cols
        centred = tl.load(x + row + at, inside, other=0.0) - mean - off
        normal = centred * scale * tl.load(gamma + at, inside) + tl.load(beta + at, inside)
        tl.store(y + row + at, gelu_of(normal, TANH), inside)


def launch(batch: int, length: int, cols: int, approximate: str, warps: int) -> Launch:
    fits = cols <= LONGEST
    block = max(32, triton.next_power_of_2(cols)) if fits else 4096
    constants = {"TANH": approximate == "tanh", "BLOCK": block, "num_warps": warps}
    return Launch(batch * length, entry="fused_layernorm_gelu" if fits else "three_reads", constants=constants)


variant = Variant(
    "in Triton: a program per row",
    launch=launch,
    more_edges=(Workload(length=3, cols=128),),
    tune=Tune(warps=(4, 8, 16, 1), default={"warps": lambda cols: 1 if cols <= 512 else 4 if cols <= 2048 else 8}),
)
