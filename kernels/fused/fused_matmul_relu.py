"""C = max(A B, 0) in FP32, no TF32: the tiles of `matmul`, the maximum taken in registers; NaN stays.

Floors of S1 on an H200: 137 GFLOP / 67 TFLOP/s = 2.05 ms, 0.2 GB / 4.28 TB/s = 0.05 ms: the FMA rate bounds it.
"""

import numpy as np

from prism_bench import (
    Budget,
    Golden,
    In,
    KernelSpec,
    Launch,
    Out,
    Rule,
    Size,
    Variant,
    Workload,
    normal,
    normwise,
    product,
)
from prism_bench.inputs import Fill

# Rows and columns of the tiles of gemm_tile.cuh, and the share of the FMA rate that each keeps busy.
TILES = {"Large": (128, 256, 1.0), "Medium": (128, 128, 0.9), "Narrow": (64, 64, 0.7), "Small": (16, 32, 0.35)}
# Those of tensor_tile.cuh: rows, columns, bytes of depth, threads, and again the share of the rate.
TENSOR_TILES = {
    "Wide": (128, 256, 128, 256, 1.0),
    "Square": (128, 128, 128, 128, 0.9),
    "Compact": (64, 64, 64, 128, 0.5),
}
STAGES = 3
# Tensor-core forms: bytes of an element, dtype of an input, fill, normwise bound. Bits of bfloat16 travel as uint16.
BFLOATS = Fill(
    lambda rng, count, axes: rng.normal(size=count).astype("float32").view("uint32") >> 16, "bits of normal bfloat16"
)
ELEMENTS = {
    "Half": (2, "float16", normal(), 1e-3),
    "Bfloat": (2, "uint16", BFLOATS, 1e-2),
    "Tf32": (4, "float32", normal(), 1e-3),
}


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


def tensor_shared(name, size):
    """Tiles in memory order; rows are longer by 16 bytes along the depth, by 8 elements across."""
    rows, cols, depth, *_ = TENSOR_TILES[name]
    return STAGES * (rows * (depth + 16) + depth // size * (cols + 8) * size)


def tensor_launch(element):
    """The plan of a tensor-core form: the tile with the fewest rounds, among those that fit the shared memory."""
    size = ELEMENTS[element][0]

    def launch(m, n, k, tile, device):
        def time(name):
            rows, cols, _, _, busy = TENSOR_TILES[name]
            return -(-(-(-m // rows) * -(-n // cols)) // device.sm_count) * rows * cols / busy

        fitting = [name for name in TENSOR_TILES if tensor_shared(name, size) <= device.max_shared_bytes]
        name = min(fitting, key=time) if tile == "auto" else tile
        rows, cols, _, threads, _ = TENSOR_TILES[name]
        width = 1 if n * size % 16 or k * size % 16 else 16 // size
        entry = f"fused_matmul_relu_tensor<{name}<{element}, {STAGES}>, {width}>"
        return Launch(-(-m // rows) * -(-n // cols), threads, tensor_shared(name, size), entry)

    return launch


def wide(x, xp):
    """The values of bfloat16 bits; others as they are."""
    return x if x.dtype.kind == "f" else (x.astype("uint32") << 16).view(xp.float32).astype("float64")


def reference(a, b, xp):
    return xp.maximum(wide(a, xp) @ wide(b, xp), 0)


def torch_product(torch, a, b):
    return torch.relu_(torch.mm(a, b))


def torch_bfloat(torch, a, b):
    return torch_product(torch, a.view(torch.bfloat16), b.view(torch.bfloat16)).float()


def torch_tf32(torch, a, b):
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        return torch_product(torch, a, b)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False


def tensor_variant(element, peer):
    """The same product with operands of that element on the tensor cores."""
    _, dtype, fill, bound = ELEMENTS[element]
    sizes = (Size("m"), Size("n"), Size("k"))
    return Variant(
        f"tensor cores, {element.lower()} operands, FP32 sums",
        arguments=(In("a", "m k", dtype, fill), In("b", "k n", dtype, fill), Out("c", "m n"), *sizes),
        rules=(Rule("tile is auto, Wide, Square or Compact", lambda tile: tile == "auto" or tile in TENSOR_TILES),),
        launch=tensor_launch(element),
        arithmetic="tensor",
        tolerance=normwise(bound),
        peers={"torch": peer},
        edges=(
            *(Workload(m=m, n=n, k=k) for m, n, k in ((3, 5, 0), (0, 4, 4), (17, 67, 33), (65, 24, 72))),
            Workload(m=136, n=264, k=40, tile="Wide"),
            Workload(m=130, n=37, k=40, tile="Square"),
        ),
        golden=() if element == "Bfloat" else (spoiled_inputs,),
        budgets=(Budget("peer_ratio", at_least=0.6, label="S1"), Budget("peer_ratio", at_least=0.6, label="S2")),
    )


def magnitude(a, b, xp):
    """Sums of absolute terms; an element that is not finite must agree as it is."""
    return xp.nan_to_num(xp.abs(a) @ xp.abs(b), nan=0.0, posinf=0.0)


def spoiled(m, k):
    """Row 0 of A holds a NaN, row 1 an infinity, row 2 both signs of it."""
    a = np.random.default_rng(1).normal(size=(m, k))
    a[0, 3], a[1, k - 1], a[2, 0], a[2, 1] = np.nan, np.inf, np.inf, -np.inf
    return a


spoiled_inputs = Golden(
    Workload(m=20, n=12, k=40),
    inputs={"a": spoiled, "b": lambda k, n: np.random.default_rng(2).normal(size=(k, n))},
    expected={},
    source="NaN passes the maximum, as in NumPy and PyTorch; infinities as IEEE 754 says",
)

spec = KernelSpec(
    entry="fused_matmul_relu",
    arguments=(In("a", "m k"), In("b", "k n"), Out("c", "m n"), Size("m"), Size("n"), Size("k")),
    parameters={"tile": "auto"},
    rules=(Rule("tile is auto, Large, Medium, Narrow or Small", lambda tile: tile == "auto" or tile in TILES),),
    launch=launch,
    reference=reference,
    tolerance=product(magnitude=magnitude, depth=lambda k: k),
    peers={"torch": torch_product},
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
    golden=(spoiled_inputs,),
    variants={
        "half": tensor_variant("Half", torch_product),
        "bfloat16": tensor_variant("Bfloat", torch_bfloat),
        "tf32": tensor_variant("Tf32", torch_tf32),
    },
    budgets=(Budget("peer_ratio", at_least=0.85, label="S1"), Budget("peer_ratio", at_least=0.85, label="S2")),
)
