"""LSTM cell: one product [x h] [W_ih W_hh]^T whose tiles hold all four gates of a unit, finished in registers.

The FMA rate limits it. The large tiles of S1 are a few fewer than the multiprocessors of a large device. Gate order i,
f, g, o as in PyTorch; bias = b_ih + b_hh.

`sequence` walks its steps as that of `gru_cell` does, whose spec has the reasons.
"""

from collections.abc import Callable
from math import gcd
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
    Zero,
    normwise,
    product,
)
from prism_bench.spec import ONE_BY_ONE, AnyArray, ArrayModule, Device, Fill, Peer, Tolerance, real

from ..include.products.gemm_tile import Whole, on_tiles
from ..include.products.gemm_tile import tile_rule as product_rule
from ..include.sequences.recurrent_grid import DERIVED, EDGES_OF_GRID, GRID_RULE, SCRATCH, GridCell
from ..include.sequences.resident_gates import (
    EDGES_OF_RESIDENT,
    LIMIT,
    reachable,
    resident,
    suits_resident,
    tile_rule,
)

# As PyTorch begins: the gates then work between their limits.
WEIGHTS = Fill(
    lambda rng, count, axes: rng.uniform(-1, 1, count) / np.sqrt(max(axes["hidden"], 1)),
    "uniform(-1, 1) / sqrt(hidden)",
    real(),
    runs=ONE_BY_ONE,
)


def launch(batch: int, inputs: int, hidden: int, gates: int, tile: str, device: Device) -> Launch:
    return on_tiles("lstm_cell<{}>", batch, gates, tile, device, Whole(gcd(inputs, hidden), (WHOLE,)))


WHOLE = "FullRows"
# Samples and gate columns of a sequence's tiles, and the share of the FMA rate that each keeps busy.
SEQUENCE_TILES = {"Tall": (64, 32, 0.6), "Small": (16, 32, 0.35)}
SEQUENCE_ARGUMENTS = ("x", "h", "c", "w_ih", "w_hh", "bias", "y", "c_next", "steps", "batch", "inputs", "hidden")
GRID = ("by_x", "h", "c", "w_hh", "y", "c_next", "states", "counters", "steps", "batch", "hidden")
ON_GRID = GridCell("lstm_grid", GRID, gates=4, bias="bias")


