import numpy as np


def rotary_embedding_kernel(x, cos, sin, num_heads, head_size):
    half = head_size // 2
    x = x.reshape(-1, num_heads, head_size)
    c, s = cos.reshape(-1, 1, half), sin.reshape(-1, 1, half)
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * c - b * s, b * c + a * s], axis=2)


def attention_scores(q, k, T, HS, scale):
    scores = q.reshape(T, HS) @ k.reshape(T, HS).T * scale
    return np.where(np.tri(T, dtype=bool), scores, -np.finfo(np.float32).max)


def attention_softmax(att, T):
    e = np.exp(att.reshape(-1, T) - att.reshape(-1, T).max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def reshape_and_cache(key, key_cache, slot_mapping, hidden):
    cache = key_cache.reshape(-1, hidden).copy()
    cache[slot_mapping] = key.reshape(-1, hidden)
    return cache


def to_bf16(x):
    return x
