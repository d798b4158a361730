"""The same in the CuTe DSL."""

import cutlass
import cutlass.cute as cute

from prism_bench import Launch, Variant


@cute.kernel
def multiply(x: cute.Pointer, y: cute.Pointer, n: cutlass.Int32, factor: cutlass.Float32):
    """Multiply an element a thread."""
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    size, _, _ = cute.arch.block_dim()
    at = block * size + thread
    if at < n:
        source = cute.make_tensor(x, cute.make_layout(n))
        target = cute.make_tensor(y, cute.make_layout(n))
        target[at] = source[at] * factor


@cute.jit
def scaled(x: cute.Pointer, y: cute.Pointer, n: cutlass.Int32, factor: cutlass.Float32, threads: cutlass.Constexpr):
    """Launch `multiply`."""
    multiply(x, y, n, factor).launch(grid=(1, 1, 1), block=(threads, 1, 1))


def launch(n: int) -> Launch:
    return Launch(-(-n // 128), 128, constants={"threads": 128})


variant = Variant("in the CuTe DSL", entry="scaled", launch=launch)
