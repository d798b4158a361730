"""C = A B on the tensor cores: half operands, FP32 sums, mma.sync fed by ldmatrix from a ring of shared-memory tiles.

Floors of S1 on an H200: 137 GFLOP / 990 TFLOP/s = 0.14 ms, 0.13 GB / 4.28 TB/s = 0.03 ms. What bounds it is mma.sync
itself, which reaches about two thirds of the rate of the warpgroup instructions that cuBLAS uses.
`layout` says for A and B in turn whether it is stored transposed: nn, nt, tn or tt.
"""

from prism_bench import Budget, In, KernelSpec, Launch, Out, Rule, Scratch, Size, Variant, Workload, normwise

# Rows, columns, depth and threads of the tiles of tensor_tile.cuh, and the share of the rate that each keeps busy.
TILES = {"Wide": (128, 256, 64, 256, 1.0), "Square": (128, 128, 64, 128, 0.9), "Compact": (64, 64, 32, 128, 0.5)}
LAYOUTS = ("nn", "nt", "tn", "tt")


def blocks(name, m, n):
    rows, cols, *_ = TILES[name]
    return -(-m // rows) * -(-n // cols)


def shared_bytes(name, layout, stages):
    """Tiles in memory order, each row 8 elements longer."""
    rows, cols, depth, *_ = TILES[name]
    left = rows * (depth + 8) if layout[0] == "n" else depth * (rows + 8)
    right = depth * (cols + 8) if layout[1] == "n" else cols * (depth + 8)
    return 2 * stages * (left + right)


def fastest(m, n, layout, stages, device):
    """The tile whose rounds over the multiprocessors take the least time, among those that fit."""

    def time(name):
        rows, cols, _, _, busy = TILES[name]
        return -(-blocks(name, m, n) // device.sm_count) * rows * cols / busy

    fitting = [name for name in TILES if shared_bytes(name, layout, stages) <= device.max_shared_bytes]
    return min(fitting, key=time)


def launch(m, n, a_cols, b_cols, layout, tile, stages, device):
    name = fastest(m, n, layout, stages, device) if tile == "auto" else tile
    along = f"{str(layout[0] == 'n').lower()}, {str(layout[1] == 't').lower()}"
    width = 1 if a_cols % 8 or b_cols % 8 else 8
    return Launch(
        grid=blocks(name, m, n),
        block=TILES[name][3],
        shared=shared_bytes(name, layout, stages),
        entry=f"tensor_core_matmul<{name}<Half, {stages}>, {along}, {width}>",
    )


def launch_with_casts(m, n, a_cols, b_cols, a_count, b_count, layout, tile, stages, device):
    product = launch(m, n, a_cols, b_cols, layout, tile, stages, device)
    casts = (
        Launch(-(-count // 1024), 256, entry="round_to_half", arguments=(name, f"{name}_half", f"{name}_count"))
        for name, count in (("a", a_count), ("b", b_count))
    )
    names = ("a_half", "b_half", "c", "m", "n", "k")
    return (*casts, Launch(product.grid, product.block, product.shared, product.entry, names))


def stored(matrix, flag):
    return matrix.T if flag == "t" else matrix


def reference(a, b, layout):
    return stored(a, layout[0]) @ stored(b, layout[1])


def torch_product(torch, a, b, layout):
    return torch.mm(stored(a, layout[0]), stored(b, layout[1]))


def cupy_product(cupy, a, b, layout):
    return cupy.matmul(stored(a, layout[0]), stored(b, layout[1]))


SIZES = (Size("m"), Size("n"), Size("k"))

spec = KernelSpec(
    entry="tensor_core_matmul",
    arguments=(
        In("a", "a_rows a_cols", dtype="float16"), In("b", "b_rows b_cols", dtype="float16"), Out("c", "m n"), *SIZES,
    ),
    parameters={"layout": "nn", "tile": "auto", "stages": 3},
    derived={
        "a_rows": lambda m, k, layout: m if layout[0] == "n" else k,
        "a_cols": lambda m, k, layout: k if layout[0] == "n" else m,
        "b_rows": lambda n, k, layout: k if layout[1] == "n" else n,
        "b_cols": lambda n, k, layout: n if layout[1] == "n" else k,
        "a_count": lambda m, k: m * k,
        "b_count": lambda n, k: n * k,
    },
    rules=(
        Rule("tile is auto, Wide, Square or Compact", lambda tile: tile == "auto" or tile in TILES),
        Rule("layout is nn, nt, tn or tt", lambda layout: layout in LAYOUTS),
        Rule("stages is 2, 3 or 4", lambda stages: stages in (2, 3, 4)),
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
        *(Workload(m=s, n=s, k=s) for s in (64, 128, 1, 16)),
        *(Workload(m=m, n=n, k=k) for m, n, k in ((3, 5, 0), (0, 4, 4), (40, 24, 200), (17, 67, 33), (65, 8, 40))),
        *(Workload(m=m, n=72, k=40, layout=layout) for layout in ("nt", "tn", "tt") for m in (24, 25)),
        *(Workload(m=136, n=n, k=72, tile="Wide") for n in (264, 37)),
        Workload(m=130, n=264, k=48, tile="Wide", layout="nt", stages=2),
        *(Workload(m=136, n=n, k=72, tile="Square", layout="tn") for n in (136, 37)),
    ),
    variants={
        "casts": Variant(
            "from float32, rounded to half first: three launches",
            arguments=(
                In("a", "a_rows a_cols"), In("b", "b_rows b_cols"), Scratch("a_half", "a_rows a_cols", dtype="float16"),
                Scratch("b_half", "b_rows b_cols", dtype="float16"), Out("c", "m n"), *SIZES, Size("a_count", "int64"),
                Size("b_count", "int64"),
            ),
            launch=launch_with_casts,
            edges=(Workload(m=17, n=67, k=33), Workload(m=40, n=24, k=72)),
        ),
    },
    budgets=(Budget("peer_ratio", at_least=0.6, label="S1"), Budget("peer_ratio", at_least=0.6, label="S2")),
)  # fmt: skip
