import torch
import triton
import triton.language as tl


@triton.jit
def _per_token_group_quant_8bit(y_ptr, y_q_ptr, y_s_ptr, y_stride, N, eps, bit8_max, BLOCK: tl.constexpr):
    g_id = tl.program_id(0)
    y_ptr += g_id.to(tl.int64) * y_stride
    y_q_ptr += g_id.to(tl.int64) * y_stride
    y_s_ptr += g_id
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    y = tl.load(y_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    _absmax = tl.maximum(tl.max(tl.abs(y)), eps)
    y_s = _absmax / bit8_max
    y_q = (y / y_s).to(tl.int8)
    tl.store(y_q_ptr + cols, y_q, mask=mask)
    tl.store(y_s_ptr, y_s)


def per_token_group_quant_8bit(x: torch.Tensor, group_size: int, eps: float = 1e-10):
    assert x.is_contiguous()
    x_q = torch.empty_like(x, device=x.device, dtype=torch.int8)
    M = x.numel() // group_size
    N = group_size
    x_s = torch.empty((M,), device=x.device, dtype=torch.float32)
    BLOCK = triton.next_power_of_2(N)
    num_warps = min(max(BLOCK // 256, 1), 8)
    _per_token_group_quant_8bit[(M,)](x, x_q, x_s, group_size, N, eps, 127.0, BLOCK=BLOCK, num_warps=num_warps, num_stages=1)
    return x_q, x_s


@triton.jit
def dequantize_blockwise_kernel(q_ptr, code_ptr, absmax_ptr, out_ptr, n, QBLOCK: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    index = tl.load(q_ptr + offs, mask=mask, other=0).to(tl.int32)
    absmax = tl.load(absmax_ptr + offs // QBLOCK, mask=mask, other=0.0)
    tl.store(out_ptr + offs, tl.load(code_ptr + index, mask=mask) * absmax, mask=mask)


def dequantize_blockwise(A: torch.Tensor, code: torch.Tensor, absmax: torch.Tensor):
    out = torch.empty(A.shape, dtype=torch.float32, device=A.device)
    n = A.numel()
    grid = (triton.cdiv(n, 512),)
    dequantize_blockwise_kernel[grid](A.view(torch.uint8), code, absmax, out, n, QBLOCK=64, BLOCK=512)
    return out


@triton.jit
def pack_int4_kernel(x_ptr, packed_ptr, n_bytes, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n_bytes
    low = tl.load(x_ptr + 2 * offs, mask=mask, other=0)
    high = tl.load(x_ptr + 2 * offs + 1, mask=mask, other=0)
    tl.store(packed_ptr + offs, (low & 0xF) | ((high & 0xF) << 4), mask=mask)


def pack_int4(x: torch.Tensor):
    packed = torch.empty(x.numel() // 2, dtype=torch.int32, device=x.device)
    n_bytes = packed.numel()
    pack_int4_kernel[lambda meta: (triton.cdiv(n_bytes, meta["BLOCK"]),)](x.int(), packed, n_bytes, BLOCK=256)
    return packed


@triton.jit
def w8a16_gemv_kernel(x_ptr, w_ptr, scale_ptr, y_ptr, N, K, BLOCK_K: tl.constexpr):
    row = tl.program_id(0)
    acc = tl.zeros([BLOCK_K], dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        cols = k + tl.arange(0, BLOCK_K)
        mask = cols < K
        w = tl.load(w_ptr + row * K + cols, mask=mask, other=0).to(tl.float32)
        acc += w * tl.load(x_ptr + cols, mask=mask, other=0.0)
    tl.store(y_ptr + row, tl.sum(acc, axis=0) * tl.load(scale_ptr + row))


def w8a16_gemv(x, w: torch.Tensor, scale):
    N, K = w.shape
    assert w.dtype == torch.int8
    y = torch.empty((N,), dtype=torch.float32, device=x.device)
    w8a16_gemv_kernel[(N,)](x, w, scale, y, N, K, BLOCK_K=128)
    return y
