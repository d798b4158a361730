import numpy as np


def add_kernel(x_ptr, y_ptr):
    return x_ptr + y_ptr


def softmax_kernel(input_ptr, n_rows, n_cols):
    x = input_ptr.reshape(n_rows, n_cols)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def _dropout(x_ptr, x_keep_ptr, p):
    return np.where(x_keep_ptr != 0, x_ptr / (1 - p), 0.0)


def _layer_norm_fwd_fused(X, W, B, N, eps):
    X = X.reshape(-1, N)
    mean, rstd = X.mean(axis=1), 1 / np.sqrt(X.var(axis=1) + eps)
    return (X - mean[:, None]) * rstd[:, None] * W + B, mean, rstd


def matmul_kernel(a_ptr, b_ptr, M, N, K):
    return a_ptr.reshape(M, K) @ b_ptr.reshape(K, N)
