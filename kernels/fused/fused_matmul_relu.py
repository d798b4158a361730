"""C = max(A B, 0) in FP32, no TF32: the tiles of `matmul`, the maximum taken in registers; NaN stays.

Floors of S1 on an H200: 137 GFLOP / 67 TFLOP/s = 2.05 ms, 0.2 GB / 4.28 TB/s = 0.05 ms: the FMA rate bounds it.
"""

import numpy as np

from prism_bench import Budget, Golden, In, KernelSpec, Launch, Out, Rule, Size, Workload, product

# Rows and columns of the tiles of gemm_tile.cuh, and the share of the FMA rate that each keeps busy.
TILES = {"Large": (128, 256, 1.0), "Medium": (128, 128, 0.9), "Narrow": (64, 64, 0.7), "Small": (16, 32, 0.35)}


def tiles(name, m, n):
    rows, cols, _ = TILES[name]
    return -(-m // rows) * -(-n // cols)


def fastest(m, n, multiprocessors):
    """The tile whose rounds over the multiprocessors take the least time."""

    def time(name):
        rows, cols, busy = TILES[name]
        return -(-tiles(name, m, n) // multiprocessors) * rows * cols / busy

    return min(TILES, key=time)


def launch(m, n, tile, device):
    name = fastest(m, n, device.sm_count) if tile == "auto" else tile
    threads = 128 if name == "Narrow" else 256
    return Launch(grid=tiles(name, m, n), block=threads, entry=f"fused_matmul_relu<{name}, {1 if n % 4 else 4}>")


def reference(a, b, xp):
    return xp.maximum(a @ b, 0)


def magnitude(a, b, xp):
    """Sums of absolute terms; an element that is not finite must agree as it is."""
    return xp.nan_to_num(xp.abs(a) @ xp.abs(b), nan=0.0, posinf=0.0)


def spoiled(m, k):
    """Row 0 of A holds a NaN, row 1 an infinity, row 2 both signs of it."""
    a = np.random.default_rng(1).normal(size=(m, k))
    a[0, 3], a[1, k - 1], a[2, 0], a[2, 1] = np.nan, np.inf, np.inf, -np.inf
    return a


spec = KernelSpec(
    entry="fused_matmul_relu",
    arguments=(In("a", "m k"), In("b", "k n"), Out("c", "m n"), Size("m"), Size("n"), Size("k")),
    parameters={"tile": "auto"},
    rules=(Rule("tile is auto, Large, Medium, Narrow or Small", lambda tile: tile == "auto" or tile in TILES),),
    launch=launch,
    reference=reference,
    tolerance=product(magnitude=magnitude, depth=lambda k: k),
    peers={"torch": lambda torch, a, b: torch.relu_(torch.mm(a, b))},
    flops=lambda m, n, k: 2 * m * n * k + m * n,
    workloads={
        "S0": Workload(m=256, n=256, k=256),
        "S1": Workload(m=4096, n=4096, k=4096),
        "S2": Workload(m=8192, n=8192, k=8192),
    },
    edges=(
        *(Workload(m=m, n=n, k=k) for m, n, k in ((1, 1, 1), (3, 5, 0), (0, 4, 4), (17, 33, 193), (31, 36, 40))),
        *(Workload(m=130, n=n, k=9, tile="Large") for n in (257, 260)),
        *(Workload(m=129, n=n, k=9, tile="Medium") for n in (131, 132)),
        Workload(m=65, n=68, k=41, tile="Narrow"),
    ),
    golden=(
        Golden(
            Workload(m=20, n=12, k=40),
            inputs={"a": spoiled, "b": lambda k, n: np.random.default_rng(2).normal(size=(k, n))},
            expected={},
            source="NaN passes the maximum, as in NumPy and PyTorch; infinities as IEEE 754 says",
        ),
    ),
    budgets=(Budget("peer_ratio", at_least=0.85, label="S1"), Budget("peer_ratio", at_least=0.85, label="S2")),
)
