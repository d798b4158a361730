"""y = x rounded to half precision: nearest even, gradual underflow, inf from 65520 on, NaN becomes a quiet NaN.

`saturate` clamps to +-65504 instead, infinities too.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from prism_bench import (
    Budget,
    Golden,
    In,
    InOut,
    KernelSpec,
    Out,
    Rule,
    Size,
    Variant,
    Workload,
    exact,
    integers,
    normal,
)
from prism_bench.spec import AnyArray, ArrayModule

from ..include.arrays.vector_load import map_tune, spread

# Bound by memory: 6 bytes an element at the copy rate, two instructions.


def launch_of(form: str) -> Callable[..., Any]:
    """256 threads a block, eight elements per thread: 16 bytes of halves."""
    return lambda n, saturate, block, groups: spread(
        n, block, groups, f"{form}<{'Saturate' if saturate else 'Identity'}>", each=8
    )


def reference(x: AnyArray, saturate: bool, xp: ArrayModule) -> AnyArray:
    return (xp.clip(x, -65504.0, 65504.0) if saturate else x).astype("float16")


def reference_views(
    x: AnyArray, bits: AnyArray, n: int, start: int, to: int, saturate: bool, xp: ArrayModule
) -> AnyArray:
    """The result's bits, 0x7fff for any NaN; what is before and behind the view of y stays."""
    y = reference(x[start : start + n], saturate, xp)
    made = xp.where(xp.isnan(y), 0x7FFF, y.view("uint16"))
    return xp.concatenate((bits[:to], made.astype("uint16"), bits[to + n :]))


def everywhere(n: int) -> AnyArray:
    """Bit patterns all over float32: every sign, exponent and leading digits, the others scrambled."""
    i = np.arange(n, dtype=np.uint32)
    return (i << 15 | i * np.uint32(2654435761) >> 17).view(np.float32)


def finite(n: int) -> AnyArray:
    """Halves, the points halfway between neighbours, and the floats on both sides of those."""
    half = np.arange(n // 4, dtype=np.uint16).view(np.float16).astype(np.float32)
    next_up = (np.arange(n // 4, dtype=np.uint16) + 1).astype(np.uint16).view(np.float16).astype(np.float32)
    middle = ((half.astype(float) + next_up) / 2).astype(np.float32)
    return np.stack((half, np.nextafter(middle, np.float32(-1)), middle, np.nextafter(middle, np.float32(1e9)))).ravel()


LARGE = [65504, 65519.996, 65520, -65520, 1e38, np.inf, -np.inf]
EDGE = [*LARGE, np.nan, -0.0, 2.0**-24, 2.0**-25, 2.0**-25 * 1.001, -6e-8]
BITS = [0x7BFF, 0x7BFF, 0x7C00, 0xFC00, 0x7C00, 0x7C00, 0xFC00, 0x7FFF, 0x8000, 1, 0, 1, 0x8001]
SATURATED = [0x7BFF, 0x7BFF, 0x7BFF, 0xFBFF, 0x7BFF, 0x7BFF, 0xFBFF, 0x7FFF, 0x8000, 1, 0, 1, 0x8001]
padded = {"x": [0, 0, 0, 0, *EDGE, 0, 0, 0, 0], "bits": 7}


def patterns(saturate: bool, bits: list[int]) -> Golden:
    """The values at the edges of the format, at no offset in x and y."""
    workload = Workload(n=13, saturate=saturate, start=4, to=4)
    return Golden(workload, padded, {"bits": [7] * 4 + bits + [7] * 4}, source="IEEE 754 binary16")


spec = KernelSpec(
    entry="fp32_to_fp16<Identity>",
    arguments=(In("x", "n"), Out("y", "n", dtype="float16"), Size("n", "int64")),
    parameters={"saturate": False},
    rules=(Rule("saturate to be true or false", lambda saturate: saturate in (True, False)),),
    launch=launch_of("fp32_to_fp16"),
    tune=map_tune(),
    reference=reference,
    tolerance=exact(),
    peers={
        "torch": lambda torch, x: x.half(),
        "cupy": lambda cupy, x: x.astype("float16"),
    },
    flops=lambda n: n,
    workloads={"S0": Workload(n=256 * 256), "S1": Workload(n=1 << 28), "S2": Workload(n=1 << 30)},
    edges=(
        *(Workload(n=n) for n in (0, 1, 7, 8, 9, 2047, 2049, 4099)),
        *(Workload(n=n, saturate=True) for n in (7, 1000)),
    ),
    golden=(
        Golden(Workload(n=1 << 17), {"x": everywhere}, {}, source="all exponents, subnormals and NaN among them"),
        Golden(Workload(n=1 << 17, saturate=True), {"x": everywhere}, {}, source="the same, saturated"),
        Golden(Workload(n=4 * 0x7BFF), {"x": finite}, {}, source="every positive half, every tie and its neighbours"),
    ),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "views": Variant(
            "compared bit by bit; arrays that begin inside others, off their 16-byte boundaries",
            arguments=(
                In("x", "padded", fill=normal(0, 1e4)),
                InOut("bits", "padded", dtype="uint16", fill=integers(0, 99)), Size("start"), Size("to"),
                Size("n", "int64"),
            ),
            derived={"padded": lambda n: n + 8},
            launch=launch_of("fp32_to_fp16_views"),
            reference=reference_views,
            bytes_moved=lambda n: 6 * n,
            workloads={"S0": Workload(n=10_000, start=4, to=8)},
            edges=tuple(Workload(n=n, start=s, to=t) for n in (5, 1001) for s, t in ((0, 0), (1, 1), (3, 7), (1, 2))),
            golden=(patterns(False, BITS), patterns(True, SATURATED)),
            budgets=(),
        ),
    },
)  # fmt: skip
