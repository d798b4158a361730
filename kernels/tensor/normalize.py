"""y = x / sum(x) (probabilities) or, with `norm="l2"`, x / sqrt(sum(x^2)), row by row; one row is a vector.

`zero="ieee"` divides whatever the norm is (0 gives NaN or inf), `zero="keep"` leaves a row as it is unless its norm is
positive and finite. Norms are summed in double precision: none overflows.
"""

from types import ModuleType
from typing import Any

import numpy as np

from prism_bench import (
    Budget,
    Golden,
    In,
    InOut,
    KernelSpec,
    Launch,
    Out,
    Rule,
    Scratch,
    Size,
    Variant,
    Workload,
    Zero,
    normalising,
    uniform,
)
from prism_bench.spec import AnyArray, ArrayModule, Device, Peer, real

from ..peers.poor_ways import ONE_BLOCK

# Bound by memory: 8 bytes an element for rows up to 8192 columns, which stay in registers; a longer one is read twice,
# 12 bytes an element, less what of its end is still in the L2 cache.
LONGEST_ROW = 8192
MOST_BLOCKS = 8192


def row_launch(form: str, rows: int, cols: int, l2: str) -> Launch:
    """Up to 8 items a thread where 512 threads are enough."""
    block = next(b for b in (32, 64, 128, 256, 512) if 8 * b >= cols or b == 512)
    items = next(i for i in (4, 8, 16) if i * block >= cols)
    return Launch(rows, block, entry=f"{form}<{items}, {4 if cols % 4 == 0 else 1}, {l2}>")


