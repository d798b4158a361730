"""What another entropy window does to the result, on a seeded scene and in float64."""

from collections.abc import Mapping

import numpy as np

from prism_bench.extensions.pipelines.scene import centres, heated
from prism_bench.spec.case import Case
from prism_bench.workflows.tuning.measured import Window

USUAL = 16  # the window that others are compared with
SPOTS, RADIUS, HEAT = 6, 6, 0.25
CUTS = (1.0, 2.0, 3.0)  # bits: where segmentation by entropy cuts around a threshold of 2


def scene(rows: int, cols: int) -> np.ndarray:
    """Return an image in [0, 1): a ramp, noise that grows downwards, and hot spots; float32 [rows, cols]."""
    rng = np.random.default_rng(0)
    down, across = np.mgrid[0:rows, 0:cols] / max(rows, cols)
    image = 0.2 + 0.3 * across + 0.2 * down * rng.random((rows, cols))
    return heated(image, centres(rows, cols, SPOTS, 3 * RADIUS), RADIUS, HEAT).astype("float32")


def entropies(case: Case) -> np.ndarray:
    """Return the entropies of the scene, in bits, by the reference of a case whose input is the image `x`."""
    return case.correctness.expected({"x": scene(*case.sizes.shape("x"))}, np, None)["entropy"]


def window_row(window: int, seconds: float, by_window: Mapping[int, np.ndarray]) -> Window:
    """Return what the window does to the entropies, which `by_window` has for every one and for `USUAL`."""
    own, usual = by_window[window], by_window[USUAL]
    moved = np.digitize(own, CUTS) != np.digitize(usual, CUTS)
    difference = float(np.abs(own - usual).mean())
    rows, cols = own.shape
    return Window(rows, cols, window, seconds, float(own.mean()), difference, float(moved.mean()))
