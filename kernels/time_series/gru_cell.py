"""GRU cell: one product whose tiles hold all three gates of a unit, finished in registers.

The FMA rate limits it. The large tiles of S1 are a few fewer than the multiprocessors of a large device. Gate order r,
z, n and h' = (1 - z) n + z h as in PyTorch; `reset_after=0` is the form of 2014, which applies r to h before the
product and needs a second launch.

`sequence` with up to 64 samples multiplies x of 128 steps in one product, then a cooperative grid walks these steps:
each block keeps W_hh of 8 units in shared memory, and only h passes between blocks. Tiles that read W_hh anew took
several times as long a step. Warps wait by counters for the blocks that own their part of the depth, not at a barrier
of the grid, and little is left to gain there: without any wait the steps are hardly shorter. Copies of h by the copy
engine were no faster, clusters that share them slower. The product of all 512 steps at once would take 402 MB at S1,
pieces of 128 take 101 MB. Fewer units than 129 have a block per sample, everything else small tiles.
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
    Scratch,
    Size,
    Variant,
    Workload,
    Zero,
    normwise,
    product,
)
from prism_bench.spec import ONE_BY_ONE, AnyArray, ArrayModule, Device, Fill, Peer, real

from ..include.sequences.recurrent_grid import DERIVED, EDGES_OF_GRID, GRID_RULE, SCRATCH, GridCell
from ..include.sequences.resident_gates import (
    EDGES_OF_RESIDENT,
    LIMIT,
    MOST_INPUTS,
    UNITS,
    reachable,
    resident,
    shared_bytes,
    suits_resident,
    tile_rule,
)

# Samples and units of the tiles, and the share of the FMA rate that each keeps busy.
TILES = {"Broad": (128, 64, 1.0), "Slim": (16, 32, 0.3)}
FULL = "FullBroad"  # Broad for sizes that have no ragged tile
FULL_BYTES = 3 * 16 * (132 + 196) * 4

# As PyTorch begins: the gates then work between their limits.
WEIGHTS = Fill(
    lambda rng, count, axes: rng.uniform(-1, 1, count) / np.sqrt(max(axes["hidden"], 1)),
    "uniform(-1, 1) / sqrt(hidden)",
    real(),
    runs=ONE_BY_ONE,
)

FEW = ("x", "h", "w_ih", "w_hh", "b_ih", "b_hh", "h_next", "batch", "inputs", "hidden")
SEQUENCE = ("x", "h", "w_ih", "w_hh", "b_ih", "b_hh", "y", "steps", "batch", "inputs", "hidden")
GRID = ("by_x", "h", "w_hh", "b_hh", "y", "states", "counters", "steps", "batch", "hidden")
ON_GRID = GridCell("gru_grid", GRID, gates=3, bias="b_ih")


def tiles(name: str, batch: int, hidden: int) -> int:
    samples, units, _ = TILES["Broad" if name == FULL else name]
    return -(-batch // samples) * -(-hidden // units)


def is_full(batch: int, inputs: int, hidden: int, reset_after: int) -> bool:
    """Whether there are whole tiles alone, and the floats between gates are few enough for an int."""
    whole = batch % 128 == 0 and hidden % 64 == 0 and inputs % 16 == 0
    return bool(reset_after) and whole and hidden * max(inputs, hidden) < 2**31


def launch(
    batch: int, inputs: int, hidden: int, reset_after: int, tile: str, device: Device
) -> Launch | tuple[Launch | Zero, ...]:
    """Tiles, or a block per sample where all fit on the device and hold the weights."""
    few = bool(reset_after) and batch <= device.sm_count and suits_resident(3, batch, inputs, hidden, device)
    if tile == "Few" or (tile == "auto" and few):
        return Launch(batch, 512, shared_bytes(3, inputs, 4, 8, chunk=4), "gru_few", FEW)

    def time(name: str) -> float:
        samples, units, busy = TILES[name]
        return -(-tiles(name, batch, hidden) // device.sm_count) * samples * units / busy

    name = min(TILES, key=time) if tile == "auto" else tile
    fits = FULL_BYTES <= device.max_shared_bytes and is_full(batch, inputs, hidden, reset_after)
    name = FULL if tile == "auto" and name == "Broad" and fits else name
    entry, shared = f"gru_cell<{name}, {str(bool(reset_after)).lower()}>", FULL_BYTES if name == FULL else 0
    gates = Launch(tiles(name, batch, hidden), 256, shared, entry)
    return gates if reset_after else (gates, candidate(batch, hidden, tile))


def launch_sequence(
    steps: int, batch: int, inputs: int, hidden: int, tile: str, device: Device
) -> Launch | tuple[Launch | Zero, ...]:
    """A block per sample where it holds the weights, a grid that does, or else one of small tiles that reads them."""
    if tile == "Resident" or (tile == "auto" and suits_resident(3, batch, inputs, hidden, device)):
        return resident("gru_resident", SEQUENCE, 3, batch, inputs)
    if ON_GRID.suits(batch, inputs, hidden, tile, device):
        return ON_GRID.launches(steps, batch, hidden, device)
    grid = min(tiles("Slim", batch, hidden), device.sm_count)
    return Launch(grid, 256, entry="gru_sequence<Strip>", arguments=SEQUENCE, cooperative=True)


def candidate(batch: int, hidden: int, tile: str) -> Launch:
    """The second product of the form of 2014, on tiles of gemm_tile.cuh."""
    large = tile == "Broad" or (tile == "auto" and batch * hidden >= 1 << 20)
    name, rows, cols = ("Large", 128, 256) if large else ("Small", 16, 32)
    grid = -(-batch // rows) * -(-hidden // cols)
    names = ("h", "w_hh", "work", "h_next", "batch", "hidden")
    return Launch(grid, 256, entry=f"gru_candidate<{name}>", arguments=names)


def gates_of(rows: AnyArray, hidden: int) -> tuple[AnyArray, AnyArray, AnyArray]:
    return tuple(rows[:, k * hidden : (k + 1) * hidden] for k in range(3))


def reference(
    x: AnyArray,
    h: AnyArray,
    w_ih: AnyArray,
    w_hh: AnyArray,
    b_ih: AnyArray,
    b_hh: AnyArray,
    hidden: int,
    reset_after: int,
    xp: ArrayModule,
    special: ModuleType,
) -> AnyArray:
    r_x, z_x, n_x = gates_of(x @ w_ih.T + b_ih, hidden)
    r_h, z_h, n_h = gates_of(h @ w_hh.T + b_hh, hidden)
    r, z = special.expit(r_x + r_h), special.expit(z_x + z_h)
    n_h = r * n_h if reset_after else (r * h) @ w_hh[2 * hidden :].T + b_hh[2 * hidden :]
    return (1 - z) * xp.tanh(n_x + n_h) + z * h


def spread(
    x: AnyArray,
    h: AnyArray,
    w_ih: AnyArray,
    w_hh: AnyArray,
    b_ih: AnyArray,
    b_hh: AnyArray,
    hidden: int,
    reset_after: int,
    xp: ArrayModule,
) -> AnyArray:
    """How far h' moves with its gate sums (logistic' <= 1/4, tanh' <= 1), and the terms of h' itself.

    An infinite sum is not rounded.
    """
    x, h, w_ih, w_hh, b_ih, b_hh = (xp.abs(one) for one in (x, h, w_ih, w_hh, b_ih, b_hh))
    r_x, z_x, n_x = gates_of(x @ w_ih.T + b_ih, hidden)
    r_h, z_h, n_h = gates_of(h @ w_hh.T + b_hh, hidden)
    reset = (r_x + r_h) / 4
    through = reset * n_h if reset_after else (reset * h) @ w_hh[2 * hidden :].T
    gates = xp.nan_to_num(xp.stack([(z_x + z_h) / 4 * (h + 1), n_x, n_h, through, h + 1]), nan=0.0, posinf=0.0)
    return gates.sum(axis=0)


def torch_cell(
    torch: ModuleType, x: AnyArray, h: AnyArray, w_ih: AnyArray, w_hh: AnyArray, b_ih: AnyArray, b_hh: AnyArray
) -> Any:
    return torch.gru_cell(x, h, w_ih, w_hh, b_ih, b_hh)


def sequence_reference(
    x: AnyArray,
    h: AnyArray,
    w_ih: AnyArray,
    w_hh: AnyArray,
    b_ih: AnyArray,
    b_hh: AnyArray,
    hidden: int,
    reset_after: int,
    xp: ArrayModule,
    special: ModuleType,
) -> AnyArray:
    """h of every step."""
    y = xp.zeros((len(x), *h.shape))
    for step, signal in enumerate(x):
        y[step] = h = reference(signal, h, w_ih, w_hh, b_ih, b_hh, hidden, reset_after, xp, special)
    return y


def state_terms(
    x: AnyArray,
    h: AnyArray,
    w_ih: AnyArray,
    w_hh: AnyArray,
    b_ih: AnyArray,
    b_hh: AnyArray,
    inputs: int,
    xp: ArrayModule,
) -> AnyArray:
    """A state is a mean of the one before it and of a number up to 1, or anything between where a gate is lost."""
    state = xp.abs(h) + 1
    sums = xp.abs(x) @ xp.abs(w_ih).T + state @ xp.abs(w_hh).T + xp.abs(b_ih) + xp.abs(b_hh)
    return reachable(state, sums, 3, inputs, xp)


def torch_sequence(
    torch: ModuleType, x: AnyArray, h: AnyArray, w_ih: AnyArray, w_hh: AnyArray, b_ih: AnyArray, b_hh: AnyArray
) -> Any:
    """cuDNN's, with the weights in the order that it wants."""
    module = torch.nn.GRU(w_ih.shape[1], w_hh.shape[1], device="cuda")
    for parameter, value in zip(module.parameters(), (w_ih, w_hh, b_ih, b_hh), strict=True):
        parameter.copy_(value)
    return lambda: module(x, h[None])[0]


