"""y = factor x in Triton."""

import triton
import triton.language as tl

from prism_bench import Launch, Tune, Variant


@triton.jit
def scaled(x, y, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, factor * tl.load(x + at, at < n), at < n)


variant = Variant(
    "in Triton",
    launch=lambda n, block: Launch(triton.cdiv(n, block), constants={"BLOCK": block, "num_warps": 2}),
    tune=Tune(block=(256, 1024)),
)
