"""c = a + b in Warp: one thread adds an element."""

import warp as wp

from prism_bench import Launch, Tune, Variant, Workload


@wp.kernel(grid_stride=False)
def vector_add(a: wp.array[wp.float32], b: wp.array[wp.float32], c: wp.array[wp.float32], n: wp.int64):
    """Add an element; the last block has threads beyond the end."""
    at = wp.tid()
    if wp.int64(at) < n:
        c[at] = a[at] + b[at]


def launch(n: int, block: int) -> Launch:
    return Launch(-(-n // block), block, constants={"block_dim": block})


variant = Variant(
    "in Warp: one thread adds an element",
    entry="vector_add",
    launch=launch,
    tune=Tune(block=(256, 512, 1024)),
    more_edges=(Workload(n=4096),),
)
