"""How generated products are launched, and their operands: float32, or what the tensor cores take."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from prism_bench import Budget, In, Launch, Out, Size, Variant, Workload, normal, normwise
from prism_bench.spec import Array, Device, real

from ..numbers.bfloat import BFLOATS, FLOAT8S
from ..tensor_cores.tensor_tile import TENSOR_RULE, TRIPLE, Operands, on_tensor_tiles, required, warpgroup_tiles
from .gemm_tile import Whole, on_tiles

FINITE = replace(real(), finite=True)  # an infinity is no sum of bfloat16
# Element, dtype of an operand, fill, normwise bound. Bits of bfloat16 and e4m3 travel as unsigned integers.
ELEMENTS = {
    "float16": ("Half", "float16", normal(), 1e-3),
    "bfloat16": ("Bfloat", "uint16", BFLOATS, 1e-2),
    "tf32": ("Tf32", "float32", normal(), 1e-3),
    "three_bfloat16": ("BfloatTriple", "float32", normal(), 1e-5),
    "float8": ("Float8", "uint8", FLOAT8S, 1e-2),
}
# What takes the place of a functor behind sums of halves, whose rounding changes more.
OF_HALVES = {"Gelu": "GeluOfHalves"}


def functor_for(element: str, functor: str) -> str:
    """The functor behind a product of such elements."""
    return OF_HALVES.get(functor, functor) if element == "Half" else functor


def operand(name: str, shape: str, precision: str) -> Array:
    """A matrix of a product in that precision."""
    if precision == "float32":
        return In(name, shape)
    element, dtype, fill, _ = ELEMENTS[precision]
    return In(name, shape, dtype, fill, FINITE if element == TRIPLE else None)


def widest(precision: str) -> str:
    """The largest tile by warps whose fragments fit the registers."""
    return "Square" if ELEMENTS[precision][0] == TRIPLE else "Wide"


def tensor_edges(precision: str, rows: str, cols: str, depth: str) -> tuple[Workload, ...]:
    """A tile and a ragged one along either side, by each tile that takes such operands; the names are those of axes."""
    tiles = ("Compact", "Tiny", widest(precision), *warpgroup_tiles(ELEMENTS[precision][0]))
    return tuple(Workload(**{rows: 136, cols: 272, depth: 48, "tile": tile}) for tile in tiles)


def arithmetic_of(precision: str) -> str:
    """Return the kind of arithmetic of a product on the tensor cores, as a spec names its ceiling."""
    return "tensor" if precision in ("float16", "bfloat16") else precision


def linear_of_thirds(launch: Callable[..., Any], magnitude: Callable[..., Any], **turned: Any) -> Variant:
    """The variant of a linear layer in sums of three bfloat16; `turned` belong to the edge in the other layout.

    `magnitude` is the sum of the absolute terms of each element.
    """
    precision = "three_bfloat16"
    return Variant(
        "tensor cores, each operand the sum of three bfloat16, FP32 sums and bias",
        arguments=(
            operand("x", "batch inputs", precision), operand("w", "w_rows w_cols", precision),
            In("bias", "outputs"), Out("y", "batch outputs"), Size("batch"), Size("outputs"), Size("inputs"),
        ),
        rules=(TENSOR_RULE,),
        requires=required,
        launch=launch,
        arithmetic=arithmetic_of(precision),
        tolerance=normwise(1e-5, magnitude, lambda inputs: inputs + 1),
        golden=(),
        edges=(
            *(Workload(batch=b, inputs=i, outputs=o) for b, i, o in ((3, 0, 5), (0, 4, 4), (17, 33, 67))),
            *(Workload(batch=136, inputs=40, outputs=264, tile=tile) for tile in ("Tiny", "Square", "Thirds")),
            Workload(batch=130, inputs=40, outputs=37, layout="out_in", **turned),
        ),
        budgets=tuple(Budget("peer_ratio", at_least=1.8, label=label) for label in ("S1", "S2")),
    )  # fmt: skip


def product_launch(
    entry: str,
    precision: str,
    sizes: tuple[int, int, int],
    device: Device,
    *,
    tile: str,
    arguments: Any = None,
    matrices: tuple[str, str, str] = ("x", "w", "y"),
    **chosen: Any,
) -> Launch:
    """The launch for sizes (m, n, k). `entry` has {tile}, {width} and what else is chosen in the places for them."""
    m, n, k = sizes
    element = ELEMENTS[precision][0] if precision in ELEMENTS else ""
    functors = {name: functor_for(element, functor) for name, functor in chosen.items()}
    entry = entry.format(tile="{}", width=1 if n % 4 else 4, **functors)
    if precision == "float32":
        launch = on_tiles(entry, m, n, tile, device, Whole(k))
    else:
        operands = Operands(element, left_along=True, right_along=False)
        launch = on_tensor_tiles(entry, operands, sizes, device, tile=tile, matrices=matrices)
    return replace(launch, arguments=arguments)
