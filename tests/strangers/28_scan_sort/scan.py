import torch
import triton
import triton.language as tl


@triton.jit
def _combine(decay_left, value_left, decay_right, value_right):
    return decay_left * decay_right, value_left * decay_right + value_right


@triton.jit
def cumsum_rows_kernel(x_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0)
    tl.store(y_ptr + row * n_cols + cols, tl.cumsum(x, axis=0), mask=mask)


def cumsum_rows(x):
    n_rows, n_cols = x.shape
    y = torch.empty_like(x)
    cumsum_rows_kernel[(n_rows,)](x, y, n_cols, BLOCK=triton.next_power_of_2(n_cols))
    return y


@triton.jit
def linear_scan_kernel(decay_ptr, value_ptr, out_ptr, seqlen, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    t = tl.arange(0, BLOCK)
    mask = t < seqlen
    a = tl.load(decay_ptr + row * seqlen + t, mask=mask, other=1.0)
    b = tl.load(value_ptr + row * seqlen + t, mask=mask, other=0.0)
    _, out = tl.associative_scan((a, b), 0, _combine)
    tl.store(out_ptr + row * seqlen + t, out, mask=mask)


def linear_scan(decay, value):
    batch, seqlen = decay.shape
    out = torch.empty_like(value)
    linear_scan_kernel[(batch,)](decay, value, out, seqlen, BLOCK=triton.next_power_of_2(seqlen))
    return out


@triton.jit
def sort_rows_kernel(x_ptr, y_ptr, N: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, N)
    tl.store(y_ptr + row * N + cols, tl.sort(tl.load(x_ptr + row * N + cols)))


def sort_rows(x):
    M, N = x.shape
    y = torch.empty_like(x)
    assert N == triton.next_power_of_2(N)
    sort_rows_kernel[(M,)](x, y, N=64)
    return y


@triton.jit
def count_nonzero_kernel(x_ptr, out_ptr, numel, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < numel, other=0)
    tl.atomic_add(out_ptr, tl.sum((x != 0).to(tl.int32), axis=0))


def count_nonzero(x: torch.Tensor):
    out = torch.zeros(1, dtype=torch.int32, device=x.device)
    numel = x.numel()
    count_nonzero_kernel[(triton.cdiv(numel, 256), 1, 1)](x.to(torch.int32), out, numel, BLOCK=256)
    return out
