import numpy as np


def kAbsMaxRows(A, rows, cols):
    return np.abs(A.reshape(rows, cols)).max(axis=1)


def kQuantizeRows(A, absmax, rows, cols):
    return np.rint(A.reshape(rows, cols) * (127 / absmax[:, None])).astype(np.int64).astype(np.int8)


def kDequantize(A, absmax, rows, cols):
    return A.reshape(rows, cols) * (absmax[:, None] / 127)


def kPack4bit(values):
    return (values[0::2] & 15) << 4 | (values[1::2] & 15)


def kUnpack4bit(packed, code, n):
    pairs = np.stack([packed >> 4, packed & 15], axis=1)
    return code[pairs.ravel()[:n]]
