import cupy as cp
import torch
from numba import cuda
import warp as wp
import cuda.tile as ct
import cutlass.cute as cute
from torch.utils.cpp_extension import load_inline

SRC = r"""
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) { }
__global__ void other(float* y) {}
"""
k = cp.RawKernel(SRC, "saxpy")
m = cp.RawModule(code=SRC, options=("-std=c++17",))
e = cp.ElementwiseKernel("float32 x", "float32 y", "y = x * x", "sq")
mod = load_inline(name="ext", cpp_sources=["void f();"], cuda_sources=[SRC], functions=["f"])


@cuda.jit
def numba_kernel(x, y):
    i = cuda.grid(1)


@cuda.jit("void(float32[:])")
def numba_typed(x):
    pass


@wp.kernel
def warp_kernel(x: wp.array(dtype=float)):
    pass


@ct.kernel
def tile_kernel(a):
    pass


@cute.kernel
def cute_kernel(a):
    pass


class A:
    @cute.kernel
    def inside(self, a):
        pass
