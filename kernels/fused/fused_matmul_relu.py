"""C = max(A B, 0) in FP32, no TF32: the tiles of `matmul`, the maximum taken in registers; NaN stays.

The FMA rate limits it: a product of this size moves few bytes for its operations. The 16-bit forms are those of
`tensor_core_matmul`. Warpgroup instructions take tf32 from shared memory only with the depth contiguous, which B [k, n]
has not: `tf32` computes the tile turned over, with B' from registers. Tensor maps bring both operands, rounded, and two
blocks share their copies of A: without that the L2 cache is the bottleneck.
"""

from collections.abc import Callable
from dataclasses import replace
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
    Size,
    Variant,
    Workload,
    normwise,
    product,
)
from prism_bench.spec import AnyArray, ArrayModule, Device, Peer

from ..include.numbers.bfloat import wide
from ..include.products.fused_product import ELEMENTS, arithmetic_of, operand, widest
from ..include.products.gemm_tile import PRODUCT_RULE, Whole, on_tiles
from ..include.tensor_cores.tensor_tile import (
    TENSOR_RULE,
    WARPGROUPS,
    Operands,
    on_tensor_tiles,
    required,
    warpgroup_tiles,
)
from ..peers import lt_products
from ..peers.poor_ways import NARROW
from ..peers.strong_peers import NO_EPILOGUE, on_bfloats
from ..peers.torch_peers import in_tf32

RELU = lt_products.Form(epilogue="relu")


def launch(m: int, n: int, k: int, tile: str, device: Device) -> Launch:
    return on_tiles(f"fused_matmul_relu<{{}}, {1 if n % 4 else 4}>", m, n, tile, device, Whole(k))


def tensor_launch(element: str) -> Callable[..., Any]:
    """The plan of a tensor-core form."""
    operands = Operands(element, left_along=True, right_along=False)
    return lambda m, n, k, tile, device: on_tensor_tiles(
        "fused_matmul_relu_tensor<{}>", operands, (m, n, k), device, tile=tile
    )


def reference(a: AnyArray, b: AnyArray, xp: ArrayModule) -> AnyArray:
    return xp.maximum(wide(a, xp) @ wide(b, xp), 0)


def magnitude(a: AnyArray, b: AnyArray, xp: ArrayModule) -> AnyArray:
    """Sums of absolute terms; an element that is not finite must agree as it is."""
    return xp.nan_to_num(xp.abs(wide(a, xp)) @ xp.abs(wide(b, xp)), nan=0.0, posinf=0.0)


def torch_product(torch: ModuleType, a: AnyArray, b: AnyArray) -> Any:
    return torch.relu_(torch.mm(a, b))


def torch_bfloat(torch: ModuleType, a: AnyArray, b: AnyArray) -> Any:
    return torch_product(torch, a, b).float()


def nvmath_product(nvmath: ModuleType, a: AnyArray, b: AnyArray) -> Any:
    return lt_products.product(nvmath, a, b, form=RELU)


def nvmath_tf32(nvmath: ModuleType, a: AnyArray, b: AnyArray) -> Any:
    return lt_products.product(nvmath, a, b, form=replace(RELU, tf32=True))


NVMATH = Peer(nvmath_product, prepares=True)
NO_FLOATS = {"quack": "operands of 16 and 8 bits only"}
# By precision of the operands.
STRONG = {
    "float16": {"nvmath": NVMATH},
    "bfloat16": {"nvmath": on_bfloats(NVMATH, "ab", widened=False)},
    "tf32": {"nvmath": Peer(nvmath_tf32, prepares=True)},
    "three_bfloat16": {"nvmath": NVMATH},
}


