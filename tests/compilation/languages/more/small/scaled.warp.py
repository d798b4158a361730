"""The same in Warp."""

import warp as wp

from prism_bench import Launch, Variant

ITEMS = 1


@wp.kernel
def scaled(x: wp.array[wp.float32], y: wp.array[wp.float32], n: wp.int32, factor: wp.float32):
    """Multiply ITEMS elements a thread."""
    first = wp.tid() * ITEMS
    for item in range(ITEMS):
        if first + item < n:
            y[first + item] = x[first + item] * factor


def launch(n: int) -> Launch:
    return Launch(-(-n // 256), 128, constants={"ITEMS": 2, "block_dim": 128})


variant = Variant("in Warp", entry="scaled", launch=launch)
