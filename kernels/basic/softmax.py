"""Softmax of every row of x / temperature, held in registers between one read and one write.

A row longer than 8192 columns is shared by several blocks, which merge their maxima and sums: at 131,072 columns a row
is 512 KB, more than an SM holds, and reading twice would cost 12 bytes an element instead of 8. Memory-bound; five
blocks an SM and plain accesses are faster than four and streamed ones.
"""

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
    Scalar,
    Scratch,
    Size,
    Tune,
    Variant,
    Workload,
    Zero,
    normalising,
)
from prism_bench.spec import AnyArray, ArrayModule, Device, Peer

from ..peers.strong_peers import liger_softmax, quack_softmax

LONGEST_PART = 8192
BLOCKS = (32, 64, 128, 256)


def fewest_threads(cols: int) -> int:
    """A vector each where that is enough."""
    return next(b for b in BLOCKS if 4 * b >= cols or b == BLOCKS[-1])


def launch(
    rows: int, cols: int, parts: int, device: Device, part: int, block: int
) -> Launch | tuple[Launch | Zero, ...]:
    """The fewest registers that hold a part; rows too long for the device's blocks are read twice."""
    if parts > device.sm_count:
        return two_reads(rows)
    items = next(i for i in (4, 8, 16, 32) if i * block >= min(cols, part))
    width = 4 if cols % 4 == 0 else 1
    step = Launch(grid=rows * parts, block=block, entry=f"softmax<{items}, {width}>")
    return (Zero("states"), step) if parts > 1 else step


def two_reads(rows: int) -> Launch:
    """One block per row."""
    return Launch(rows, 1024, entry="softmax_two_reads", arguments=("x", "y", "cols", "temperature"))


def reference(x: AnyArray, temperature: float, xp: ArrayModule) -> AnyArray:
    """Shift by the row's maximum, so that exp cannot overflow."""
    weights = xp.exp((x - x.max(axis=1, keepdims=True)) / temperature)
    return weights / weights.sum(axis=1, keepdims=True)


def torch_softmax(torch: ModuleType, x: AnyArray, temperature: float) -> Any:
    return torch.softmax(x if temperature == 1 else x / temperature, dim=1)


spec = KernelSpec(
    entry="softmax<32, 4>",
    arguments=(
        In("x", "rows cols"),
        Out("y", "rows cols"),
        Scratch("states", "rows parts", dtype="uint64"),
        Size("cols"),
        Size("size"),
        Size("parts"),
        Scalar("temperature"),
    ),
    parameters={"temperature": 1.0},
    derived={
        "parts": lambda cols, part: max(1, -(-cols // part)),
        "size": lambda cols, parts: -(-cols // (4 * parts)) * 4,
    },
    rules=(Rule("temperature > 0", lambda temperature: temperature > 0),),
    launch=launch,
    tune=Tune(
        part=(LONGEST_PART, LONGEST_PART // 2, LONGEST_PART // 4),
        block=BLOCKS,
        default={"block": fewest_threads},
        rules=(Rule("a part in 32 items a thread", lambda cols, part, block: 32 * block >= min(cols, part)),),
    ),
    reference=reference,
    tolerance=normalising(),
    peers={
        "torch": torch_softmax,
        "quack": Peer(quack_softmax, prepares=True),
        "liger": Peer(liger_softmax, prepares=True),
    },
    looked_at={"flashinfer": "not tried: its softmax is part of a module that takes minutes to compile"},
    flops=lambda rows, cols: 4 * rows * cols,
    aliases=("la_softmax",),
    workloads={
        "S0": Workload(rows=32, cols=1000),
        "S1": Workload(rows=8192, cols=32_768),
        "S2": Workload(rows=4096, cols=131_072),
    },
    edges=(
        Workload(rows=0, cols=5),
        Workload(rows=3, cols=1),
        Workload(rows=5, cols=2),
        Workload(rows=7, cols=257),
        Workload(rows=3, cols=2048, temperature=0.1),
        Workload(rows=2, cols=3000),
        Workload(rows=2, cols=4099, temperature=4.0),
        Workload(rows=3, cols=8196),
        Workload(rows=2, cols=24_577),
        Workload(rows=1, cols=5 * LONGEST_PART),
    ),
    golden=(
        Golden(
            Workload(rows=5, cols=4),
            inputs={
                "x": [
                    [-np.inf] * 4,
                    [0, -np.inf, 0, -np.inf],
                    [3e38, 3e38, -3e38, -3e38],
                    [1, np.nan, 2, 3],
                    [1, np.inf, 2, 3],
                ]
            },
            expected={"y": [[np.nan] * 4, [0.5, 0, 0.5, 0], [0.5, 0.5, 0, 0], [np.nan] * 4, [np.nan] * 4]},
            source="a row of -inf has no maximum to subtract: NaN, as in PyTorch; large values do not overflow",
        ),
        Golden(
            Workload(rows=1, cols=16_384),
            inputs={"x": lambda cols: np.where(np.arange(cols) < 10_000, -np.inf, 2.5)},
            expected={"y": lambda cols: np.where(np.arange(cols) < 10_000, 0.0, 1 / (cols - 10_000))[None]},
            source="calculated: a row whose first part is masked entirely",
        ),
        Golden(
            Workload(rows=1, cols=16_384),
            inputs={"x": -np.inf},
            expected={"y": np.nan},
            source="a row of -inf, shared by two blocks",
        ),
    ),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "two_reads": Variant(
            "one block per row of any length, which reads the row twice",
            entry="softmax_two_reads",
            arguments=(In("x", "rows cols"), Out("y", "rows cols"), Size("cols"), Scalar("temperature")),
            launch=two_reads,
            budgets=(),
        ),
    },
)
