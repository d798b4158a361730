"""C = A B through the WMMA interface: half operands, FP32 sums, 16 x 16 x 16 fragments from a ring of shared tiles.

Floors of S1 on an H200: 137 GFLOP / 990 TFLOP/s = 0.14 ms, 0.13 GB / 4.28 TB/s = 0.03 ms. What bounds it is the
warp-wide matrix instruction, half as fast here as the warpgroup form that cuBLAS and `tensor_core_matmul` use.
`layout` says for A and B in turn whether it is stored transposed: nn, nt, tn or tt.
"""

from prism_bench_catalogue.include.tensor_tile import WARP_WIDE, Operands, fastest, on_tensor_tiles

from prism_bench import Budget, In, KernelSpec, Out, Rule, Size, Workload, normwise

LAYOUTS = ("nn", "nt", "tn", "tt")


def launch(m, n, k, layout, tile, stages, device):
    operands = Operands("Half", left_along=layout[0] == "n", right_along=layout[1] == "t")
    if tile == "auto":
        tile = fastest(operands, (m, n, k), device, among=WARP_WIDE)
    return on_tensor_tiles("tensor_core_matmul_wmma<{}>", operands, (m, n, k), device, tile=tile, stages=stages)


def stored(matrix, flag):
    return matrix.T if flag == "t" else matrix


def reference(a, b, layout):
    return stored(a, layout[0]) @ stored(b, layout[1])


def torch_product(torch, a, b, layout):
    return torch.mm(stored(a, layout[0]), stored(b, layout[1]))


def cupy_product(cupy, a, b, layout):
    return cupy.matmul(stored(a, layout[0]), stored(b, layout[1]))


spec = KernelSpec(
    entry="tensor_core_matmul_wmma",
    arguments=(
        In("a", "a_rows a_cols", dtype="float16"), In("b", "b_rows b_cols", dtype="float16"), Out("c", "m n"),
        Size("m"), Size("n"), Size("k"),
    ),
    parameters={"layout": "nn", "tile": "auto", "stages": "auto"},
    derived={
        "a_rows": lambda m, k, layout: m if layout[0] == "n" else k,
        "a_cols": lambda m, k, layout: k if layout[0] == "n" else m,
        "b_rows": lambda n, k, layout: k if layout[1] == "n" else n,
        "b_cols": lambda n, k, layout: n if layout[1] == "n" else k,
    },
    rules=(
        Rule("tile is auto, Wide, Square or Compact", lambda tile: tile in ("auto", *WARP_WIDE)),
        Rule("layout is nn, nt, tn or tt", lambda layout: layout in LAYOUTS),
        Rule("stages is auto, 2, 3 or 4", lambda stages: stages in ("auto", 2, 3, 4)),
    ),
    launch=launch,
    reference=reference,
    tolerance=normwise(1e-3),
    traffic_factor=6.0,  # tiles of 64 read each operand of S0 eight times; the L2 cache has it
    peers={"torch": torch_product, "cupy": cupy_product},
    flops=lambda m, n, k: 2 * m * n * k,
    arithmetic="tensor",
    workloads={
        "S0": Workload(m=512, n=512, k=512),
        "S1": Workload(m=4096, n=4096, k=4096),
        "S2": Workload(m=8192, n=8192, k=8192),
    },
    edges=(
        *(Workload(m=s, n=s, k=s) for s in (32, 64, 1, 16)),
        *(Workload(m=m, n=n, k=k) for m, n, k in ((3, 5, 0), (0, 4, 4), (40, 24, 200), (17, 67, 33), (65, 8, 40))),
        *(Workload(m=m, n=72, k=40, layout=layout) for layout in ("nt", "tn", "tt") for m in (24, 25)),
        *(Workload(m=136, n=n, k=72, tile="Wide") for n in (264, 37)),
        Workload(m=130, n=264, k=48, tile="Wide", layout="nt", stages=2),
        *(Workload(m=136, n=n, k=72, tile="Square", layout="tn") for n in (136, 37)),
    ),
    budgets=(Budget("peer_ratio", at_least=0.45, label="S1"), Budget("peer_ratio", at_least=0.45, label="S2")),
)  # fmt: skip
