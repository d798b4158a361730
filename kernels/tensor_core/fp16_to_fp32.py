"""y = x widened from half precision, exactly: subnormals are normalised, zeros keep their sign, every NaN is quiet."""

from collections.abc import Callable
from typing import Any

import numpy as np

from prism_bench import Budget, Golden, In, InOut, KernelSpec, Out, Size, Variant, Workload, exact, integers
from prism_bench.spec import AnyArray, ArrayModule

from ..include.arrays.vector_load import map_tune, spread

# Bound by memory: 6 bytes an element at the copy rate, three instructions.


def launch_of(entry: str) -> Callable[..., Any]:
    """128 threads a block, four elements per thread."""
    return lambda n, block, groups: spread(n, block, groups, entry)


def reference_views(x: AnyArray, y: AnyArray, n: int, start: int, to: int, xp: ArrayModule) -> AnyArray:
    """Bits from bits, 0x7fffffff for any NaN; what is before and behind the view of y stays."""
    wide = x[start : start + n].view("float16").astype("float32")
    made = xp.where(xp.isnan(wide), 0x7FFFFFFF, wide.view("uint32"))
    return xp.concatenate((y[:to], made.astype("uint32"), y[to + n :]))


def all_patterns(n: int) -> AnyArray:
    return np.arange(n, dtype=np.uint16).view(np.float16)


spec = KernelSpec(
    entry="fp16_to_fp32",
    arguments=(In("x", "n", dtype="float16"), Out("y", "n"), Size("n", "int64")),
    launch=launch_of("fp16_to_fp32"),
    tune=map_tune(128),
    reference=lambda x: x,
    tolerance=exact(),
    peers={"torch": lambda torch, x: x.float(), "cupy": lambda cupy, x: x.astype("float32")},
    flops=lambda n: n,
    workloads={"S0": Workload(n=256 * 256), "S1": Workload(n=1 << 28), "S2": Workload(n=1 << 30)},
    edges=tuple(Workload(n=n) for n in (0, 1, 7, 8, 9, 2047, 2049, 4099)),
    golden=(Golden(Workload(n=1 << 16), {"x": all_patterns}, {}, source="all 65,536 patterns"),),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "views": Variant(
            "compared bit by bit; arrays that begin inside others, off their 16-byte boundaries",
            arguments=(
                In("x", "padded", dtype="uint16", fill=integers(0, 1 << 16)),
                InOut("y", "padded", dtype="uint32", fill=integers(0, 99)), Size("start"), Size("to"),
                Size("n", "int64"),
            ),
            derived={"padded": lambda n: n + 8},
            launch=launch_of("fp16_to_fp32_views"),
            reference=reference_views,
            bytes_moved=lambda n: 6 * n,
            workloads={"S0": Workload(n=10_000, start=8, to=4)},
            edges=tuple(Workload(n=n, start=s, to=t) for n in (5, 1001) for s, t in ((0, 0), (1, 1), (7, 3), (2, 1))),
            golden=(
                Golden(
                    Workload(n=8, start=0, to=0),
                    {"x": [0x8000, 0, 1, 0x8001, 0x7D00, 0xFE00, 0xFC00, 0x7BFF] + [0] * 8, "y": 7},
                    {"y": [1 << 31, 0, 0x33800000, 0xB3800000, *[0x7FFFFFFF] * 2, 0xFF800000, 0x477FE000] + [7] * 8},
                    source="IEEE 754: -0, 0, +-2^-24, a signalling and a quiet NaN, -inf, 65504",
                ),
            ),
            budgets=(),
        ),
    },
)  # fmt: skip
