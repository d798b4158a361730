"""C = A B in FP32, no TF32: a register tile per thread, depth tiles copied asynchronously, tile chosen by size.

The FMA rate limits it: nearly all of the inner loop is FFMA. `tf32` uses warpgroup instructions as `fused_matmul_relu`
does, which are faster than mma.sync.
"""

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
    Rule,
    Size,
    Tune,
    Variant,
    Workload,
    normwise,
    product,
)
from prism_bench.spec import AnyArray, ArrayModule, Device, Peer, real

from ..include.products.gemm_tile import PRODUCT_RULE, TILES, Whole, on_tiles
from ..include.tensor_cores import tensor_tile
from ..peers import lt_products
from ..peers.torch_peers import in_tf32

FINITE = replace(real(), finite=True)  # an infinity is no sum of TF32 or bfloat16
SIZES = (Size("m"), Size("n"), Size("k"))
FINITE_OPERANDS = (In("a", "m k", domain=FINITE), In("b", "k n", domain=FINITE), Out("c", "m n"), *SIZES)


def launch(m: int, n: int, k: int, tile: str, device: Device) -> Launch:
    return on_tiles(f"matmul<{{}}, {1 if n % 4 else 4}>", m, n, tile, device, Whole(k))


def possible(m: int, n: int, k: int, tile: str) -> bool:
    return tile in ("auto", *TILES) or Whole(k).take(tile, m, n)


TF32, PAIRS, TRIPLES = (
    tensor_tile.Operands(element, left_along=True, right_along=False)
    for element in ("Tf32", tensor_tile.PAIR, tensor_tile.TRIPLE)
)


def launch_tf32(m: int, n: int, k: int, tile: str, device: Device) -> Launch:
    return tensor_tile.on_tensor_tiles("matmul_tf32<{}>", TF32, (m, n, k), device, tile=tile)


def launch_pairs(m: int, n: int, k: int, tile: str, device: Device) -> Launch:
    return tensor_tile.on_tensor_tiles("matmul_tf32<{}>", PAIRS, (m, n, k), device, tile=tile)


def launch_triples(m: int, n: int, k: int, tile: str, device: Device) -> Launch:
    return tensor_tile.on_tensor_tiles("matmul_tf32<{}>", TRIPLES, (m, n, k), device, tile=tile)


def possible_tf32(m: int, n: int, k: int, tile: str, device: Device) -> bool:
    return tile == "auto" or tensor_tile.fits(tile, TF32, (m, n, k), "auto", device)


def possible_triples(m: int, n: int, k: int, tile: str, device: Device) -> bool:
    return tile == "auto" or tensor_tile.fits(tile, TRIPLES, (m, n, k), "auto", device)


def torch_product(torch: ModuleType, a: AnyArray, b: AnyArray) -> Any:
    return torch.mm(a, b)


def nvmath_tf32(nvmath: ModuleType, a: AnyArray, b: AnyArray) -> Any:
    return lt_products.product(nvmath, a, b, form=lt_products.Form(tf32=True))


def reference(a: AnyArray, b: AnyArray) -> AnyArray:
    with np.errstate(invalid="ignore"):  # infinities may meet
        return a @ b


def magnitude(a: AnyArray, b: AnyArray, xp: ArrayModule) -> AnyArray:
    """Sums of absolute terms; an element that is not finite must agree as it is."""
    return xp.nan_to_num(xp.abs(a) @ xp.abs(b), nan=0.0, posinf=0.0)


def spoiled(m: int, k: int) -> AnyArray:
    """Row 0 of A holds a NaN, row 1 an infinity, row 2 both signs of it."""
    a = np.random.default_rng(1).normal(size=(m, k))
    a[0, 3], a[1, k - 1], a[2, 0], a[2, 1] = np.nan, np.inf, np.inf, -np.inf
    return a


