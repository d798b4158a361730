import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def tanh(x):
    return libdevice.tanh(x)


@triton.jit
def gelu_tanh(x):
    return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


@triton.jit
def gelu_erf(x):
    return 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))
