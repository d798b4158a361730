"""C = A B through the WMMA interface: half operands, FP32 sums, 16 x 16 x 16 fragments from a ring of shared tiles.

The bottleneck is the warp-wide matrix instruction: it keeps the tensor pipe less busy than the warpgroup form that
cuBLAS and `tensor_core_matmul` use, and neither memory is full. `layout` gives for A and B in turn whether it is stored
transposed: nn, nt, tn or tt.
"""

from prism_bench import Budget, KernelSpec, Launch, Rule, normwise
from prism_bench.spec import Device

from ..include.products.half_product import (
    ARGUMENTS,
    DERIVED,
    EDGES,
    PEERS,
    RULES,
    WORKLOADS,
    flops,
    operands_of,
    reference,
)
from ..include.tensor_cores.tensor_tile import WARP_WIDE, fastest, on_tensor_tiles


def launch(m: int, n: int, k: int, layout: str, tile: str, stages: int | str, device: Device) -> Launch:
    operands = operands_of(layout)
    if tile == "auto":
        tile = fastest(operands, (m, n, k), device, among=WARP_WIDE)
    return on_tensor_tiles("tensor_core_matmul_wmma<{}>", operands, (m, n, k), device, tile=tile, stages=stages)


spec = KernelSpec(
    entry="tensor_core_matmul_wmma",
    arguments=ARGUMENTS,
    parameters={"layout": "nn", "tile": "auto", "stages": "auto"},
    derived=DERIVED,
    rules=(Rule(f"tile is auto or one of {', '.join(WARP_WIDE)}", lambda tile: tile in ("auto", *WARP_WIDE)), *RULES),
    launch=launch,
    reference=reference,
    tolerance=normwise(1e-3),
    traffic_factor=8.0,  # small tiles read the operands of S0 8 and 16 times; the L2 cache has them
    peers=PEERS,
    before="tensor_core_matmul",
    flops=flops,
    arithmetic="tensor",
    workloads=WORKLOADS,
    edges=EDGES,
    budgets=(Budget("peer_ratio", at_least=0.45, label="S1"), Budget("peer_ratio", at_least=0.45, label="S2")),
)  # fmt: skip
