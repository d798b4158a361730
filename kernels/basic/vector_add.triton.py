"""c = a + b in Triton: one program adds a block of elements."""

import triton
import triton.language as tl

from prism_bench import Launch, Tune, Variant


@triton.jit
def vector_add(a, b, c, n: tl.int64, BLOCK: tl.constexpr):
    """Add BLOCK elements; the index has 64 bits, because arrays may have more elements than 32 bits count."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(c + at, tl.load(a + at, inside) + tl.load(b + at, inside), inside)


def launch(n: int, block: int, warps: int) -> Launch:
    return Launch(triton.cdiv(n, block), constants={"BLOCK": block, "num_warps": warps})


variant = Variant(
    "in Triton: one program adds a block of elements",
    entry="vector_add",
    launch=launch,
    tune=Tune(block=(1024, 2048, 512), warps=(4, 8)),
)
