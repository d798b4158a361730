"""C = A B on the tensor cores: half operands, FP32 sums, a ring of shared-memory tiles that copies fill ahead.

On compute capability 9.0 one warpgroup copies by tensor maps, the rows of A once for both blocks of a cluster; two
multiply by warpgroup instructions (wgmma), each tile turned over, in turns: one stores while the other multiplies. They
share a larger tile (`StreamedTall`) where its rounds fill the device better. The bottleneck is power: clocks fall until
the device draws what it may. mma.sync fed by ldmatrix elsewhere and where rows are ragged. `layout` gives for A and B
in turn whether it is stored transposed: nn, nt, tn or tt.

Tiles are turned over because a lane then has sums of two columns and many rows: it needs two numbers of a bias where it
needed a pair for every 32 columns, and two warps fill a box of 32 rows where four had to wait for each other.
`StreamedTall` needs less power and hides no store: it is faster for plain products of whole rounds, slower before bias
and GELU. The same tile not turned over is no faster and needs a second store. e4m3 has no `StreamedTall`: at twice the
rate a store that nothing hides counts twice. Narrow results, under 129 columns, use one block of each cluster.
"""

from dataclasses import replace

from prism_bench import Budget, In, KernelSpec, Launch, Out, Rule, Scratch, Size, Tune, Variant, Workload, normwise
from prism_bench.spec import Device, real

from ..include.products.half_product import (
    ARGUMENTS,
    DERIVED,
    EDGES,
    LAYOUTS,
    PEERS,
    RULES,
    SIZES,
    WORKLOADS,
    flops,
    operands_of,
    reference,
)
from ..include.products.scaled_product import SCALED
from ..include.tensor_cores.tensor_tile import BY_MAPS, TENSOR_RULE, WARP_WIDE, fits, on_tensor_tiles, on_warpgroups

IN_HALF = real(most=2.0**8)  # products of what is rounded to half first

# From one tile of one depth, over the ring of stages, to ragged sizes: what goes wrong first shows where.
LADDER = (
    *(Workload(m=128, n=256, k=k) for k in (16, 64, 128, 192, 320, 1024)),
    *(Workload(m=128, n=256, k=128, layout=layout) for layout in ("nt", "tn", "tt")),
    *(Workload(m=m, n=n, k=k) for m, n, k in ((256, 512, 192), (64, 256, 64), (128, 8, 64), (1, 8, 8), (3, 8, 0))),
    *(Workload(m=136, n=264, k=72, layout=layout) for layout in LAYOUTS),
    *(Workload(m=m, n=n, k=k) for m, n, k in ((8, 0, 8), (1000, 1000, 1000), (2056, 3096, 200), (4100, 2200, 136))),
    Workload(m=520, n=776, k=456, stages=3),
)


def launch(m: int, n: int, k: int, layout: str, tile: str, stages: int | str, device: Device) -> Launch:
    operands = operands_of(layout)
    return on_tensor_tiles("tensor_core_matmul<{}>", operands, (m, n, k), device, tile=tile, stages=stages)


def launch_with_casts(
    m: int, n: int, k: int, a_count: int, b_count: int, layout: str, tile: str, stages: str, device: Device
) -> tuple[Launch, ...]:
    names = ("a_half", "b_half", "c", "m", "n", "k")
    product = launch(m, n, k, layout, tile, stages, device)
    maps = tuple(replace(one, name=name) for one, name in zip(product.maps, names, strict=False))
    casts = (
        Launch(-(-count // 1024), 256, entry="round_to_half", arguments=(name, f"{name}_half", f"{name}_count"))
        for name, count in (("a", a_count), ("b", b_count))
    )
    return (*casts, replace(product, arguments=names, maps=maps))


def possible(m: int, n: int, k: int, layout: str, tile: str, stages: str, device: Device) -> bool:
    if tile == "auto":
        return stages == "auto"
    return fits(tile, operands_of(layout), (m, n, k), stages, device)


def by_maps(tile: str, *others: str) -> Variant:
    """The variant that is pinned to a tile by tensor maps; its edges climb with the other tiles, too."""
    edges = tuple(edge for edge in LADDER if 0 not in (edge["n"], edge["k"]))
    more = (Workload(**edge, tile=other) for other in others for edge in edges)
    return on_warpgroups({"layout": "nn", "stages": "auto"}, (*edges, *more), tile, only_labels=("S0",))


spec = KernelSpec(
    entry="tensor_core_matmul",
    arguments=ARGUMENTS,
    parameters={"layout": "nn"},
    derived={**DERIVED, "a_count": lambda m, k: m * k, "b_count": lambda n, k: n * k},
    rules=(TENSOR_RULE, *RULES),
    launch=launch,
    tune=Tune(
        tile=("auto", *BY_MAPS, "Warpgroups", *WARP_WIDE),
        stages=("auto", 2, 3, 4),
        rules=(Rule("a tile that suits the operands, in stages that shared memory holds", possible),),
    ),
    reference=reference,
    tolerance=normwise(1e-3),
    traffic_factor=8.0,  # small tiles read the operands of S0 8 and 16 times; the L2 cache has them
    peers=PEERS,
    flops=flops,
    arithmetic="tensor",
    workloads=WORKLOADS,
    edges=EDGES,
    variants={
        "casts": Variant(
            "from float32, rounded to half first: three launches",
            arguments=(
                In("a", "a_rows a_cols", domain=IN_HALF), In("b", "b_rows b_cols", domain=IN_HALF),
                Scratch("a_half", "a_rows a_cols", dtype="float16"),
                Scratch("b_half", "b_rows b_cols", dtype="float16"), Out("c", "m n"), *SIZES, Size("a_count", "int64"),
                Size("b_count", "int64"),
            ),
            launch=launch_with_casts,
            edges=(Workload(m=17, n=67, k=33), Workload(m=40, n=24, k=72)),
        ),
        "wgmma": on_warpgroups({"layout": "nn", "stages": "auto"}, LADDER, only_labels=("S0",)),
        "tma": by_maps("Streamed", "StreamedTall"),
        "tma_square": by_maps("StreamedSquare"),
        "float8": SCALED,
        "mma": Variant(
            "warp-wide instructions (mma.sync), as on other devices",
            parameters={"layout": "nn", "tile": "Wide", "stages": 3},
            edges=(),
            only_labels=("S1",),
        ),
    },
    budgets=(Budget("peer_ratio", at_least=0.9, label="S1"), Budget("peer_ratio", at_least=0.9, label="S2")),
)  # fmt: skip
