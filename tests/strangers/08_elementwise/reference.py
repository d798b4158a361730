import numpy as np


def add(a, b):
    return a + b


elementwise_add_f32_kernel = elementwise_add_f32x4_kernel = elementwise_add_f16_kernel = add


def relu_f16x2_kernel(x):
    return np.maximum(x, 0)


def sigmoid_f32_kernel(x):
    return 1 / (1 + np.exp(-x))
