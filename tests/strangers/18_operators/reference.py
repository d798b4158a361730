import numpy as np


def clamp_kernel(X, low, high):
    return np.clip(X, low, high)


def masked_fill_kernel(inp, expand_mask, value):
    return np.where(expand_mask != 0, value, inp)


def sum_kernel_1(inp, M):
    size = 1 << int(np.ceil(np.log2(np.ceil(np.sqrt(M)))))
    padded = np.zeros(-(-int(M) // size) * size)
    padded[: int(M)] = inp
    return padded.reshape(-1, size).sum(axis=1)


def sum_kernel_2(mid):
    return mid.sum().reshape(1)


def mean_dim_kernel(X, M, N):
    return X.reshape(M, N).mean(axis=1)


def argmax_kernel(inp, M, N):
    return inp.reshape(M, N).argmax(axis=1)
