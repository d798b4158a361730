import triton
import triton.language as tl


@triton.jit
def apply_activation(x, NAME: tl.constexpr):
    if NAME == "relu":
        return tl.maximum(x, 0.0)
    return x


@triton.jit
def block_offsets(pid, SIZE: tl.constexpr):
    return pid * SIZE + tl.arange(0, SIZE)
