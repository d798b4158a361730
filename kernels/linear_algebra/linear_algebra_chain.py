"""A layer, its loss and a step: logits, softmax, gradient of the mean cross entropy, its product with a direction.

    logits = activation(x w + bias), gradient = (softmax(logits) - onehot(label)) / rows
    steps = alpha gradient direction + beta before, total = sum of the steps

The kernel itself is the chain's baseline, eight steps each in a separate launch; the variants are stages of fusion.
One launch is possible although a softmax waits for all tiles of its rows: the last block of a row of tiles goes on.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial as part
from types import ModuleType
from typing import Any

from prism_bench import (
    Budget,
    Chain,
    Golden,
    In,
    KernelSpec,
    Launch,
    Out,
    Rule,
    Scalar,
    Scratch,
    Size,
    Variant,
    Workload,
    Zero,
    integers,
    normal,
    reduction,
)
from prism_bench.spec import AnyArray, Device, Domain, Peer

from ..include.layers.loss_launches import (
    ACTIVATIONS,
    STEP,
    loss_gradient,
    row_shape,
    separate_steps,
    softmax,
)
from ..include.layers.loss_steps import gradient_size, reference, step_size, total_size
from ..include.products.fused_product import FINITE
from ..include.products.gemm_tile import TILE_RULE, TILES, on_tiles
from ..include.products.row_products import row_blocks, row_template
from ..include.sums.row_sums import MOST_BLOCKS
from ..include.tensor_cores.tensor_tile import (
    BY_MAPS,
    TENSOR_RULE,
    TRIPLE,
    Operands,
    on_tensor_tiles,
    required,
    staged_bytes,
)

# The FMA rate limits it in FP32; on the tensor cores the product and the rest of the traffic take similar times.
# Separate launches move six times the bytes of the fused form, which matters in half precision. The best of PyTorch's
# forms varies from run to run: torch.compile chooses anew in each.
IN_REGISTERS = 16_384  # columns of a row that a block holds
ROW_TILE = (16, 256, 256)  # rows, columns and bytes of depth of a tile of whole rows, 256 threads
SMALLEST_TILE = min(rows for rows, *_ in TILES.values())
ONE_BLOCK_ROWS = Rule(f"cols <= {IN_REGISTERS}, a row that a block holds", lambda cols: cols <= IN_REGISTERS)


def arguments(dtype: str, domain: Domain | None = None) -> tuple[Any, ...]:
    """Inputs, outputs, what the separate launches hand on, and sizes and factors; x and w in `dtype`."""
    inputs = (In("x", "rows inputs", dtype, domain=domain), In("w", "inputs cols", dtype, normal(0, 0.02), domain),
              In("bias", "cols"), In("label", "rows", "int32", fill=integers(0, "cols")),
              In("direction", "cols"), In("before", "rows"))  # fmt: skip
    outputs = (Out("gradient", "rows cols"), Out("steps", "rows"), Out("total", "1"))
    shapes = {"logits": "rows cols", "p": "rows cols", "product": "rows"}
    between = (Scratch(name, shapes[name]) for name in BETWEEN)
    sums = (Scratch("states", "rows parts", "uint64"), Scratch("by_row", "places", "float64"),
            Scratch("arrived", "counters", "uint32"))  # fmt: skip
    factors = (Scalar(name) for name in ("alpha", "beta", "weight", "temperature", "one", "none"))
    sizes = (Size("rows"), Size("cols"), Size("inputs"), Size("parts"), Size("size"), Size("splits"))
    wide = (Scalar(name, "int64") for name in ("wide_rows", "elements"))
    return (*inputs, *outputs, *between, *sums, *factors, *sizes, *wide)


BETWEEN = ("logits", "p", "product")
DERIVED = {
    "parts": lambda cols: max(1, -(-cols // 8192)), "size": lambda cols, parts: -(-cols // (4 * parts)) * 4,
    "splits": lambda: 1, "places": lambda rows: max(MOST_BLOCKS, rows),
    "counters": lambda rows: -(-rows // SMALLEST_TILE) + 1, "weight": lambda rows: 1 / max(rows, 1),
    "wide_rows": lambda rows: rows, "elements": lambda rows, cols: rows * cols,
}  # fmt: skip
ROW_STEPS = ("label", "direction", "before", "gradient", "steps", "total")

PRODUCT = ("x", "w", "logits", "rows", "cols", "inputs")
MATRICES = ("x", "w", "logits")
OPERANDS, TRIPLES = (Operands(one, left_along=True, right_along=False) for one in ("Half", TRIPLE))


def baseline(
    rows: int, cols: int, inputs: int, parts: int, elements: int, activation: str, tile: str, device: Device
) -> tuple[Any, ...]:
    """Every step in a separate launch."""
    entry = f"matmul<{{}}, {1 if cols % 4 else 4}>"
    product = replace(on_tiles(entry, rows, cols, tile, device), arguments=PRODUCT)
    return (product, *separate_steps(rows, cols, parts, elements, activation, device))


def half_baseline(
    rows: int, cols: int, inputs: int, parts: int, elements: int, activation: str, tile: str, device: Device
) -> tuple[Any, ...]:
    """The same with the product on the tensor cores."""
    entry = "half_matmul<{}>"
    product = on_tensor_tiles(entry, OPERANDS, (rows, cols, inputs), device, tile=tile, matrices=MATRICES)
    return (replace(product, arguments=PRODUCT), *separate_steps(rows, cols, parts, elements, activation, device))


LAYER = ("x", "w", "bias", "logits", "rows", "cols", "inputs")


def layer(rows: int, cols: int, inputs: int, activation: str, tile: str, device: Device) -> Launch:
    """The fused product on the FMA units."""
    entry = f"fused_matmul_bias_activation<{{}}, {1 if cols % 4 else 4}, {ACTIVATIONS[activation][0]}>"
    return replace(on_tiles(entry, rows, cols, tile, device), arguments=LAYER)


def tensor_layer(
    rows: int, cols: int, inputs: int, activation: str, tile: str, device: Device, operands: Operands = OPERANDS
) -> Launch:
    """The same on the tensor cores."""
    entry = f"fused_matmul_bias_activation_tensor<{{}}, {ACTIVATIONS[activation][0]}>"
    product = on_tensor_tiles(entry, operands, (rows, cols, inputs), device, tile=tile, matrices=MATRICES)
    return replace(product, arguments=LAYER)


def partial(product: Callable[..., Any]) -> Callable[..., Any]:
    """The documents' fused kernels, and softmax and gradient between them."""

    def launch(
        rows: int, cols: int, inputs: int, parts: int, activation: str, tile: str, device: Device
    ) -> tuple[Launch | Zero, ...]:
        passed = ("gradient", "direction", "before", "steps", "total", "by_row", "arrived", *STEP, "rows", "cols")
        entry = f"fused_gemv_operations<{row_template('SumOf', cols)}>"
        return (
            product(rows, cols, inputs, activation, tile, device), *softmax(rows, cols, parts),
            loss_gradient(rows, cols), Launch(row_blocks(rows, cols), 256, entry=entry, arguments=passed),
        )  # fmt: skip

    return launch


