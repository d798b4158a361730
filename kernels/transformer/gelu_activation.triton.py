"""GELU in Triton, by the polynomial of the CUDA form: the library's erfc takes longer than memory."""

import triton
import triton.language as tl

from prism_bench import Launch, Tune, Variant, Workload

from ..include.languages.triton_norms import gelu_of


@triton.jit
def gelu(x, y, n: tl.int64, TANH: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, gelu_of(tl.load(x + at, at < n), TANH), at < n)


def launch(n: int, approximate: str, block: int, warps: int) -> Launch:
    constants = {"TANH": approximate == "tanh", "BLOCK": block, "num_warps": warps}
    return Launch(triton.cdiv(n, block), constants=constants)


variant = Variant(
    "in Triton",
    entry="gelu",
    launch=launch,
    more_edges=(Workload(n=4096),),
    tune=Tune(block=(1024, 512, 2048), warps=(4, 8)),
)
