import logging

import torch
import triton
import triton.language as tl

from ..utils import cfggen, libentry

logger = logging.getLogger(__name__)


@libentry()
@triton.autotune(configs=cfggen(), key=["n_elements"])
@triton.jit
def clamp_kernel(X, Y, low, high, n_elements, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    offset = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offset < n_elements
    x = tl.load(X + offset, mask=mask)
    tl.store(Y + offset, tl.minimum(tl.maximum(x, low), high), mask=mask)


def clamp(A, low, high):
    logger.debug("CLAMP")
    O = torch.empty_like(A)
    M = A.numel()
    grid_fn = lambda meta: (triton.cdiv(M, meta["BLOCK_SIZE"]),)
    clamp_kernel[grid_fn](A, O, low, high, M)
    return O


@libentry()
@triton.jit(do_not_specialize=["value"])
def masked_fill_kernel(inp, expand_mask, value, out, N, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < N
    fill_mask = tl.load(expand_mask + offsets, mask=mask, other=0).to(tl.int1)
    cur_inp = tl.load(inp + offsets, mask=mask, other=0)
    tl.store(out + offsets, tl.where(fill_mask, value, cur_inp), mask=mask)


def masked_fill(inp, expand_mask, value):
    out = torch.empty_like(inp)
    N = inp.numel()
    BLOCK_SIZE = 512
    grid = (triton.cdiv(N, BLOCK_SIZE),)
    masked_fill_kernel[grid](inp, expand_mask.to(torch.int32), value, out, N, BLOCK_SIZE)
    return out