def by_rows(product: Callable[..., Any]) -> Callable[..., Any]:
    """The layer, and then a block for all that follows of a row."""

    def launch(rows: int, cols: int, inputs: int, activation: str, tile: str, device: Device) -> tuple[Launch, ...]:
        block, items = row_shape(cols)
        passed = ("logits", *ROW_STEPS, "by_row", "arrived", *STEP, "weight", "rows", "cols")
        entry = f"fused_row_steps<{items}, {1 if cols % 4 else 4}>"
        return (
            product(rows, cols, inputs, activation, tile, device),
            Launch(rows, block, entry=entry, arguments=passed, overlaps=True),
        )

    return launch


def full(
    rows: int, cols: int, inputs: int, activation: str, tile: str, device: Device
) -> Launch | tuple[Launch | Zero, ...]:
    """Two launches, or one for rows that no block holds.

    In one launch few blocks finish the last rows of tiles while all others have ended, at small sizes too.
    """
    if cols <= IN_REGISTERS:
        return by_rows(layer)(rows, cols, inputs, activation, tile, device)
    return at_once(rows, cols, activation, tile, device)


def at_once(rows: int, cols: int, activation: str, tile: str, device: Device) -> Launch:
    """One launch."""
    entry = f"fused_linear_algebra<{{}}, {1 if cols % 4 else 4}, {ACTIVATIONS[activation][0]}>"
    passed = ("x", "w", "bias", *ROW_STEPS, "logits", "by_row", "arrived", *STEP, "weight", "rows", "cols", "inputs")
    return replace(on_tiles(entry, rows, cols, tile, device), arguments=passed)


