import torch
import triton
import triton.language as tl


def fused_settings(hidden: int):
    return triton.next_power_of_2(hidden), 4


@triton.jit
def group_norm_kernel(X, Y, W, B, eps, group_size, C, HW, num_groups: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    group = pid % num_groups
    offs = tl.arange(0, BLOCK)
    size = group_size * HW
    mask = offs < size
    x = tl.load(X + pid * size + offs, mask=mask, other=0.0)
    mean = tl.sum(x) / size
    centred = tl.where(mask, x - mean, 0.0)
    rstd = tl.rsqrt(tl.sum(centred * centred) / size + eps)
    channel = group * group_size + offs // HW
    w = tl.load(W + channel, mask=mask)
    b = tl.load(B + channel, mask=mask)
    tl.store(Y + pid * size + offs, centred * rstd * w + b, mask=mask)


def group_norm(x, weight, bias, num_groups, eps=1e-5):
    N, C, HW = x.shape
    group_size = triton.cdiv(C, num_groups)
    y = torch.empty_like(x)
    grid = (N * num_groups,)
    group_norm_kernel[grid](x, y, weight, bias, eps, group_size, C, HW, num_groups=num_groups, BLOCK=triton.next_power_of_2(group_size * HW))
    return y


@triton.jit
def layer_norm_bwd_dx_kernel(DX, DY, X, W, Mean, Rstd, stride, N, BLOCK_SIZE_N: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE_N)
    mask = cols < N
    x = tl.load(X + row * stride + cols, mask=mask, other=0).to(tl.float32)
    dy = tl.load(DY + row * stride + cols, mask=mask, other=0).to(tl.float32)
    w = tl.load(W + cols, mask=mask, other=0).to(tl.float32)
    rstd = tl.load(Rstd + row)
    xhat = tl.where(mask, (x - tl.load(Mean + row)) * rstd, 0.0)
    wdy = tl.where(mask, w * dy, 0.0)
    c1 = tl.sum(xhat * wdy, axis=0) / N
    c2 = tl.sum(wdy, axis=0) / N
    tl.store(DX + row * stride + cols, (wdy - (xhat * c1 + c2)) * rstd, mask=mask)


def layer_norm_bwd_dx(dy, x, w, mean, rstd):
    M, N = x.shape
    dx = torch.empty_like(dy)
    BLOCK_SIZE_N, num_warps = fused_settings(N)
    layer_norm_bwd_dx_kernel[(M,)](dx, dy, x, w, mean, rstd, x.stride(0), N, BLOCK_SIZE_N=BLOCK_SIZE_N, num_warps=num_warps)
    return dx


@triton.jit
def batch_stats_kernel(x_ptr, mean_ptr, var_ptr, n_rows, n_cols, BLOCK_ROWS: tl.constexpr):
    col = tl.program_id(0)
    total = tl.zeros([BLOCK_ROWS], dtype=tl.float32)
    square = tl.zeros([BLOCK_ROWS], dtype=tl.float32)
    for start in range(0, n_rows, BLOCK_ROWS):
        rows = start + tl.arange(0, BLOCK_ROWS)
        x = tl.load(x_ptr + rows * n_cols + col, mask=rows < n_rows, other=0.0)
        total += x
        square += x * x
    mean = tl.sum(total, axis=0) / n_rows
    tl.store(mean_ptr + col, mean)
    tl.store(var_ptr + col, tl.sum(square, axis=0) / n_rows - mean * mean)


def batch_stats(x):
    n_rows, n_cols = x.shape
    mean = torch.empty(n_cols, device=x.device)
    var = torch.empty_like(mean)
    batch_stats_kernel[(n_cols,)](x, mean, var, n_rows, n_cols, BLOCK_ROWS=64)
    return mean, var


@triton.jit
def fused_add_rms_norm_kernel(x_ptr, residual_ptr, weight_ptr, hidden_dim, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * hidden_dim
    cols = tl.arange(0, BLOCK)
    mask = cols < hidden_dim
    r = tl.load(residual_ptr + row + cols, mask=mask, other=0.0) + tl.load(x_ptr + row + cols, mask=mask, other=0.0)
    tl.store(residual_ptr + row + cols, r, mask=mask)
    rrms = tl.rsqrt(tl.sum(r * r, axis=0) / hidden_dim + eps)
    tl.store(x_ptr + row + cols, r * rrms * tl.load(weight_ptr + cols, mask=mask), mask=mask)


def fused_add_rms_norm(x, residual, weight, eps):
    bs, hidden_dim = x.shape
    fused_add_rms_norm_kernel[(bs,)](x, residual, weight, hidden_dim, eps, BLOCK=triton.next_power_of_2(hidden_dim))
