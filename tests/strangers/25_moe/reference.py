import numpy as np


def embedding_forward_kernel(embeddings_ptr, indices_ptr, embedding_dim):
    return embeddings_ptr.reshape(-1, embedding_dim)[indices_ptr]


def expert_histogram_kernel(topk_ids, counts):
    return counts + np.bincount(topk_ids, minlength=counts.size)


def gather_rows_kernel(src, index, D):
    return src.reshape(-1, D)[index]


def moe_sum_kernel(x_ptr, weight_ptr, hidden):
    return (x_ptr.reshape(-1, 2, hidden) * weight_ptr.reshape(-1, 2, 1)).sum(axis=1)
