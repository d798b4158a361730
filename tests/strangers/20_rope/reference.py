import numpy as np


def _rope_embedding(Q, cos, sin, seqlen, head_dim, n_heads):
    half = head_dim // 2
    Q = Q.reshape(-1, n_heads, head_dim)
    at = np.arange(len(Q)) % seqlen
    c, s = cos.reshape(-1, half)[at][:, None], sin.reshape(-1, half)[at][:, None]
    a, b = Q[..., :half], Q[..., half:]
    return np.concatenate([a * c - b * s, b * c + a * s], axis=2)


def rotate_every_two_kernel(x_ptr):
    pairs = x_ptr.reshape(-1, 2)
    return np.stack([-pairs[:, 1], pairs[:, 0]], axis=1)


def cos_sin_cache_kernel(inv_freq, positions):
    angle = np.arange(positions)[:, None] * inv_freq
    return np.cos(angle), np.sin(angle)


def kv_append_kernel(new_ptr, cache_ptr, position, n_cols, max_len):
    cache = cache_ptr.reshape(-1, max_len, n_cols).copy()
    cache[:, int(position)] = new_ptr.reshape(-1, n_cols)
    return cache
