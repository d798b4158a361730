import torch
import triton
import triton.language as tl

from .epilogue import apply_activation, block_offsets


@triton.jit
def linear_kernel(x_ptr, w_ptr, b_ptr, y_ptr, M, N, K, ACT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = block_offsets(tl.program_id(0), BM)
    rn = block_offsets(tl.program_id(1), BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        x = tl.load(x_ptr + rm[:, None] * K + rk[None, :], mask=(rm[:, None] < M) & (rk[None, :] < K), other=0.0)
        w = tl.load(w_ptr + rn[None, :] * K + rk[:, None], mask=(rn[None, :] < N) & (rk[:, None] < K), other=0.0)
        acc += tl.dot(x, w, allow_tf32=False)
    acc = apply_activation(acc + tl.load(b_ptr + rn, mask=rn < N, other=0.0)[None, :], ACT)
    tl.store(y_ptr + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


def linear(x, w, b, act="relu"):
    M, K = x.shape
    N = w.shape[0]
    y = torch.empty((M, N), device=x.device)
    BM, BN, BK = 32, 32, 16
    grid = (triton.cdiv(M, BM), triton.cdiv(N, BN))
    linear_kernel[grid](x, w, b, y, M, N, K, ACT="relu", BM=BM, BN=BN, BK=BK)
    return y


@triton.jit
def matmul_split_k_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT_K: tl.constexpr):
    rm = block_offsets(tl.program_id(0), BM)
    rn = block_offsets(tl.program_id(1), BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(tl.program_id(2) * BK, K, BK * SPLIT_K):
        rk = k + tl.arange(0, BK)
        x = tl.load(a + rm[:, None] * K + rk[None, :], mask=(rm[:, None] < M) & (rk[None, :] < K), other=0.0)
        y = tl.load(b + rk[:, None] * N + rn[None, :], mask=(rk[:, None] < K) & (rn[None, :] < N), other=0.0)
        acc += tl.dot(x, y, allow_tf32=False)
    tl.atomic_add(c + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


def matmul_split_k(a, b):
    M, K = a.shape
    _, N = b.shape
    c = torch.zeros((M, N), device=a.device)
    SPLIT_K = 2
    grid = lambda META: (triton.cdiv(M, META["BM"]), triton.cdiv(N, META["BN"]), META["SPLIT_K"])
    matmul_split_k_kernel[grid](a, b, c, M, N, K, BM=32, BN=32, BK=16, SPLIT_K=SPLIT_K)
    return c


@triton.jit
def transpose_kernel(x_ptr, y_ptr, rows, cols, BR: tl.constexpr, BC: tl.constexpr):
    r = block_offsets(tl.program_id(0), BR)
    c = block_offsets(tl.program_id(1), BC)
    tile = tl.load(x_ptr + r[:, None] * cols + c[None, :], mask=(r[:, None] < rows) & (c[None, :] < cols))
    tl.store(y_ptr + c[:, None] * rows + r[None, :], tl.trans(tile), mask=(c[:, None] < cols) & (r[None, :] < rows))


def transpose(x):
    rows, cols = x.shape[0], x.shape[1]
    y = torch.empty((cols, rows), dtype=x.dtype, device=x.device)
    transpose_kernel[triton.cdiv(rows, 32), triton.cdiv(cols, 32)](x, y, rows, cols, BR=32, BC=32)
    return y


@triton.jit
def gemv_kernel(a_ptr, x_ptr, y_ptr, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    rm = block_offsets(tl.program_id(0), BLOCK_M)
    acc = tl.zeros((BLOCK_M,), dtype=tl.float32)
    for n in range(0, N, BLOCK_N):
        rn = n + tl.arange(0, BLOCK_N)
        a = tl.load(a_ptr + rm[:, None] * N + rn[None, :], mask=(rm[:, None] < M) & (rn[None, :] < N), other=0.0)
        x = tl.load(x_ptr + rn, mask=rn < N, other=0.0)
        acc += tl.sum(a * x[None, :], axis=1)
    tl.store(y_ptr + rm, acc, mask=rm < M)


def gemv(a, x):
    M, N = a.shape
    y = torch.empty(M, device=a.device)
    num_pid = triton.cdiv(M, 16)
    gemv_kernel[(num_pid,)](a, x, y, M, N, BLOCK_M=16, BLOCK_N=64)
    return y
