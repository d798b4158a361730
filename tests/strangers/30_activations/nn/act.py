import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import libdevice

from . import math
from .math import gelu_erf


@triton.jit
def gelu_tanh_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(y_ptr + offs, math.gelu_tanh(tl.load(x_ptr + offs, mask=mask)), mask=mask)


@triton.jit
def gelu_and_mul_kernel(x_ptr, y_ptr, d, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < d
    gate = tl.load(x_ptr + row * 2 * d + cols, mask=mask, other=0.0)
    up = tl.load(x_ptr + row * 2 * d + d + cols, mask=mask, other=0.0)
    tl.store(y_ptr + row * d + cols, gelu_erf(gate) * up, mask=mask)


@triton.jit
def softplus_kernel(x_ptr, y_ptr, beta, threshold, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    z = x * beta
    tl.store(y_ptr + offs, tl.where(z > threshold, x, libdevice.log1p(tl.exp(z)) / beta), mask=mask)


@triton.jit(do_not_specialize=["alpha"])
def elu_kernel(x_ptr, y_ptr, alpha, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    tl.store(y_ptr + offs, tl.where(x > 0, x, alpha * (tl.exp(x) - 1)), mask=mask)


def gelu_tanh(x):
    y = torch.empty_like(x)
    n = x.numel()
    gelu_tanh_kernel[(triton.cdiv(n, 512),)](x, y, n, BLOCK=512)
    return y


def gelu_and_mul(x):
    num_tokens = x.shape[0]
    d = x.shape[-1] // 2
    y = torch.empty((num_tokens, d), device=x.device)
    grid = lambda meta: (num_tokens, triton.cdiv(d, meta["BLOCK"]))
    gelu_and_mul_kernel[grid](x, y, d, BLOCK=128)
    return y


def softplus(x, beta=1.0, threshold=20.0):
    y = torch.empty_like(x)
    grid = lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)
    softplus_kernel[grid](x, y, beta, threshold, x.numel(), BLOCK=512)
    return y


class ELU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, alpha):
        y = torch.empty_like(x)
        n = x.numel()
        elu_kernel[(triton.cdiv(n, 256),)](x, y, alpha, n, BLOCK=256)
        return y