def tensor_variant(precision: str, peer: Callable[..., Any], **changes: Any) -> Variant:
    """The same product with operands of that precision on the tensor cores."""
    element, dtype, _, bound = ELEMENTS[precision]
    sizes = (Size("m"), Size("n"), Size("k"))
    viewed = dict.fromkeys("ab", "bfloat16") if precision == "bfloat16" else {}
    plain = {
        "arguments": (operand("a", "m k", precision), operand("b", "k n", precision), Out("c", "m n"), *sizes),
        "rules": (TENSOR_RULE,),
        "requires": required,
        "launch": tensor_launch(element),
        "arithmetic": arithmetic_of(precision),
        "tolerance": normwise(bound, magnitude, lambda k: k),
        "peer_tolerance": normwise(bound),
        "peers": {"torch": Peer(peer, work=NARROW if precision == "float16" else None, viewed=viewed)}
        | STRONG[precision],
        "looked_at": NO_FLOATS if dtype == "float32" else NO_EPILOGUE,
        "edges": (
            *(Workload(m=m, n=n, k=k) for m, n, k in ((3, 5, 0), (0, 4, 4), (17, 67, 33), (65, 24, 72))),
            *(Workload(m=136, n=264, k=40, tile=tile) for tile in (widest(precision), *warpgroup_tiles(element))),
            Workload(m=130, n=37, k=40, tile="Square"),
        ),
        "golden": () if precision == "bfloat16" else (spoiled_inputs,),
        "budgets": (Budget("peer_ratio", at_least=0.9, label="S1"), Budget("peer_ratio", at_least=0.9, label="S2")),
    }
    return Variant(f"tensor cores, {precision} operands, FP32 sums", **{**plain, **changes})


def on_warpgroups(precision: str, peer: Callable[..., Any]) -> Variant:
    """Pinned to warpgroup instructions; without the FP32 form's goldens, whose rows are ragged."""
    edges = (*(Workload(m=m, n=n, k=k) for m, n, k in ((128, 256, 16), (128, 256, 320), (3, 8, 0), (150, 520, 136))),)
    pinned = {"parameters": {"tile": "Warpgroups"}, "requires": WARPGROUPS, "only_labels": ("S0",), "budgets": ()}
    return tensor_variant(precision, peer, edges=edges, golden=(), **pinned)


def spoiled(m: int, k: int) -> AnyArray:
    """Row 0 of A holds a NaN, row 1 an infinity, row 2 both signs of it."""
    a = np.random.default_rng(1).normal(size=(m, k))
    a[0, 3], a[1, k - 1], a[2, 0], a[2, 1] = np.nan, np.inf, np.inf, -np.inf
    return a


spoiled_inputs = Golden(
    Workload(m=20, n=12, k=40),
    inputs={"a": spoiled, "b": lambda k, n: np.random.default_rng(2).normal(size=(k, n))},
    expected={},
    source="NaN passes the maximum, as in NumPy and PyTorch; infinities as in IEEE 754",
)

spec = KernelSpec(
    entry="fused_matmul_relu",
    arguments=(In("a", "m k"), In("b", "k n"), Out("c", "m n"), Size("m"), Size("n"), Size("k")),
    parameters={"tile": "auto"},
    rules=(PRODUCT_RULE,),
    launch=launch,
    reference=reference,
    tolerance=product(magnitude=magnitude, depth=lambda k: k),
    peers={"torch": torch_product, "nvmath": NVMATH},
    looked_at=NO_FLOATS,
    flops=lambda m, n, k: 2 * m * n * k + m * n,
    workloads={
        "S0": Workload(m=256, n=256, k=256),
        "S1": Workload(m=4096, n=4096, k=4096),
        "S2": Workload(m=8192, n=8192, k=8192),
    },
    edges=(
        *(Workload(m=m, n=n, k=k) for m, n, k in ((1, 1, 1), (3, 5, 0), (0, 4, 4), (17, 33, 193), (31, 36, 40))),
        *(Workload(m=130, n=n, k=9, tile="Large") for n in (257, 260)),
        *(Workload(m=m, n=256, k=k, tile=tile) for m, k, tile in ((128, 48, "Full"), (640, 32, "Split"))),
        *(Workload(m=129, n=n, k=9, tile="Medium") for n in (131, 132)),
        Workload(m=65, n=68, k=41, tile="Narrow"),
    ),
    golden=(spoiled_inputs,),
    variants={
        "half": tensor_variant("float16", torch_product),
        "bfloat16_wgmma": on_warpgroups("bfloat16", torch_bfloat),
        "bfloat16": tensor_variant("bfloat16", torch_bfloat),
        "three_bfloat16": tensor_variant(
            "three_bfloat16",
            torch_product,
            golden=(),
            budgets=tuple(Budget("peer_ratio", at_least=1.8, label=s) for s in ("S1", "S2")),
        ),
        "tf32": tensor_variant(
            "tf32",
            in_tf32(torch_product),
            budgets=tuple(Budget("peer_ratio", at_least=0.35, label=s) for s in ("S1", "S2")),
        ),
    },
    budgets=(Budget("peer_ratio", at_least=0.85, label="S1"), Budget("peer_ratio", at_least=0.85, label="S2")),
)
