import math

import torch
import triton
import triton.language as tl

from ..utils import libentry


@libentry()
@triton.jit
def sum_kernel_1(inp, mid, M, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    offset = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    inp_val = tl.load(inp + offset, mask=offset < M, other=0.0)
    tl.store(mid + pid, tl.sum(inp_val))


@libentry()
@triton.jit
def sum_kernel_2(mid, out, mid_size, BLOCK_MID: tl.constexpr):
    offset = tl.arange(0, BLOCK_MID)
    tl.store(out, tl.sum(tl.load(mid + offset, mask=offset < mid_size, other=0.0)))


def sum(inp):
    M = inp.numel()
    block_size = triton.next_power_of_2(math.ceil(math.sqrt(M)))
    mid_size = triton.cdiv(M, block_size)
    block_mid = triton.next_power_of_2(mid_size)
    mid = torch.empty((mid_size,), dtype=inp.dtype, device=inp.device)
    out = torch.empty([], dtype=inp.dtype, device=inp.device)
    sum_kernel_1[(mid_size, 1, 1)](inp, mid, M, block_size)
    sum_kernel_2[(1, 1, 1)](mid, out, mid_size, block_mid)
    return out


@libentry()
@triton.heuristics({"BLOCK_M": lambda args: 4, "BLOCK_N": lambda args: min(1024, triton.next_power_of_2(args["N"]))})
@triton.jit
def mean_dim_kernel(X, Mean, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    pid = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    X = X + pid * N
    Mean = Mean + pid
    row_mask = pid < M
    _mean = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    for off in range(0, N, BLOCK_N):
        cols = off + tl.arange(0, BLOCK_N)[None, :]
        _mean += tl.load(X + cols, row_mask & (cols < N), other=0.0).to(tl.float32)
    mean = tl.sum(_mean, axis=1) / N
    tl.store(Mean, mean[:, None], row_mask)


def mean_dim(x):
    M, N = x.shape
    out = torch.empty((M, 1), dtype=x.dtype, device=x.device)
    grid = lambda META: (triton.cdiv(M, META["BLOCK_M"]),)
    mean_dim_kernel[grid](x, out, M, N)
    return out


@libentry()
@triton.jit
def argmax_kernel(inp, out_index, M, N, BLOCK_N: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_N)
    values = tl.load(inp + row * N + cols, mask=cols < N, other=-float("inf"))
    tl.store(out_index + row, tl.argmax(values, axis=0))


def argmax(inp):
    M, N = inp.shape[0], inp.shape[1]
    out_index = torch.empty((M,), dtype=torch.int32, device=inp.device)
    BLOCK_N = triton.next_power_of_2(N)
    argmax_kernel[(M,)](inp, out_index, M, N, BLOCK_N=BLOCK_N)
    return out_index
