"""Entropy, in bits, of the grey levels in a window around every pixel; the window is clipped to the image.

Levels are floor(bins (x - lo) / (hi - lo)), clamped; a NaN has none and does not count. A window of side w covers the
offsets -floor(w/2) to w - 1 - floor(w/2). `normalised` divides by log2(bins).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from prism_bench import (
    Golden,
    In,
    KernelSpec,
    Out,
    Rule,
    Scalar,
    Scratch,
    Size,
    Variant,
    Workload,
    absolute,
    integers,
    uniform,
)
from prism_bench.spec import AnyArray, Fill, real

from ..include.images.window_entropy import entropies, launch_naive, slide

# Latency-bound by its few warps, whose counters fill an SM's shared memory: 57 shared-memory words a pixel, 2 w table
# reads, w + 3 counter accesses (4 neighbouring windows in a word, else 4 w), 6 for codes and the result.


def launch_of(pixel: str) -> Callable[..., Any]:
    return lambda rows, cols, window, pitch, device: slide(rows, cols, window, pitch, pixel, device)


def square(rows: int, cols: int) -> Any:
    """The guide's image: 5000 in rows and columns 200 to 299, 100 elsewhere."""
    image = np.full((rows, cols), 100.0)
    image[200:300, 200:300] = 5000
    return image


def patchy(rows: int, cols: int) -> AnyArray:
    """A ramp with flat, noisy, infinite and NaN patches; some windows hold no number at all."""
    image = np.tile(np.linspace(-0.2, 1.2, cols), (rows, 1))
    image[: rows // 2, : cols // 3] = 0.5
    image[rows // 2 :, cols // 2 :] = np.random.default_rng(3).uniform(size=image[rows // 2 :, cols // 2 :].shape)
    image[-24:, :24] = np.nan
    image[5, ::3], image[7, 0], image[8, 1] = np.nan, np.inf, -np.inf
    return image


def on_the_cuts(rows: int, cols: int) -> AnyArray:
    """Multiples of 1/256 and their float32 neighbours: a level lost to rounding shows."""
    cut = np.float32(np.random.default_rng(4).integers(0, 257, (rows, cols))) / np.float32(256)
    return np.where(np.arange(cols) % 2, np.nextafter(cut, np.float32(-1)), cut)


GUIDE = "0 inside either region, up to 1 bit on its border; the profiling guide's image"
guide = Workload(rows=512, cols=512, window=16)


def arguments(fill: Fill, dtype: str = "float32") -> tuple[Any, ...]:
    return (
        In("x", "rows cols", dtype=dtype, fill=fill, domain=real() if dtype == "float32" else None),
        Scratch("codes", "padded_rows pitch", dtype="uint16"),
        Scratch("table", "counts", dtype="uint32"), Out("entropy", "rows cols"), Scalar("lo"), Scalar("hi"),
        Size("bins"), Size("window"), Scalar("unit"), Size("rows"), Size("cols"), Size("pitch"),
    )  # fmt: skip


def of_integers(dtype: str, pixel: str, levels: int) -> Variant:
    return Variant(
        f"of {dtype} pixels",
        arguments=arguments(integers(0, levels), dtype),
        parameters={"bins": 256, "lo": 0.0, "hi": float(levels), "normalised": False},
        launch=launch_of(pixel),
        only_labels=("S0", "S1"),
        edges=tuple(Workload(rows=21, cols=70, window=w) for w in (1, 5, 16, 33, 65)),
        golden=(
            Golden(
                Workload(rows=40, cols=64, window=16), {"x": lambda cols: np.tile(np.arange(cols) % 2, (40, 1))}, {},
                source="two levels",
            ),
        ),
    )  # fmt: skip


def of_the_guide(windows: tuple[int, ...]) -> tuple[Golden, ...]:
    of_its_levels = (Workload(rows=512, cols=512, window=w, lo=100, hi=5000) for w in windows)
    return tuple(Golden(workload, {"x": square}, {}, source=GUIDE) for workload in of_its_levels)


SMALL = (
    *(
        Golden(Workload(rows=40, cols=70, window=w), {"x": 0.3}, {"entropy": 0.0}, source="a constant image")
        for w in (16, 32, 70)
    ),
    *(
        Golden(Workload(rows=70, cols=99, window=w), {"x": patchy}, {}, source="structure, NaN, infinities")
        for w in (5, 16, 20)
    ),
    Golden(Workload(rows=40, cols=64, window=16), {"x": on_the_cuts}, {}, source="pixels on the borders of levels"),
)
SATURATED = Golden(guide, {"x": square}, {"entropy": 0.0}, source="levels of [0, 1] saturate: every window is constant")

spec = KernelSpec(
    entry="pixel_entropy<16>",
    arguments=arguments(uniform(0, 1)),  # the worst case: every pixel changes the histogram
    parameters={"bins": 256, "lo": 0.0, "hi": 1.0, "normalised": False},
    derived={
        "padded_rows": lambda rows, window: rows + window - 1,
        "pitch": lambda cols, window: (cols + window + 9) // 4 * 4,
        "counts": lambda window: window**2 + 1,
        "unit": lambda bins, normalised: 1 / np.log2(bins) if normalised else 1.0,
    },
    rules=(
        Rule("2 <= bins <= 256", lambda bins: 2 <= bins <= 256),
        Rule("window >= 1", lambda window: window >= 1),
        Rule("lo < hi, a finite distance apart", lambda lo, hi: 0 < np.float32(hi) - np.float32(lo) < np.inf),
    ),
    launch=launch_of("float"),
    reference=entropies,
    tolerance=absolute(1e-5),
    looked_at={
        "cucim": "its rank filter `entropy` reflects the image at borders, which clip windows; it waits for the device",
    },
    flops=lambda rows, cols, window, bins: 2 * rows * cols * min(bins, window**2),
    workloads={
        "S0": guide,
        "S1": Workload(rows=4096, cols=4096, window=16),
        "S2": Workload(rows=8192, cols=8192, window=32),
    },
    edges=(
        *(Workload(rows=r, cols=c, window=16) for r, c in ((0, 3), (1, 1), (1, 300), (300, 1), (7, 5), (40, 131))),
        *(Workload(rows=21, cols=70, window=w) for w in (1, 2, 3, 4, 5, 8, 15, 17, 32, 33, 64, 65)),
        *(Workload(rows=20, cols=20, window=w) for w in (7, 48, 90)),  # also larger than the image
        *(Workload(rows=30, cols=30, window=9, bins=b, normalised=n) for b, n in ((2, False), (7, True), (256, True))),
        Workload(rows=30, cols=64, window=16, lo=-0.1, hi=0.7),
        Workload(rows=30, cols=64, window=16, lo=0.1, hi=0.1001, bins=100),
    ),
    golden=(*of_the_guide((16, 8, 32)), SATURATED, *SMALL),
    traffic_factor=12,  # every code enters and leaves w windows of its row
    variants={
        "bytes": of_integers("uint8", "unsigned char", 256),
        "words": of_integers("uint16", "unsigned short", 65_536),
        "naive": Variant(
            "one thread per pixel, every histogram counted afresh",
            launch=lambda rows, cols: launch_naive(rows, cols),
            only_labels=("S0", "S1"),
            golden=(*of_the_guide((8,)), *SMALL),  # on the CPU the larger windows take it half a minute
            traffic_factor=None,
        ),
    },
)  # fmt: skip
