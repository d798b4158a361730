"""Y = GELU(X W + b) in FP32, no TF32: the tiles of `matmul`, bias and activation in registers.

The FMA rate limits it: a product of this size moves few bytes for its operations. `approximate="tanh"` is the older
closed form, up to 5e-4 away. `layout="out_in"` takes W as PyTorch stores it, [outputs, inputs]. Products of halves have
a shorter GELU, 7e-7 away at most.

The shorter GELU is enough there: rounding the operands to half moves a sum of size 1 by 5e-4, and the tolerance is
normwise, 1e-3 of the sum of absolute terms. It takes 9 instructions instead of 25, which counts where stores hide
behind the other warpgroup's product. The tail's relative accuracy is lost, so float32, bfloat16 and sums of three
bfloat16 keep the other one.
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

from ..include.products.fused_product import functor_for, linear_of_thirds
from ..include.products.gemm_tile import PRODUCT_RULE, Whole, on_tiles
from ..include.tensor_cores.tensor_tile import (
    BY_MAPS,
    TENSOR_RULE,
    TRIPLE,
    Operands,
    on_tensor_tiles,
    on_warpgroups,
    required,
)
from ..peers import lt_products
from ..peers.poor_ways import NARROW
from ..peers.strong_peers import NO_EPILOGUE

ACTIVATIONS = {"none": "Gelu", "tanh": "GeluTanh"}


def launch(batch: int, inputs: int, outputs: int, layout: str, approximate: str, tile: str, device: Device) -> Launch:
    turned = str(layout == "out_in").lower()
    entry = f"fused_linear_gelu<{{}}, {1 if outputs % 4 else 4}, {turned}, {ACTIVATIONS[approximate]}>"
    return on_tiles(entry, batch, outputs, tile, device, Whole(inputs))


def tensor_launch(element: str) -> Callable[..., Launch]:
    """The plan of a tensor-core form."""

    def launch(
        batch: int, inputs: int, outputs: int, layout: str, approximate: str, tile: str, device: Device
    ) -> Launch:
        operands = Operands(element, left_along=True, right_along=layout == "out_in")
        entry = f"fused_linear_gelu_tensor<{{}}, {functor_for(element, ACTIVATIONS[approximate])}>"
        sizes, matrices = (batch, outputs, inputs), ("x", "w", "y")
        return on_tensor_tiles(entry, operands, sizes, device, tile=tile, matrices=matrices)

    return launch


def weights(w: AnyArray, layout: str) -> AnyArray:
    return w if layout == "in_out" else w.T


def gelu(a: AnyArray, approximate: str, xp: ArrayModule, special: ModuleType) -> AnyArray:
    """a times the probability of staying below it; clipped below so that -inf gives -0 instead of NaN."""
    a = xp.maximum(a, -1e3)
    if approximate == "tanh":
        return a * special.expit(2 * np.sqrt(2 / np.pi) * (a + 0.044715 * a**3))
    return a * special.ndtr(a)


def reference(
    x: AnyArray, w: AnyArray, bias: AnyArray, layout: str, approximate: str, xp: ArrayModule, special: ModuleType
) -> AnyArray:
    return gelu(x @ weights(w, layout) + bias, approximate, xp, special)


def magnitude(x: AnyArray, w: AnyArray, bias: AnyArray, layout: str, xp: ArrayModule) -> AnyArray:
    """Sums of absolute terms, which GELU stretches by 1.13 at most; what is not finite must agree as it is."""
    sums = xp.abs(x) @ xp.abs(weights(w, layout)) + xp.abs(bias)
    return 1.13 * xp.nan_to_num(sums, nan=0.0, posinf=0.0)


def torch_linear(torch: ModuleType, x: AnyArray, w: AnyArray, bias: AnyArray, layout: str, approximate: str) -> Any:
    return torch.nn.functional.gelu(torch.addmm(bias.to(x.dtype), x, weights(w, layout)), approximate=approximate)


def nvmath_linear(nvmath: ModuleType, x: AnyArray, w: AnyArray, bias: AnyArray, layout: str) -> Any:
    return lt_products.product(nvmath, x, weights(w, layout), bias, lt_products.Form(epilogue="gelu"))


TANH = "its GELU is the tanh form, up to 5e-4 away"
NVMATH = Peer(nvmath_linear, prepares=True, work=TANH)

# The form on the tensor cores.
HALF = {
    "arguments": (
        In("x", "batch inputs", dtype="float16"), In("w", "w_rows w_cols", dtype="float16"),
        In("bias", "outputs"), Out("y", "batch outputs"), Size("batch"), Size("outputs"), Size("inputs"),
    ),
    "rules": (TENSOR_RULE,),
    "launch": tensor_launch("Half"),
    "arithmetic": "tensor",
    "tolerance": normwise(1e-3, magnitude, lambda inputs: inputs + 1),
    "golden": (),
}  # fmt: skip


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
        PRODUCT_RULE,
        Rule("layout is in_out or out_in", lambda layout: layout in ("in_out", "out_in")),
        Rule("approximate is none or tanh", lambda approximate: approximate in ACTIVATIONS),
    ),
    launch=launch,
    reference=reference,
    tolerance=product(magnitude=magnitude, depth=lambda inputs: inputs + 8),
    peers={"torch": torch_linear, "nvmath": NVMATH},
    looked_at={"quack": "operands of 16 and 8 bits only"},
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
        *(Workload(batch=b, inputs=32, outputs=256, tile=tile) for b, tile in ((256, "Full"), (640, "Split"))),
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
        "three_bfloat16": linear_of_thirds(tensor_launch(TRIPLE), magnitude, approximate="tanh"),
        "half": Variant(
            "tensor cores, half operands, FP32 sums and bias",
            **HALF,
            requires=required,
            peers={
                "torch": Peer(torch_linear, work=NARROW),
                "nvmath": NVMATH,
            },
            looked_at=NO_EPILOGUE,
            edges=(
                *(Workload(batch=b, inputs=i, outputs=o) for b, i, o in ((3, 0, 5), (0, 4, 4), (17, 33, 67))),
                *(Workload(batch=136, inputs=40, outputs=264, tile=tile) for tile in ("Wide", *BY_MAPS)),
                Workload(batch=72, inputs=40, outputs=136),
                Workload(batch=130, inputs=40, outputs=37, tile="Square", layout="out_in", approximate="tanh"),
            ),
            budgets=(Budget("peer_ratio", at_least=0.9, label="S1"), Budget("peer_ratio", at_least=0.9, label="S2")),
        ),
        "half_wgmma": on_warpgroups(
            {"layout": "in_out", "approximate": "none"},
            (
                *(Workload(batch=b, inputs=i, outputs=o) for b, i, o in ((128, 16, 256), (3, 0, 8), (200, 136, 328))),
                Workload(batch=131, inputs=264, outputs=267, layout="out_in", approximate="tanh"),
            ),
            **HALF,
            only_labels=("S0",),
            budgets=(),
        ),
        "tanh": Variant(
            "the tanh form",
            parameters={"tile": "auto", "layout": "in_out", "approximate": "tanh"},
            peers={"torch": torch_linear, "nvmath": Peer(nvmath_linear, prepares=True)},
            only_labels=("S0", "S1"),
        ),
    },
    budgets=(Budget("peer_ratio", at_least=0.85, label="S1"), Budget("peer_ratio", at_least=0.85, label="S2")),
)  # fmt: skip
