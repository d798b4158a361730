"""The same in Numba."""

from numba import cuda

from prism_bench import Launch, Variant

ITEMS = 1


@cuda.jit
def scaled(x, y, n, factor):
    """Multiply ITEMS elements a thread."""
    first = cuda.grid(1) * ITEMS
    for item in range(ITEMS):
        if first + item < n:
            y[first + item] = x[first + item] * factor


def launch(n: int) -> Launch:
    return Launch(-(-n // 256), 128, constants={"ITEMS": 2})


variant = Variant("in Numba", entry="scaled", launch=launch)
