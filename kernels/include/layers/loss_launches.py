"""The steps behind a layer's product, each in its own launch: bias, activation, softmax, gradient, product, sum."""

from typing import Any

from prism_bench import Launch, Zero
from prism_bench.spec import Device

from ..arrays.columns import column_grid
from ..products.gemv import launches as products
from ..sums.row_sums import parts_of

ACTIVATIONS = {  # functor, launch of the separate step: entry, elements a block, threads
    "relu": ("Relu", "relu_in_place<Relu>", 1024, 256),
    "sigmoid": ("Sigmoid", "sigmoid_in_place", 512, 128),
    "tanh": ("Tanh", "tanh_in_place", 1024, 256),
}
STEP = ("alpha", "beta")


def by_columns(entry: str, rows: int, cols: int, each: int, arguments: tuple[str, ...]) -> Launch:
    """256 threads, as wide as the rows, for the maps of columns.cuh."""
    width = 1 if cols % 4 else 4
    return Launch(*column_grid(rows, cols, width, each), entry=f"{entry}<{width}, {each}>", arguments=arguments)


def row_shape(cols: int) -> tuple[int, int]:
    """Threads and items of each that hold a row of at most 8192 columns (256 threads), or 16,384."""
    block = next((b for b in (32, 64, 128, 256) if 4 * b >= cols), 256 if cols <= 8192 else 512)
    return block, next(i for i in (4, 8, 16, 32) if i * block >= min(cols, 8192 * block // 256))


def activate(activation: str, elements: int) -> Launch:
    _, entry, per_block, threads = ACTIVATIONS[activation]
    return Launch(-(-elements // per_block), threads, entry=entry, arguments=("logits", "elements"))


def softmax(rows: int, cols: int, parts: int) -> tuple[Launch | Zero, ...]:
    block, items = row_shape(min(cols, 8192))
    passed = ("logits", "p", "states", "cols", "size", "parts", "temperature")
    entry = f"softmax<{items}, {1 if cols % 4 else 4}>"
    step = Launch(rows * parts, block, entry=entry, arguments=passed)
    return (Zero("states"), step) if parts > 1 else (step,)


def loss_gradient(rows: int, cols: int) -> Launch:
    passed = ("p", "label", "gradient", "wide_rows", "cols", "weight")
    return by_columns("la_cross_entropy_grad", rows, cols, 2, passed)


def separate_steps(rows: int, cols: int, parts: int, elements: int, activation: str, device: Device) -> tuple[Any, ...]:
    """What follows the product."""
    given = ("gradient", "direction", "product", "p", "one", "none", "rows", "cols", "splits")
    return (
        by_columns("broadcast_add_in_place", rows, cols, 1, ("logits", "bias", "wide_rows", "cols")),
        activate(activation, elements),
        *softmax(rows, cols, parts),
        loss_gradient(rows, cols),
        *products(rows, cols, "float32", transpose=False, splits=1, arguments=given),
        Launch(-(-rows // 1024), 256, entry="axpby", arguments=("product", "before", "steps", *STEP, "wide_rows")),
        Launch(parts_of(1, rows, device, fill=4), 512, entry="reduce_sum<Plain<float>, float>",
               arguments=("steps", "total", "by_row", "wide_rows")),
    )  # fmt: skip
