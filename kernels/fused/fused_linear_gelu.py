"""Y = GELU(X W + b) in FP32, no TF32: the tiles of `matmul`, bias and activation in registers.

Floors of S1 on an H200: 1.1 TFLOP / 67 TFLOP/s = 16.4 ms, 0.94 GB / 4.28 TB/s = 0.22 ms: the FMA rate bounds it.
`approximate="tanh"` is the older closed form, up to 5e-4 away.
`layout="out_in"` takes W as PyTorch stores it, [outputs, inputs].
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
    normwise,
    product,
)

# Rows and columns of the tiles of gemm_tile.cuh, and the share of the FMA rate that each keeps busy.
TILES = {"Large": (128, 256, 1.0), "Medium": (128, 128, 0.9), "Narrow": (64, 64, 0.7), "Small": (16, 32, 0.35)}
# Those of tensor_tile.cuh: rows, columns, bytes of depth, threads, and again the share of the rate.
TENSOR_TILES = {
    "Wide": (128, 256, 128, 256, 1.0),
    "Square": (128, 128, 128, 128, 0.9),
    "Compact": (64, 64, 64, 128, 0.5),
}
STAGES = 3
ACTIVATIONS = {"none": "Gelu", "tanh": "GeluTanh"}


def tiles(name, batch, outputs):
    rows, cols, _ = TILES[name]
    return -(-batch // rows) * -(-outputs // cols)


def fastest(batch, outputs, multiprocessors):
    """The tile whose rounds over the multiprocessors take the least time."""

    def time(name):
        rows, cols, busy = TILES[name]
        return -(-tiles(name, batch, outputs) // multiprocessors) * rows * cols / busy

    return min(TILES, key=time)


def launch(batch, outputs, layout, approximate, tile, device):
    name = fastest(batch, outputs, device.sm_count) if tile == "auto" else tile
    turned, activation = str(layout == "out_in").lower(), ACTIVATIONS[approximate]
    entry = f"fused_linear_gelu<{name}, {1 if outputs % 4 else 4}, {turned}, {activation}>"
    return Launch(grid=tiles(name, batch, outputs), block=128 if name == "Narrow" else 256, entry=entry)


def tensor_shared(name, layout):
    """Tiles of halves in memory order; rows are longer by 8 elements."""
    rows, cols, depth, *_ = TENSOR_TILES[name]
    right = depth // 2 * (cols + 8) * 2 if layout == "in_out" else cols * (depth + 16)
    return STAGES * (rows * (depth + 16) + right)


def tensor_launch(batch, inputs, outputs, layout, approximate, tile, device):
    """The tile with the fewest rounds, among those that fit the shared memory."""

    def time(name):
        rows, cols, _, _, busy = TENSOR_TILES[name]
        return -(-(-(-batch // rows) * -(-outputs // cols)) // device.sm_count) * rows * cols / busy

    fitting = [name for name in TENSOR_TILES if tensor_shared(name, layout) <= device.max_shared_bytes]
    name = min(fitting, key=time) if tile == "auto" else tile
    rows, cols, _, threads, _ = TENSOR_TILES[name]
    width = 1 if inputs % 8 or (layout == "in_out" and outputs % 8) else 8
    kind = f"{name}<Half, {STAGES}>, {width}, {str(layout == 'out_in').lower()}, {ACTIVATIONS[approximate]}"
    grid = -(-batch // rows) * -(-outputs // cols)
    return Launch(grid, threads, tensor_shared(name, layout), f"fused_linear_gelu_tensor<{kind}>")


def weights(w, layout):
    return w if layout == "in_out" else w.T


def gelu(a, approximate, xp, special):
    """a times the probability of staying below it; clipped below so that -inf gives -0 instead of NaN."""
    a = xp.maximum(a, -1e3)
    if approximate == "tanh":
        return a * special.expit(2 * np.sqrt(2 / np.pi) * (a + 0.044715 * a**3))
    return a * special.ndtr(a)


def reference(x, w, bias, layout, approximate, xp, special):
    return gelu(x @ weights(w, layout) + bias, approximate, xp, special)


def magnitude(x, w, bias, layout, xp):
    """Sums of absolute terms, which GELU stretches by 1.13 at most; what is not finite must agree as it is."""
    sums = xp.abs(x) @ xp.abs(weights(w, layout)) + xp.abs(bias)
    return 1.13 * xp.nan_to_num(sums, nan=0.0, posinf=0.0)


def torch_linear(torch, x, w, bias, layout, approximate):
    return torch.nn.functional.gelu(torch.addmm(bias.to(x.dtype), x, weights(w, layout)), approximate=approximate)


spec = KernelSpec(
    entry="fused_linear_gelu",
    arguments=(
        In("x", "batch inputs"), In("w", "w_rows w_cols"), In("bias", "outputs"), Out("y", "batch outputs"),
        Size("batch"), Size("outputs"), Size("inputs"),
    ),
    parameters={"tile": "auto", "layout": "in_out", "approximate": "none"},
    derived={
        "w_rows": lambda inputs, outputs, layout: inputs if layout == "in_out" else outputs,
        "w_cols": lambda inputs, outputs, layout: outputs if layout == "in_out" else inputs,
    },
    rules=(
        Rule("tile is auto, Large, Medium, Narrow or Small", lambda tile: tile == "auto" or tile in TILES),
        Rule("layout is in_out or out_in", lambda layout: layout in ("in_out", "out_in")),
        Rule("approximate is none or tanh", lambda approximate: approximate in ACTIVATIONS),
    ),
    launch=launch,
    reference=reference,
    tolerance=product(magnitude=magnitude, depth=lambda inputs: inputs + 8),
    peers={"torch": torch_linear},
    flops=lambda batch, inputs, outputs: 2 * batch * inputs * outputs + 9 * batch * outputs,
    workloads={
        "S0": Workload(batch=32, inputs=64, outputs=128),
        "S1": Workload(batch=8192, inputs=4096, outputs=16_384),
        "S2": Workload(batch=16_384, inputs=8192, outputs=28_672),
    },
    edges=(
        *(
            Workload(batch=b, inputs=i, outputs=o, layout=layout)
            for layout in ("in_out", "out_in")
            for b, i, o in ((1, 1, 1), (3, 0, 5), (0, 4, 4), (1, 77, 36), (17, 33, 35))
        ),
        *(Workload(batch=130, inputs=9, outputs=o, tile="Large") for o in (257, 260)),
        Workload(batch=129, inputs=9, outputs=132, tile="Medium", layout="out_in"),
        Workload(batch=65, inputs=17, outputs=67, tile="Narrow", layout="out_in", approximate="tanh"),
    ),
    golden=tuple(
        Golden(
            Workload(batch=2, inputs=2, outputs=3, approximate=approximate),
            inputs={"x": [[1, 2], [np.nan, 1]], "w": [[1, -1, -50], [1, 1, -50]], "bias": [0.5, -2, -np.inf]},
            expected={},
            source="-inf gives -0, NaN passes",
        )
        for approximate in ACTIVATIONS
    ),
    variants={
        "half": Variant(
            "tensor cores, half operands, FP32 sums and bias",
            arguments=(
                In("x", "batch inputs", dtype="float16"), In("w", "w_rows w_cols", dtype="float16"),
                In("bias", "outputs"), Out("y", "batch outputs"), Size("batch"), Size("outputs"), Size("inputs"),
            ),
            rules=(Rule("tile is auto, Wide, Square or Compact", lambda tile: tile == "auto" or tile in TENSOR_TILES),),
            launch=tensor_launch,
            arithmetic="tensor",
            tolerance=normwise(1e-3),
            peers={"torch": torch_linear},
            edges=(
                *(Workload(batch=b, inputs=i, outputs=o) for b, i, o in ((3, 0, 5), (0, 4, 4), (17, 33, 67))),
                Workload(batch=136, inputs=40, outputs=264, tile="Wide"),
                Workload(batch=130, inputs=40, outputs=37, tile="Square", layout="out_in", approximate="tanh"),
            ),
            budgets=(Budget("peer_ratio", at_least=0.6, label="S1"), Budget("peer_ratio", at_least=0.6, label="S2")),
        ),
        "tanh": Variant(
            "the tanh form",
            parameters={"tile": "auto", "layout": "in_out", "approximate": "tanh"},
            peers={"torch": torch_linear},
            only_labels=("S0", "S1"),
        ),
    },
    budgets=(Budget("peer_ratio", at_least=0.85, label="S1"), Budget("peer_ratio", at_least=0.85, label="S2")),
)  # fmt: skip
