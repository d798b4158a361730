import numpy as np


def _per_token_group_quant_8bit(y_ptr, N, eps, bit8_max):
    y = y_ptr.reshape(-1, N)
    scale = np.maximum(np.abs(y).max(axis=1), eps) / bit8_max
    return np.trunc(y / scale[:, None]), scale


def dequantize_blockwise_kernel(q_ptr, code_ptr, absmax_ptr, n):
    return code_ptr[q_ptr] * absmax_ptr[np.arange(n) // 64]


def pack_int4_kernel(x_ptr):
    pairs = x_ptr.reshape(-1, 2)
    return (pairs[:, 0] & 15) | ((pairs[:, 1] & 15) << 4)


def w8a16_gemv_kernel(x_ptr, w_ptr, scale_ptr, N, K):
    return w_ptr.reshape(N, K).astype(float) @ x_ptr * scale_ptr
