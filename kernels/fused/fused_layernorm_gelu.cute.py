"""GELU of a layer norm in the CuTe DSL: a block per row, read once where its registers hold it, else three times."""

import cutlass
import cutlass.cute as cute

from prism_bench import Launch, Variant, Workload

from ..include.languages.cute_norms import launch_rows
from ..include.layers.layer_norm import ROWS_TUNE, row_constants


@cute.jit
def fused_layernorm_gelu(
    x: cute.Pointer, gamma: cute.Pointer, beta: cute.Pointer, y: cute.Pointer, cols: cutlass.Int32,
    eps: cutlass.Float32, threads: cutlass.Constexpr, items: cutlass.Constexpr, width: cutlass.Constexpr,
    form: cutlass.Constexpr,
):  # fmt: skip
    """Launch a block per row; without items rows are read three times."""
    launch_rows((x, gamma, beta, y), cols, eps, items > 0, (threads, items, width, form))


def launch(batch: int, length: int, cols: int, approximate: str, block: int) -> Launch:
    constants = row_constants(cols, block)
    return Launch(batch * length, constants["threads"], constants={**constants, "form": approximate})


variant = Variant(
    "in the CuTe DSL: a block per row",
    entry="fused_layernorm_gelu",
    launch=launch,
    tune=ROWS_TUNE,
    more_edges=(Workload(length=3, cols=128),),
)
