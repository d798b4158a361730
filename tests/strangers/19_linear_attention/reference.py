import numpy as np


def chunk_local_cumsum_kernel(s, scale, T):
    rows = s.reshape(-1, T)
    parts = [rows[:, at : at + 64].cumsum(axis=1) for at in range(0, int(T), 64)]
    return np.concatenate(parts, axis=1) * scale


def l2norm_fwd_kernel(x, eps, T):
    x = x.reshape(T, -1)
    return x / np.sqrt((x * x).sum(axis=1, keepdims=True) + eps)


def fused_recurrent_fwd_kernel(q, k, v, scale, T, K, V):
    q, k, v = q.reshape(-1, T, K), k.reshape(-1, T, K), v.reshape(-1, T, V)
    scores = np.einsum("btk,bsk->bts", q, k) * scale * np.tri(int(T))
    return scores @ v


def token_shift_kernel(x, T, D):
    x = x.reshape(-1, T, D)
    return np.pad(x, ((0, 0), (1, 0), (0, 0)))[:, :-1] - x