def by_gate(r: int, z: int, n: int) -> Callable[..., Any]:
    return lambda hidden: np.repeat([r, z, n], hidden)


still = Workload(batch=3, inputs=2, hidden=5)
QUIET = {"x": 0.0, "h": 1.0, "w_ih": 0.0, "w_hh": 0.0, "b_ih": 0.0}

EDGES = (
    Workload(batch=64, inputs=64, hidden=128),
    *(Workload(batch=b, inputs=i, hidden=h) for b, i, h in ((1, 1, 1), (0, 3, 4), (5, 0, 7), (17, 33, 45))),
    *(Workload(batch=130, inputs=i, hidden=h, tile="Broad") for i, h in ((9, 65), (24, 64), (40, 64), (5, 31))),
)
WEIGHED = (
    In("w_ih", "gates inputs", fill=WEIGHTS), In("w_hh", "gates hidden", fill=WEIGHTS),
    In("b_ih", "gates", fill=WEIGHTS), In("b_hh", "gates", fill=WEIGHTS),
)  # fmt: skip

spec = KernelSpec(
    entry="gru_cell",
    aliases=("gru_cell_forward",),
    arguments=(
        In("x", "batch inputs"), In("h", "batch hidden"), *WEIGHED,
        Out("h_next", "batch hidden"), Scratch("work", "3 work_rows hidden"), Size("batch"), Size("inputs"),
        Size("hidden"),
    ),
    parameters={"tile": "auto", "reset_after": 1},
    derived={
        "gates": lambda hidden: 3 * hidden,
        "work_rows": lambda batch, reset_after: 0 if reset_after else batch,
    },
    rules=(
        Rule("tile is auto, Broad, FullBroad, Slim or, with r after the product, for few units and inputs, Few",
             lambda tile, reset_after, inputs, hidden: tile in ("auto", FULL, *TILES) or (
                 tile == "Few" and reset_after == 1 and inputs <= MOST_INPUTS and hidden <= UNITS)),
        Rule("sizes of whole tiles, and r after the product, for FullBroad",
             lambda batch, inputs, hidden, reset_after, tile: tile != FULL or is_full(
                 batch, inputs, hidden, reset_after)),
        Rule("reset_after is 0 or 1", lambda reset_after: reset_after in (0, 1)),
    ),
    launch=launch,
    reference=reference,
    tolerance=product(magnitude=spread, depth=lambda inputs, hidden: inputs + hidden + 16),
    peers={"torch": torch_cell},
    flops=lambda batch, inputs, hidden: 6 * batch * hidden * (inputs + hidden) + 9 * batch * hidden,
    workloads={
        "S0": Workload(batch=32, inputs=64, hidden=128),
        "S1": Workload(batch=1024, inputs=1024, hidden=1024),
        "S2": Workload(batch=4096, inputs=2048, hidden=2048),
    },
    edges=(
        *EDGES,
        *(Workload(batch=b, inputs=i, hidden=h, tile="Few") for b, i, h in ((3, 256, 128), (17, 33, 45), (2, 0, 7))),
        *(
            Workload(batch=b, inputs=i, hidden=h, tile=FULL)
            for b, i, h in ((128, 0, 64), (128, 16, 64), (256, 80, 128))
        ),
    ),
    golden=(
        Golden(still, {**QUIET, "b_hh": by_gate(-100, 0, 5)}, {"h_next": 0.5}, "calculated: r = 0 stops b_hn, z = 1/2"),
        Golden(still, {**QUIET, "b_hh": by_gate(0, 100, 5)}, {"h_next": 1.0}, "calculated: z = 1 keeps h"),
        Golden(still, {**QUIET, "b_hh": by_gate(100, -100, 1)}, {"h_next": np.tanh(1)}, "calculated: r = 1, z = 0"),
    ),
    variants={
        "sequence": Variant(
            "many steps in few launches, the state kept on the device",
            entry="gru_sequence",
            arguments=(
                In("x", "steps batch inputs"), In("h", "batch hidden"), *WEIGHED, Out("y", "steps batch hidden"),
                *SCRATCH, Size("steps"), Size("batch"), Size("inputs"), Size("hidden"),
            ),
            parameters={"reset_after": 1, "tile": "auto"},
            derived={"gates": lambda hidden: 3 * hidden, **DERIVED},
            rules=(
                tile_rule("Strip", "Grid"),
                GRID_RULE,
                Rule("steps >= 1", lambda steps: steps >= 1),
                Rule("reset_after is 1", lambda reset_after: reset_after == 1),
            ),
            launch=launch_sequence,
            reference=sequence_reference,
            tolerance=normwise(LIMIT, state_terms, lambda inputs, hidden: inputs + hidden),
            peers={"torch": Peer(torch_sequence, prepares=True)},
            flops=lambda steps, batch, inputs, hidden: steps * batch * hidden * (6 * (inputs + hidden) + 9),
            bytes_moved=lambda steps, batch, inputs, hidden: 4
            * (batch * (steps * inputs + 2 * steps * hidden) + 3 * hidden * (inputs + hidden + 2)),  # h is read again
            workloads={
                "S0": Workload(steps=16, batch=32, inputs=64, hidden=128),
                "S1": Workload(steps=512, batch=64, inputs=1024, hidden=1024),
            },
            edges=(
                *(
                    Workload(steps=t, batch=b, inputs=i, hidden=h, tile=tile)
                    for tile in ("Resident", "Strip")
                    for t, b, i, h in ((1, 1, 1, 1), (3, 0, 3, 4), (2, 5, 0, 7), (3, 17, 33, 45), (4, 50, 40, 70))
                ),
                *(Workload(steps=t, batch=2, inputs=i, hidden=h, tile="Resident") for t, i, h in EDGES_OF_RESIDENT),
                *(Workload(steps=t, batch=b, inputs=i, hidden=h, tile="Grid") for t, b, i, h in EDGES_OF_GRID),
                Workload(steps=2, batch=3, inputs=257, hidden=129),
            ),
            golden=(),
            traffic_factor=None,
            budgets=(),
        ),
        "reset_before": Variant(
            "the form of 2014: r is applied to h before the product",
            parameters={"tile": "auto", "reset_after": 0},
            edges=EDGES,
            bytes_moved=lambda batch, inputs, hidden: 4
            * (batch * (inputs + 3 * hidden) + 3 * hidden * (inputs + hidden + 2)),  # h is read by both launches
            golden=(Golden(still, {**QUIET, "b_hh": by_gate(0, -100, 1)}, {"h_next": np.tanh(1)}, "z = 0"),),
        ),
    },
    budgets=(Budget("peer_ratio", at_least=0.85, label="S1"), Budget("peer_ratio", at_least=0.85, label="S2")),
)  # fmt: skip
