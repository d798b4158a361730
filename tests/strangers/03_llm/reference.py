import numpy as np


def layernorm_forward_kernel1(inp, weight, bias, N, C):
    x = inp.reshape(N, C)
    mean = x.mean(axis=1)
    rstd = 1 / np.sqrt(x.var(axis=1) + 1e-5)
    return (x - mean[:, None]) * rstd[:, None] * weight + bias, mean, rstd


def rmsnorm_kernel(x, weight, size):
    x = x.reshape(-1, size)
    return weight * x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-5)


def softmax_forward_kernel(inp, N, C):
    e = np.exp(inp.reshape(N, C) - inp.reshape(N, C).max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def gelu_kernel(inp):
    return 0.5 * inp * (1 + np.tanh(np.sqrt(2 / np.pi) * (inp + 0.044715 * inp**3)))


def residual_kernel(inp1, inp2):
    return inp1 + inp2
