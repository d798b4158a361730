import numpy as np


def causal_conv1d_kernel(x_ptr, w_ptr, bias_ptr, dim, seqlen):
    x, w = x_ptr.reshape(-1, dim, seqlen), w_ptr.reshape(dim, 4)
    padded = np.pad(x, ((0, 0), (0, 0), (3, 0)))
    out = sum(w[:, k, None] * padded[:, :, k : k + seqlen] for k in range(4)) + bias_ptr[:, None]
    return out / (1 + np.exp(-out))


def max_pool1d_kernel(x, rows, length, out_length):
    x = x.reshape(rows, length)
    return np.maximum(x[:, 0 : 2 * out_length : 2], x[:, 1 : 2 * out_length : 2])


def upsample_nearest2d_kernel(ptr_i, N, OH, OW, IH, IW):
    image = ptr_i.reshape(N, IH, IW)
    return image[:, np.arange(OH) * IH // OH][:, :, np.arange(OW) * IW // OW]


def pad_rows_kernel(x, cols, padded, value):
    x = x.reshape(-1, cols)
    return np.pad(x, ((0, 0), (0, int(padded - cols))), constant_values=value)
