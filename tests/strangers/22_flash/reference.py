import numpy as np


def _attn_fwd(Q, K, V, sm_scale, N_CTX):
    Q, K, V = (x.reshape(-1, N_CTX, 32) for x in (Q, K, V))
    scores = np.where(np.tri(int(N_CTX), dtype=bool), Q @ K.transpose(0, 2, 1) * sm_scale, -np.inf)
    e = np.exp(scores - scores.max(axis=2, keepdims=True))
    return e / e.sum(axis=2, keepdims=True) @ V


def _bwd_preprocess(O, DO, N_CTX):
    return (O * DO).reshape(-1, N_CTX, 32).sum(axis=2)


def merge_attn_states_kernel(lse_a, lse_b, prefix, suffix):
    a, b = lse_a.reshape(-1, 1), lse_b.reshape(-1, 1)
    share = 1 / (1 + np.exp(b - a))
    tokens = a.shape[0]
    return share * prefix.reshape(tokens, -1) + (1 - share) * suffix.reshape(tokens, -1)


def decode_scores_kernel(q_ptr, k_ptr, scale, seqlen):
    return k_ptr.reshape(seqlen, -1) @ q_ptr * scale