def launch_sequence(
    steps: int, batch: int, inputs: int, hidden: int, gates: int, tile: str, device: Device
) -> Launch | tuple[Launch | Zero, ...]:
    """A block per sample where it holds the weights, a grid that does, or else one of tiles that reads them."""
    if tile == "Resident" or (tile == "auto" and suits_resident(4, batch, inputs, hidden, device)):
        return resident("lstm_resident", SEQUENCE_ARGUMENTS, 4, batch, inputs)
    if ON_GRID.suits(batch, inputs, hidden, tile, device):
        return ON_GRID.launches(steps, batch, hidden, device)

    def blocks(name: str) -> int:
        rows, cols, _ = SEQUENCE_TILES[name]
        return -(-batch // rows) * -(-gates // cols)

    def time(name: str) -> float:
        rows, cols, busy = SEQUENCE_TILES[name]
        return -(-blocks(name) // device.sm_count) * rows * cols / busy

    name = min(SEQUENCE_TILES, key=time) if tile == "auto" else tile
    grid, entry = min(blocks(name), device.sm_count), f"lstm_sequence<{name}>"
    return Launch(grid, 256, entry=entry, arguments=SEQUENCE_ARGUMENTS, cooperative=True)


def gates_of(product: AnyArray, hidden: int) -> tuple[AnyArray, AnyArray, AnyArray, AnyArray]:
    return tuple(product[:, k * hidden : (k + 1) * hidden] for k in range(4))


def reference(
    x: AnyArray,
    h: AnyArray,
    c: AnyArray,
    w_ih: AnyArray,
    w_hh: AnyArray,
    bias: AnyArray,
    hidden: int,
    xp: ArrayModule,
    special: ModuleType,
) -> tuple[AnyArray, AnyArray]:
    i, f, g, o = gates_of(x @ w_ih.T + h @ w_hh.T + bias, hidden)
    c_next = special.expit(f) * c + special.expit(i) * xp.tanh(g)
    return special.expit(o) * xp.tanh(c_next), c_next


def sizes(
    x: AnyArray, h: AnyArray, w_ih: AnyArray, w_hh: AnyArray, bias: AnyArray, hidden: int, xp: ArrayModule
) -> tuple[AnyArray, AnyArray, AnyArray, AnyArray]:
    """The absolute terms of every gate's sum; an infinite sum is not rounded."""
    sums = xp.abs(x) @ xp.abs(w_ih).T + xp.abs(h) @ xp.abs(w_hh).T + xp.abs(bias)
    return gates_of(xp.nan_to_num(sums, nan=0.0, posinf=0.0), hidden)


def cell_spread(
    x: AnyArray, h: AnyArray, c: AnyArray, w_ih: AnyArray, w_hh: AnyArray, bias: AnyArray, hidden: int, xp: ArrayModule
) -> AnyArray:
    """How far c' moves with its gate sums (logistic' <= 1/4, tanh' <= 1), and the terms of c' itself."""
    i, f, g, _ = sizes(x, h, w_ih, w_hh, bias, hidden, xp)
    return i / 4 + xp.nan_to_num(f * xp.abs(c) / 4 + xp.abs(c), nan=0.0, posinf=0.0) + g + 1


def hidden_spread(
    x: AnyArray, h: AnyArray, c: AnyArray, w_ih: AnyArray, w_hh: AnyArray, bias: AnyArray, hidden: int, xp: ArrayModule
) -> AnyArray:
    """The same for h' = o tanh(c'): what c' is off, and a quarter of what the output gate's sum is."""
    o = sizes(x, h, w_ih, w_hh, bias, hidden, xp)[3]
    return cell_spread(x, h, c, w_ih, w_hh, bias, hidden, xp) + o / 4


def torch_cell(
    torch: ModuleType, x: AnyArray, h: AnyArray, c: AnyArray, w_ih: AnyArray, w_hh: AnyArray, bias: AnyArray
) -> Callable[[], Any]:
    """PyTorch's cell wants two biases; the second one is 0, and made beforehand."""
    zero = torch.zeros_like(bias)
    return lambda: torch.lstm_cell(x, (h, c), w_ih, w_hh, bias, zero)


def sequence_reference(
    x: AnyArray,
    h: AnyArray,
    c: AnyArray,
    w_ih: AnyArray,
    w_hh: AnyArray,
    bias: AnyArray,
    hidden: int,
    xp: ArrayModule,
    special: ModuleType,
) -> tuple[AnyArray, AnyArray]:
    """h of every step, c of the last."""
    y = xp.zeros((len(x), *h.shape))
    for step, signal in enumerate(x):
        h, c = reference(signal, h, c, w_ih, w_hh, bias, hidden, xp, special)
        y[step] = h
    return y, c


def state_terms(
    x: AnyArray,
    h: AnyArray,
    c: AnyArray,
    w_ih: AnyArray,
    w_hh: AnyArray,
    bias: AnyArray,
    inputs: int,
    xp: ArrayModule,
) -> AnyArray:
    """The cells' first state, of which shares remain, and the number up to 1 that a step adds, or what a gate loses."""
    sums = xp.abs(x) @ xp.abs(w_ih).T + (xp.abs(h) + 1) @ xp.abs(w_hh).T + xp.abs(bias)
    return reachable(xp.abs(c) + 1, sums, 4, inputs, xp)


def torch_sequence(
    torch: ModuleType, x: AnyArray, h: AnyArray, c: AnyArray, w_ih: AnyArray, w_hh: AnyArray, bias: AnyArray
) -> Any:
    """cuDNN's, with the weights in the order that it wants."""
    module = torch.nn.LSTM(w_ih.shape[1], w_hh.shape[1], device="cuda")
    for parameter, value in zip(module.parameters(), (w_ih, w_hh, bias, torch.zeros_like(bias)), strict=True):
        parameter.copy_(value)

    def call() -> tuple[Any, Any]:
        y, (_, c_next) = module(x, (h[None], c[None]))
        return y, c_next[0]

    return call


def rounding(magnitude: Callable[..., Any]) -> Tolerance:
    """GEMM32 over both products; the pointwise part rounds a few times more."""
    return product(magnitude=magnitude, depth=lambda inputs, hidden: inputs + hidden + 16)


def saturated(sign: float) -> dict[str, float]:
    return {"x": sign, "h": 0.0, "c": 3.0, "w_ih": 200.0, "w_hh": 0.0, "bias": 0.0}


WEIGHED = (
    In("w_ih", "gates inputs", fill=WEIGHTS),
    In("w_hh", "gates hidden", fill=WEIGHTS),
    In("bias", "gates", fill=WEIGHTS),
)


def sequence_bytes(steps: int, batch: int, inputs: int, hidden: int) -> int:
    """The states of all steps but the last are read again by the next one."""
    states = 2 + 2 * steps + (steps > 1)
    return 4 * (batch * (steps * inputs + states * hidden) + 4 * hidden * (inputs + hidden + 1))


SEQUENCE = Variant(
    "many steps in few launches, the state kept on the device",
    entry="lstm_sequence",
    arguments=(
        In("x", "steps batch inputs"),
        In("h", "batch hidden"),
        In("c", "batch hidden"),
        *WEIGHED,
        Out("y", "steps batch hidden"),
        Out("c_next", "batch hidden"),
        *SCRATCH,
        Size("steps"),
        Size("batch"),
        Size("inputs"),
        Size("hidden"),
    ),
    parameters={"tile": "auto"},
    derived={"gates": lambda hidden: 4 * hidden, **DERIVED},
    rules=(
        tile_rule(*SEQUENCE_TILES, "Grid"),
        GRID_RULE,
        Rule("steps >= 1", lambda steps: steps >= 1),
    ),
    launch=launch_sequence,
    reference=sequence_reference,
    tolerance=normwise(LIMIT, state_terms, lambda inputs, hidden: inputs + hidden),
    peers={"torch": Peer(torch_sequence, prepares=True)},
    flops=lambda steps, batch, inputs, hidden: steps * batch * hidden * (8 * (inputs + hidden) + 10),
    bytes_moved=sequence_bytes,
    workloads={
        "S0": Workload(steps=16, batch=32, inputs=64, hidden=128),
        "S1": Workload(steps=512, batch=64, inputs=1024, hidden=1024),
    },
    edges=(
        *(
            Workload(steps=t, batch=b, inputs=i, hidden=h, tile=tile)
            for tile in (*SEQUENCE_TILES, "Resident")
            for t, b, i, h in ((1, 1, 1, 1), (3, 0, 3, 4), (2, 5, 0, 7), (3, 17, 33, 13), (4, 67, 40, 50))
        ),
        *(Workload(steps=t, batch=2, inputs=i, hidden=h, tile="Resident") for t, i, h in EDGES_OF_RESIDENT),
        *(Workload(steps=t, batch=b, inputs=i, hidden=h, tile="Grid") for t, b, i, h in EDGES_OF_GRID),
        Workload(steps=5, batch=3, inputs=200, hidden=3),
        Workload(steps=2, batch=3, inputs=257, hidden=129),
    ),
    golden=(),
    traffic_factor=None,
    budgets=(),
)

spec = KernelSpec(
    entry="lstm_cell",
    aliases=("lstm_cell_forward",),
    arguments=(
        In("x", "batch inputs"),
        In("h", "batch hidden"),
        In("c", "batch hidden"),
        *WEIGHED,
        Out("h_next", "batch hidden"),
        Out("c_next", "batch hidden"),
        Size("batch"),
        Size("inputs"),
        Size("hidden"),
    ),
    parameters={"tile": "auto"},
    derived={"gates": lambda hidden: 4 * hidden},
    rules=(product_rule(WHOLE),),
    launch=launch,
    reference=reference,
    tolerance={"h_next": rounding(hidden_spread), "c_next": rounding(cell_spread)},
    peers={"torch": Peer(torch_cell, prepares=True)},
    flops=lambda batch, inputs, hidden: 8 * batch * hidden * (inputs + hidden) + 10 * batch * hidden,
    workloads={
        "S0": Workload(batch=32, inputs=64, hidden=128),
        "S1": Workload(batch=1024, inputs=1024, hidden=1024),
        "S2": Workload(batch=4096, inputs=2048, hidden=2048),
    },
    edges=(
        *(Workload(batch=b, inputs=64, hidden=h) for b, h in ((16, 64), (64, 256))),
        *(Workload(batch=b, inputs=i, hidden=h) for b, i, h in ((1, 1, 1), (0, 3, 4), (5, 0, 7), (17, 33, 13))),
        *(Workload(batch=130, inputs=i, hidden=h, tile="Large") for i, h in ((9, 65), (5, 64), (24, 64))),
        Workload(batch=128, inputs=24, hidden=64, tile="Large"),
        *(
            Workload(batch=b, inputs=i, hidden=h, tile=WHOLE)
            for b, i, h in ((128, 0, 64), (128, 16, 64), (256, 80, 128))
        ),
        Workload(batch=3, inputs=200, hidden=1),
        Workload(batch=129, inputs=17, hidden=35, tile="Medium"),
        Workload(batch=65, inputs=40, hidden=17, tile="Narrow"),
    ),
    golden=(
        Golden(
            Workload(batch=32, inputs=64, hidden=128),
            inputs={"x": 0.1, "h": 0.0, "c": 0.0, "w_ih": 0.01, "w_hh": 0.01, "bias": 0.0},
            expected={"h_next": 0.0170106298, "c_next": 0.0329786361},
            source="profiling guide: x = 0.1, weights 0.01, states 0",
        ),
        *(
            Golden(Workload(batch=batch, inputs=5, hidden=6), saturated(sign), {}, "gates saturate without overflow")
            for batch, sign in ((3, 1.0), (4, -1.0))
        ),
    ),
    variants={
        "sequence": SEQUENCE,
    },
    budgets=(Budget("peer_ratio", at_least=0.85, label="S1"), Budget("peer_ratio", at_least=0.85, label="S2")),
)
