"""Kernels under Triton's wrappers, with what launches them in the project."""

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import libdevice
from triton.language.math import exp2

from ..scaling import half_tanh, last_valid


def _clear(arguments):
    arguments["total"].zero_()


@triton.autotune(
    configs=[triton.Config({"BLOCK": size}, num_warps=warps) for size, warps in ((256, 4), (512, 8))], key=["n"]
)
@triton.jit
def tuned(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, half_tanh(tl.load(x + at, at < n)), at < n)


@triton.heuristics(
    {
        "BLOCK": lambda args: triton.next_power_of_2(args["cols"]),
        "EVEN": lambda args: args["cols"] % args["BLOCK"] == 0,
        "num_warps": lambda args: 4 if args["BLOCK"] <= 1024 else 8,
    }
)
@triton.jit(do_not_specialize=["cols"])
def decided(x, y, cols, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    if EVEN:
        values = tl.load(x + row * cols + at)
    else:
        values = tl.load(x + row * cols + at, at < cols, other=0.0)
    tl.store(y + row * cols + at, libdevice.erf(values) + exp2(values), at < cols)


@triton.autotune(configs=[triton.Config({"BLOCK": 128})], key=["n"])
@triton.heuristics({"WHOLE": lambda args: args["BLOCK"] >= 128})
@triton.jit
def both(x, y, n, BLOCK: tl.constexpr, WHOLE: tl.constexpr, POWER: tl.constexpr = 2):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at, at < n)
    tl.store(y + at, libdevice.pow(values, POWER) if WHOLE else values, at < n)


@triton.autotune(configs=[triton.Config({"BLOCK": 256}, pre_hook=_clear)], key=["n"], reset_to_zero=["total"])
@triton.jit
def summed(x, total, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(total, tl.sum(tl.load(x + at, at < n, other=0.0)))


@triton.jit
def clamped(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + last_valid(at, n)), at < n)


@triton.jit
def described(x, y, rows, cols, BLOCK: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [rows, cols], [cols, 1], [BLOCK, BLOCK])
    target = tl.make_tensor_descriptor(y, [rows, cols], [cols, 1], [BLOCK, BLOCK])
    row, col = tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK
    target.store([row, col], 2 * source.load([row, col]))


def launch(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    tuned[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel())
    return y