def launch(
    rows: int, cols: int, shares: int, parts: int, norm: str, device: Device
) -> Launch | tuple[Launch | Zero, ...]:
    """Rows in registers, or two steps: the norms, then the division."""
    l2 = str(norm == "l2").lower()
    if cols <= LONGEST_ROW:
        step = row_launch("normalize", rows, cols, l2)
        return Launch(step.grid, step.block, entry=step.entry, arguments=("x", "y", "cols", "keep"))
    width = 4 if cols % 4 == 0 or rows == 1 else 1
    shares = min(shares, max(1, 4 * device.sm_count // max(1, rows)))
    find = ("x", "by_block", "arrived", "factors", "cols", "keep")
    return (
        Launch((rows, shares), 512, entry=f"find_factors<{l2}>", arguments=find),
        Launch(rows * parts, 256, entry=f"apply_factors<{width}>", arguments=("x", "factors", "y", "cols", "parts"),
               overlaps=True),
    )  # fmt: skip


def reference(x: AnyArray, norm: str, zero: str, xp: ArrayModule) -> AnyArray:
    size = x.sum(axis=1, keepdims=True) if norm == "sum" else xp.sqrt((x**2).sum(axis=1, keepdims=True))
    if zero == "keep":
        size = xp.where((size > 0) & xp.isfinite(size), size, 1.0)
    return x / size


def torch_normalize(torch: ModuleType, x: AnyArray, norm: str) -> Any:
    if norm == "l2":
        return torch.nn.functional.normalize(x, dim=1)
    return x / x.sum(dim=1, keepdim=True)


def cupy_normalize(cupy: ModuleType, x: AnyArray, norm: str) -> Any:
    return x / (x.sum(axis=1, keepdims=True) if norm == "sum" else cupy.linalg.norm(x, axis=1, keepdims=True))


NAN, INF = np.nan, np.inf
BAD, WORSE = [[1, -1, 0], [0, 0, 0], [-1, -2, -1]], [[1, INF, 2], [INF, -INF, 1], [1, NAN, 2]]
AWKWARD = [*BAD, [3e38, 3e38, 3e38], [1e-44, 3e-44, 0], *WORSE]
SHARES = [[1 / 3] * 3, [7 / 28, 21 / 28, 0]]  # 1e-44 and 3e-44 are 7 and 21 of the smallest floats
awkward = Golden(
    Workload(rows=8, cols=3),
    inputs={"x": AWKWARD},
    expected={"y": [[INF, -INF, NAN], [NAN] * 3, [0.25, 0.5, 0.25], *SHARES, [0, NAN, 0], [NAN] * 3, [NAN] * 3]},
    source="calculated: sums that are zero, negative, beyond the range of float, subnormal, infinite or NaN",
)
kept = Golden(
    Workload(rows=8, cols=3, zero="keep"),
    inputs={"x": AWKWARD},
    expected={"y": [*BAD, *SHARES, *WORSE]},
    source="calculated: rows without a positive finite sum stay",
)


def huge_and_cancelling(cols: int) -> AnyArray:
    return np.stack((np.where(np.arange(cols) % 2, 3e38, 1.5e38), np.resize([1.0, -1, 0], cols)))


long_ones = [
    Golden(
        Workload(rows=2, cols=9001, zero=zero),
        inputs={"x": huge_and_cancelling},
        expected={},
        source="a row whose sum is beyond the range of float next to one whose sum is 0 or 1, both shared by blocks",
    )
    for zero in ("ieee", "keep")
]
lengths = Golden(
    Workload(rows=3, cols=2, norm="l2"),
    inputs={"x": [[3, -4], [0, 0], [3e38, 4e37]]},
    expected={"y": [[0.6, -0.8], [NAN, NAN], [1 / np.hypot(1, 2 / 15), 1 / np.hypot(1, 7.5)]]},
    source="calculated; squares beyond the range of float",
)
buffers = (
    Scratch("by_block", "rows shares", dtype="float64"), Scratch("arrived", "rows", dtype="uint32"),
    Scratch("factors", "rows 2"),
)  # fmt: skip
X, Y = In("x", "rows cols", fill=uniform(0, 1), domain=real()), Out("y", "rows cols")
PARAMETERS = {"rows": 1, "norm": "sum", "zero": "ieee"}

spec = KernelSpec(
    entry="normalize<16, 4, false>",
    arguments=(X, Y, *buffers, Size("cols"), Size("keep"), Size("parts")),
    parameters=PARAMETERS,
    derived={
        "keep": lambda zero: int(zero == "keep"),
        "shares": lambda rows, cols: max(1, min(-(-cols // 8192), MOST_BLOCKS // max(1, rows))),
        "parts": lambda rows, cols: -(-cols // (1024 if cols % 4 == 0 or rows == 1 else 256)),
    },
    rules=(
        Rule("norm to be 'sum' or 'l2'", lambda norm: norm in ("sum", "l2")),
        Rule("zero to be 'ieee' or 'keep'", lambda zero: zero in ("ieee", "keep")),
    ),
    launch=launch,
    reference=reference,
    tolerance=normalising(),
    peers={"torch": torch_normalize, "cupy": Peer(cupy_normalize, poor=ONE_BLOCK)},
    flops=lambda rows, cols: 2 * rows * cols,
    bytes_moved=lambda rows, cols: (8 if cols <= LONGEST_ROW else 12) * rows * cols,
    workloads={"S0": Workload(cols=256), "S1": Workload(cols=64 << 20), "S2": Workload(rows=65_536, cols=4096)},
    edges=(
        *(Workload(rows=r, cols=c) for r, c in ((0, 5), (3, 0), (3, 1), (5, 2), (7, 257), (2, 1000), (1, 4099))),
        *(Workload(rows=r, cols=c) for r, c in ((1, 8192), (1, 8193), (2, 8196), (3, 8195), (1, 40_003))),
        *(Workload(rows=2, cols=c) for c in (256, 500)),
        *(Workload(rows=2, cols=c, norm="l2") for c in (100, 256, 500, 5000, 8200)),
    ),
    golden=(awkward, kept, *long_ones, lengths),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "l2": Variant(
            "by the length",
            parameters={**PARAMETERS, "norm": "l2"},
            peers={"torch": torch_normalize, "cupy": Peer(cupy_normalize, poor=ONE_BLOCK)},
            edges=(),
            golden=(),
        ),
        "in_place": Variant(
            "rows that fit in registers, in place",
            arguments=(InOut("x", "rows cols", fill=uniform(0, 1), domain=real()), Size("cols"), Size("keep")),
            launch=lambda rows, cols, norm: row_launch("normalize_in_place", rows, cols, str(norm == "l2").lower()),
            workloads={"S0": Workload(cols=256), "S2": Workload(rows=65_536, cols=4096)},
            edges=(
                *(Workload(rows=3, cols=c) for c in (77, 256, 500, 5000)), Workload(rows=2, cols=4000, norm="l2"),
            ),
            golden=(),
        ),
    },
)  # fmt: skip
