"""Y = max(X W + b, 0) in FP32, no TF32: the tiles of `matmul`, bias and maximum in registers; NaN stays.

The FMA rate limits it: a product of this size moves few bytes for its operations. `layout="out_in"` takes W as PyTorch
stores it, [outputs, inputs].

Sizes of whole tiles have tiles of their type (`Full`, `FullRows`, `FullBroad`, `Split` of whole_tile.cuh), as in all
FP32 products: copies that look for borders take registers and instructions from the multiplications. `Split` puts small
tiles in the place of the few large ones of a last round. Ragged sizes, small tiles, slices of the depth and
convolutions keep the older loop. The whole tiles need 75 KB of shared memory, without which a device takes `Large`.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

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
from prism_bench.spec import AnyArray, ArrayModule, Device, Peer

from ..include.products.fused_product import linear_of_thirds
from ..include.products.gemm_tile import PRODUCT_RULE, Whole, on_tiles
from ..include.tensor_cores.tensor_tile import BY_MAPS, TENSOR_RULE, TRIPLE, Operands, on_tensor_tiles, required
from ..peers import lt_products
from ..peers.poor_ways import NARROW
from ..peers.strong_peers import NO_EPILOGUE


def launch(batch: int, inputs: int, outputs: int, layout: str, tile: str, device: Device) -> Launch:
    turned = str(layout == "out_in").lower()
    entry = f"fused_linear_relu<{{}}, {1 if outputs % 4 else 4}, {turned}>"
    return on_tiles(entry, batch, outputs, tile, device, Whole(inputs))


def tensor_launch(element: str) -> Callable[..., Launch]:
    """The plan of a tensor-core form."""

    def launch(batch: int, inputs: int, outputs: int, layout: str, tile: str, device: Device) -> Launch:
        operands = Operands(element, left_along=True, right_along=layout == "out_in")
        entry = "fused_linear_relu_tensor<{}>"
        sizes, matrices = (batch, outputs, inputs), ("x", "w", "y")
        return on_tensor_tiles(entry, operands, sizes, device, tile=tile, matrices=matrices)

    return launch


def weights(w: AnyArray, layout: str) -> AnyArray:
    return w if layout == "in_out" else w.T


def reference(x: AnyArray, w: AnyArray, bias: AnyArray, layout: str, xp: ArrayModule) -> AnyArray:
    return xp.maximum(x @ weights(w, layout) + bias, 0)


def magnitude(x: AnyArray, w: AnyArray, bias: AnyArray, layout: str, xp: ArrayModule) -> AnyArray:
    """Sums of absolute terms; an element that is not finite must agree as it is."""
    return xp.nan_to_num(xp.abs(x) @ xp.abs(weights(w, layout)) + xp.abs(bias), nan=0.0, posinf=0.0)


def torch_linear(torch: ModuleType, x: AnyArray, w: AnyArray, bias: AnyArray, layout: str) -> Any:
    return torch.relu_(torch.addmm(bias.to(x.dtype), x, weights(w, layout)))


def nvmath_linear(nvmath: ModuleType, x: AnyArray, w: AnyArray, bias: AnyArray, layout: str) -> Any:
    return lt_products.product(nvmath, x, weights(w, layout), bias, lt_products.Form(epilogue="relu"))


NVMATH = Peer(nvmath_linear, prepares=True)

spec = KernelSpec(
    entry="fused_linear_relu",
    arguments=(
        In("x", "batch inputs"), In("w", "w_rows w_cols"), In("bias", "outputs"), Out("y", "batch outputs"),
        Size("batch"), Size("outputs"), Size("inputs"),
    ),
    parameters={"tile": "auto", "layout": "in_out"},
    derived={
        "w_rows": lambda inputs, outputs, layout: inputs if layout == "in_out" else outputs,
        "w_cols": lambda inputs, outputs, layout: outputs if layout == "in_out" else inputs,
    },
    rules=(
        PRODUCT_RULE,
        Rule("layout is in_out or out_in", lambda layout: layout in ("in_out", "out_in")),
    ),
    launch=launch,
    reference=reference,
    tolerance=product(magnitude=magnitude, depth=lambda inputs: inputs + 1),
    peers={"torch": torch_linear, "nvmath": NVMATH},
    looked_at={"quack": "operands of 16 and 8 bits only"},
    flops=lambda batch, inputs, outputs: 2 * batch * inputs * outputs + 2 * batch * outputs,
    workloads={
        "S0": Workload(batch=32, inputs=64, outputs=128),
        "S1": Workload(batch=8192, inputs=4096, outputs=4096),
        "S2": Workload(batch=8192, inputs=4096, outputs=16_384),
    },
    edges=(
        *(
            Workload(batch=b, inputs=i, outputs=o, layout=layout)
            for layout in ("in_out", "out_in")
            for b, i, o in ((1, 1, 1), (3, 0, 5), (0, 4, 4), (1, 77, 36), (17, 33, 35))
        ),
        *(Workload(batch=130, inputs=9, outputs=o, tile="Large") for o in (257, 260)),
        *(
            Workload(batch=b, inputs=i, outputs=256, tile=tile, layout=layout)
            for layout in ("in_out", "out_in")
            for b, i, tile in ((128, 16, "Full"), (256, 48, "Full"), (640, 32, "Split"))
        ),
        Workload(batch=129, inputs=9, outputs=132, tile="Medium", layout="out_in"),
        Workload(batch=129, inputs=40, outputs=256, tile="Large", layout="out_in"),
        Workload(batch=65, inputs=17, outputs=67, tile="Narrow", layout="out_in"),
    ),
    golden=(
        Golden(
            Workload(batch=2, inputs=2, outputs=2),
            inputs={"x": [[1, 2], [np.nan, 1]], "w": [[1, -1], [1, 1]], "bias": [0.5, -2]},
            expected={"y": [[3.5, 0], [np.nan, np.nan]]},
            source="calculated: NaN passes the maximum",
        ),
    ),
    variants={
        "three_bfloat16": linear_of_thirds(tensor_launch(TRIPLE), magnitude),
        "half": Variant(
            "tensor cores, half operands, FP32 sums and bias",
            arguments=(
                In("x", "batch inputs", dtype="float16"), In("w", "w_rows w_cols", dtype="float16"),
                In("bias", "outputs"), Out("y", "batch outputs"), Size("batch"), Size("outputs"), Size("inputs"),
            ),
            rules=(TENSOR_RULE,),
            requires=required,
            launch=tensor_launch("Half"),
            arithmetic="tensor",
            tolerance=normwise(1e-3, magnitude, lambda inputs: inputs + 1),
            peers={
                "torch": Peer(torch_linear, work=NARROW),
                "nvmath": NVMATH,
            },
            looked_at=NO_EPILOGUE,
            edges=(
                *(Workload(batch=b, inputs=i, outputs=o) for b, i, o in ((3, 0, 5), (0, 4, 4), (17, 33, 67))),
                *(Workload(batch=136, inputs=40, outputs=264, tile=tile) for tile in ("Wide", "Warpgroups", *BY_MAPS)),
                Workload(batch=72, inputs=40, outputs=136),
                Workload(batch=130, inputs=40, outputs=37, tile="Square", layout="out_in"),
            ),
            budgets=(Budget("peer_ratio", at_least=0.9, label="S1"), Budget("peer_ratio", at_least=0.9, label="S2")),
        ),
    },
    budgets=(Budget("peer_ratio", at_least=0.85, label="S1"), Budget("peer_ratio", at_least=0.85, label="S2")),
)  # fmt: skip