def half_full(
    rows: int, cols: int, inputs: int, activation: str, tile: str, device: Device
) -> Launch | tuple[Launch | Zero, ...]:
    """One launch where a tile holds whole rows unless another one is chosen, else two."""
    if cols > ROW_TILE[1] or tile != "auto":
        return by_rows(tensor_layer)(rows, cols, inputs, activation, tile, device)
    width = 8 if OPERANDS.whole(rows, cols, inputs) else 1
    stages = 3 if staged_bytes(*ROW_TILE, OPERANDS, 3) <= device.max_shared_bytes else 2
    return Launch(
        -(-rows // ROW_TILE[0]), 256, shared=staged_bytes(*ROW_TILE, OPERANDS, stages),
        entry=f"fused_half_rows<Rows<Half, {stages}>, true, false, {width}, {ACTIVATIONS[activation][0]}>",
        arguments=("x", "w", "bias", *ROW_STEPS, "by_row", "arrived", *STEP, "weight", "rows", "cols", "inputs"),
    )  # fmt: skip


def torch_chain(
    torch: ModuleType, x: AnyArray, w: AnyArray, bias: AnyArray, label: AnyArray, direction: AnyArray, before: AnyArray,
    activation: str, alpha: float, beta: AnyArray, rows: int,
) -> Any:  # fmt: skip
    """The same with PyTorch's calls."""
    logits = getattr(torch, activation)(torch.addmm(bias.to(x.dtype), x, w)).float()
    gradient = torch.softmax(logits, dim=1) / rows
    gradient.scatter_add_(1, label.long()[:, None], torch.full((rows, 1), -1 / rows, device="cuda"))
    steps = torch.addmv(before, gradient, direction, alpha=alpha, beta=beta)
    return gradient, steps, steps.sum()


PEERS = {"torch": Peer(torch_chain, work="of float16 operands it rounds the logits to float16")}


def bytes_moved(element: int) -> Callable[..., Any]:
    """Inputs and outputs once, and the gradient again where a launch writes it and another reads it."""
    return lambda rows, cols, inputs: element * inputs * (rows + cols) + 4 * (2 * rows * cols + 2 * cols + 4 * rows + 1)


HALF = {
    "arguments": arguments("float16"), "arithmetic": "tensor", "golden": (),
    "edges": (*(Workload(rows=r, cols=c, inputs=i)
                for r, c, i in ((1, 1, 1), (17, 67, 33), (33, 72, 136), (40, 264, 72))),
              Workload(rows=65, cols=132, inputs=40, tile="Square", activation="tanh"),
              *(Workload(rows=136, cols=264, inputs=72, tile=tile) for tile in ("Warpgroups", *BY_MAPS))),
    "requires": required,
}  # fmt: skip
RULES = (
    Rule(f"activation is one of {', '.join(ACTIVATIONS)}", lambda activation: activation in ACTIVATIONS),
    Rule("rows >= 1 and cols >= 1", lambda rows, cols: min(rows, cols) >= 1),
)

spec = KernelSpec(
    entry="fused_linear_algebra",
    arguments=arguments("float32"),
    parameters={"activation": "relu", "tile": "auto", "alpha": -1.0, "beta": 0.9, "temperature": 1.0, "one": 1.0,
                "none": 0.0},
    derived=DERIVED,
    rules=(*RULES, TILE_RULE),
    launch=baseline,
    reference=reference,
    tolerance={"gradient": reduction(gradient_size), "steps": reduction(step_size, underflows=lambda cols: cols + 2),
               "total": reduction(total_size, underflows=lambda rows, cols: rows * (cols + 2))},
    before="linear_algebra_chain:full",
    flops=lambda rows, cols, inputs: 2 * rows * cols * inputs + 10 * rows * cols,
    bytes_moved=bytes_moved(4),
    traffic_factor=8,  # small products read their operands once for every tile of the other
    workloads={
        "S0": Workload(rows=256, cols=256, inputs=256),
        "S1": Workload(rows=8192, cols=4096, inputs=4096),
        "S2": Workload(rows=8192, cols=16_384, inputs=4096),
    },
    edges=(
        *(Workload(rows=r, cols=c, inputs=i) for r, c, i in ((1, 1, 1), (3, 5, 0), (17, 33, 9), (32, 128, 64))),
        *(Workload(rows=21, cols=c, inputs=8, activation=a) for c, a in ((36, "sigmoid"), (37, "tanh"))),
        Workload(rows=2, cols=1028, inputs=3, beta=0.0), Workload(rows=3, cols=8196, inputs=2),
        Workload(rows=2, cols=4096, inputs=3), Workload(rows=130, cols=260, inputs=9, tile="Large"),
        Workload(rows=65, cols=131, inputs=9, tile="Narrow"),
    ),
    golden=(
        Golden(
            Workload(rows=3, cols=2, inputs=1, beta=0.0),
            {"x": 0.0, "w": 0.0, "bias": 0.0, "label": [0, 1, 2], "direction": [6, 12], "before": 0.0},
            {"gradient": [[-1 / 6, 1 / 6], [1 / 6, -1 / 6], [float("nan")] * 2], "steps": [-1, 1, float("nan")],
             "total": float("nan")},
            source="calculated: equal logits; a label outside the columns",
        ),
    ),
    variants={
        "partial": Variant(
            "the documents' fused kernels, four launches", launch=partial(layer), before="linear_algebra_chain:full",
        ),
        "rows": Variant(
            "two launches: the layer, and a block for the rest of a row", launch=by_rows(layer),
            rules=(*RULES, TILE_RULE, ONE_BLOCK_ROWS), bytes_moved=None,
        ),
        "at_once": Variant(
            "one launch: the last block of a row of tiles takes its rows on", launch=at_once, bytes_moved=None,
        ),
        "full": Variant("two launches, one for rows that no block holds", launch=full, bytes_moved=None, peers=PEERS),
        "three_bfloat16_full": Variant(
            "two launches, operands on the tensor cores as sums of three bfloat16", requires=required, bytes_moved=None,
            launch=by_rows(part(tensor_layer, operands=TRIPLES)), rules=(*RULES, TENSOR_RULE, ONE_BLOCK_ROWS),
            edges=(*HALF["edges"][:5], Workload(rows=136, cols=264, inputs=72, tile="Thirds")), golden=(),
            arguments=arguments("float32", FINITE), arithmetic="three_bfloat16"),
        "half": Variant(
            "half-precision operands on the tensor cores, a launch for every step", launch=half_baseline,
            rules=(*RULES, TENSOR_RULE), bytes_moved=bytes_moved(2), before="linear_algebra_chain:half_full", **HALF,
        ),
        "half_partial": Variant(
            "half-precision operands on the tensor cores, four launches", launch=partial(tensor_layer),
            rules=(*RULES, TENSOR_RULE), bytes_moved=bytes_moved(2), before="linear_algebra_chain:half_full", **HALF,
        ),
        "half_full": Variant(
            "half-precision operands on the tensor cores, one launch where a tile holds whole rows, else two: blocks "
            "that go from tile to tile by warpgroup instructions have no registers for rows", launch=half_full,
            rules=(*RULES, TENSOR_RULE, ONE_BLOCK_ROWS), bytes_moved=None, peers=PEERS,
            budgets=tuple(Budget("peer_ratio", at_least=1.0, label=label) for label in ("S1", "S2")), **HALF,
        ),
    },
    chains=(
        Chain("linear_algebra", {"baseline": None, "partial": "partial", "full": "full", "persistent": "at_once"},
              BETWEEN),
        Chain("linear_algebra_half", {"baseline": "half", "partial": "half_partial", "full": "half_full",
                                      "persistent": "half_full"}, BETWEEN),
    ),
)  # fmt: skip
