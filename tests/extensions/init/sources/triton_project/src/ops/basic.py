import torch
import triton
import triton.language as tl
from .act import silu, gelu_tanh


@triton.jit
def add_kernel(x_ptr, y_ptr, output_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(axis=0)
    offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(output_ptr + offsets, x + y, mask=mask)


def add(x: torch.Tensor, y: torch.Tensor):
    output = torch.empty_like(x)
    n_elements = output.numel()
    grid = lambda meta: (triton.cdiv(n_elements, meta["BLOCK_SIZE"]),)
    add_kernel[grid](x, y, output, n_elements, BLOCK_SIZE=1024)
    return output


@triton.jit
def silu_mul_kernel(a_ptr, b_ptr, c_ptr, stride, n_cols: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    a_ptr += pid * stride
    b_ptr += pid * stride
    c_ptr += pid * stride
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    a = tl.load(a_ptr + cols, mask=mask, other=0).to(tl.float32)
    b = tl.load(b_ptr + cols, mask=mask, other=0)
    tl.store(c_ptr + cols, silu(a) * b, mask=mask)


def swiglu(a, b):
    shape = a.shape
    n_cols = shape[-1]
    a = a.view(-1, n_cols)
    b = b.view(-1, n_cols)
    c = torch.empty_like(a)
    n_rows = a.shape[0]
    BLOCK_SIZE, num_warps = calculate_settings(n_cols)
    silu_mul_kernel[(n_rows,)](a, b, c, c.stride(-2), n_cols=n_cols, BLOCK_SIZE=BLOCK_SIZE, num_warps=num_warps)
    return c


@triton.jit
def sum_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    tl.atomic_add(out_ptr, tl.sum(x, axis=0))


def total(x):
    out = torch.zeros(1, device=x.device, dtype=torch.float32)
    n = x.numel()
    sum_kernel[(triton.cdiv(n, 512),)](x, out, n, BLOCK=512)
    return out


@triton.jit
def embedding_kernel(idx_ptr, weight_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    idx = tl.load(idx_ptr + row)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    v = tl.load(weight_ptr + idx * n_cols + cols, mask=mask)
    tl.store(out_ptr + row * n_cols + cols, v, mask=mask)


def embedding(idx, weight):
    n = idx.numel()
    d = weight.shape[1]
    out = torch.empty((n, d), device=idx.device, dtype=weight.dtype)
    embedding_kernel[(n,)](idx, weight, out, d, BLOCK=triton.next_power_of_2(d))
    return out


@triton.jit
def sgd_kernel(p_ptr, g_ptr, lr, weight_decay, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    p = tl.load(p_ptr + offs, mask=mask)
    g = tl.load(g_ptr + offs, mask=mask) + weight_decay * p
    tl.store(p_ptr + offs, p - lr * g, mask=mask)


def step(p, g, lr=1e-3, weight_decay=0.01):
    n = p.numel()
    sgd_kernel[lambda m: (triton.cdiv(n, m["BLOCK"]),)](p, g, lr, weight_decay, n, BLOCK=256)


@triton.jit
def gelu_bias_kernel(x_ptr, bias_ptr, y_ptr, n, cols, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    b = tl.load(bias_ptr + offs % cols, mask=mask)
    tl.store(y_ptr + offs, gelu_tanh(x + b), mask=mask)


def gelu_bias(x, bias):
    y = torch.empty_like(x)
    gelu_bias_kernel[(triton.cdiv(x.numel(), 1024),)](x, bias, y, x.numel(), x.shape[-1], BLOCK=1024)
    return y