spec = KernelSpec(
    entry="matmul",
    aliases=("matrix_multiply", "la_matmul"),
    arguments=(In("a", "m k"), In("b", "k n"), Out("c", "m n"), *SIZES),
    rules=(PRODUCT_RULE,),
    launch=launch,
    tune=Tune(
        tile=("auto", *Whole(0).names, *TILES), rules=(Rule("a tile that the product is whole ones of", possible),)
    ),
    reference=reference,
    tolerance=product(magnitude=magnitude, depth=lambda k: k),
    peers={
        "torch": torch_product,
        "cupy": lambda cupy, a, b: cupy.matmul(a, b),
        "nvmath": Peer(lambda nvmath, a, b: lt_products.product(nvmath, a, b), prepares=True),
    },
    looked_at={"quack": "operands of 16 and 8 bits only"},
    flops=lambda m, n, k: 2 * m * n * k,
    workloads={
        "S0": Workload(m=256, n=256, k=256),
        "S1": Workload(m=4096, n=4096, k=4096),
        "S2": Workload(m=8192, n=8192, k=8192),
    },
    edges=(
        *(Workload(m=m, n=n, k=k) for m, n, k in ((1, 1, 1), (3, 5, 0), (0, 4, 4), (4, 0, 4), (16, 16, 16))),
        *(Workload(m=m, n=n, k=k) for m, n, k in ((32, 32, 32), (128, 256, 128), (1000, 3, 17), (3, 1000, 17))),
        *(Workload(m=m, n=n, k=k) for m, n, k in ((1, 1, 4097), (17, 33, 193), (31, 36, 200))),
        *(Workload(m=130, n=n, k=k, tile="Large") for n, k in ((256, 16), (260, 17), (257, 7), (258, 33), (260, 40))),
        *(Workload(m=m, n=256, k=k, tile="Full") for m, k in ((128, 0), (128, 16), (256, 48), (128, 80))),
        *(Workload(m=m, n=256, k=k, tile="Split") for m, k in ((128, 0), (640, 64))),
        *(Workload(m=129, n=n, k=k, tile="Medium") for n, k in ((128, 8), (132, 25), (131, 9), (131, 40))),
        *(Workload(m=65, n=n, k=k, tile="Narrow") for n, k in ((64, 8), (68, 41), (67, 31), (68, 48))),
        Workload(m=4099, n=3, k=5, tile="Narrow"),
    ),
    golden=(
        Golden(
            Workload(m=256, n=256, k=256),
            inputs={"a": 0.1, "b": 0.1},
            expected={"c": 2.56},
            source="profiling guide: 0.1 x 0.1 over K = 256",
        ),
        Golden(
            Workload(m=20, n=12, k=40),
            inputs={"a": spoiled, "b": lambda k, n: np.random.default_rng(2).normal(size=(k, n))},
            expected={},
            source="NaN and infinities spread as IEEE 754 defines",
        ),
    ),
    variants={
        "tf32": Variant(
            "on the tensor cores: operands rounded to TF32, FP32 sums",
            launch=launch_tf32,
            rules=(tensor_tile.TENSOR_RULE,),
            tune=Tune(
                tile=("auto", "Turned", *tensor_tile.WARP_WIDE),
                rules=(Rule("a tile that fits shared memory", possible_tf32),),
            ),
            arithmetic="tf32",
            tolerance=normwise(1e-3, magnitude, lambda k: k),
            peers={"torch": in_tf32(torch_product), "nvmath": Peer(nvmath_tf32, prepares=True)},
            looked_at={"quack": "operands of 16 and 8 bits only"},
            peer_tolerance=normwise(1e-3),
            edges=(
                *(Workload(m=m, n=n, k=k) for m, n, k in ((3, 5, 0), (0, 4, 4), (17, 67, 33), (65, 24, 72))),
                Workload(m=136, n=264, k=40, tile="Wide"),
                Workload(m=130, n=37, k=40, tile="Square"),
                *(Workload(m=256, n=128, k=k, tile="Turned") for k in (4, 32, 64, 96, 128, 160, 1024)),
                *(Workload(m=m, n=n, k=k, tile="Turned") for m, n, k in ((512, 256, 96), (1, 4, 4), (3, 8, 12))),
                *(Workload(m=m, n=n, k=k, tile="Turned") for m, n, k in ((260, 132, 72), (2056, 3096, 200))),
            ),
            requires=tensor_tile.required,
            budgets=tuple(Budget("peer_ratio", at_least=0.75, label=label) for label in ("S1", "S2")),
        ),
        "three_bfloat16": Variant(
            "on the tensor cores: operands as sums of three bfloat16, exactly, six products of them, FP32 sums; "
            "three_tf32 where rows are no whole 16 bytes or there is no wgmma",
            arguments=FINITE_OPERANDS,
            launch=launch_triples,
            rules=(tensor_tile.TENSOR_RULE,),
            tune=Tune(
                tile=("auto", "Thirds", "Square", "Compact"),
                rules=(Rule("a tile that fits shared memory", possible_triples),),
            ),
            arithmetic="three_bfloat16",
            tolerance=product(magnitude=magnitude, depth=lambda k: k + 16),
            edges=(
                *(Workload(m=m, n=n, k=k) for m, n, k in ((3, 5, 0), (0, 4, 4), (17, 67, 33), (65, 24, 72))),
                *(Workload(m=m, n=n, k=k, tile="Thirds") for m, n, k in ((128, 128, 32), (256, 384, 160), (1, 4, 4))),
                *(Workload(m=m, n=n, k=k, tile="Thirds") for m, n, k in ((3, 8, 0), (260, 132, 72), (2056, 3096, 200))),
            ),
            requires=tensor_tile.required,
            golden=(),
            budgets=tuple(Budget("peer_ratio", at_least=1.8, label=label) for label in ("S1", "S2")),
        ),
        "three_tf32": Variant(
            "on the tensor cores: operands as sums of two TF32, three products of them (3xTF32), FP32 sums",
            arguments=FINITE_OPERANDS,
            launch=launch_pairs,
            rules=(tensor_tile.TENSOR_RULE,),
            tune=Tune(
                tile=("auto", "Square", "Compact"), rules=(Rule("a tile that fits shared memory", possible_tf32),)
            ),
            arithmetic="three_tf32",
            tolerance=normwise(1e-5, magnitude, lambda k: k),
            edges=(
                *(Workload(m=m, n=n, k=k) for m, n, k in ((3, 5, 0), (0, 4, 4), (17, 67, 33), (65, 24, 72))),
                *(
                    Workload(m=m, n=n, k=k, tile="Square")
                    for m, n, k in ((136, 264, 40), (130, 37, 40), (129, 132, 100))
                ),
            ),
            golden=(),
            budgets=(),
        ),
        "naive": Variant(
            "one thread per output, no tiling",
            launch=lambda m, n: Launch(grid=(-(-n // 32), -(-m // 8)), block=(32, 8), entry="matmul_naive"),
            only_labels=("S0", "S1"),
            traffic_factor=None,
        ),
    },
    budgets=(Budget("peer_ratio", at_least=0.85, label="S1"), Budget("peer_ratio", at_least=0.85, label="S2")),
)
