import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def silu(x):
    return x * tl.sigmoid(x)


@triton.jit
def gelu_tanh(x):
    return 0.5 * x * (1 + libdevice.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))
