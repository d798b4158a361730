"""c = a + b in Numba: one thread adds an element."""

from numba import cuda

from prism_bench import Launch, Tune, Variant, Workload


@cuda.jit
def vector_add(a, b, c, n):
    """Add an element; the index has 64 bits, because arrays may have more elements than 32 bits count."""
    at = cuda.grid(1)
    if at < n:
        c[at] = a[at] + b[at]


def launch(n: int, block: int) -> Launch:
    return Launch(-(-n // block), block)


variant = Variant(
    "in Numba: one thread adds an element",
    entry="vector_add",
    launch=launch,
    tune=Tune(block=(256, 512, 1024)),
    more_edges=(Workload(n=4096),),
)
