"""Infrared images: smoothed, then at once the entropy of windows, the components above a threshold, and segments.

Hot spots are planted in every frame; each must come out as one component without holes, and nothing else may.
"""

from collections.abc import Mapping

import numpy as np

from prism_bench.extensions.pipelines.pipeline import Pipeline, Stage
from prism_bench.extensions.pipelines.scene import centres, heated
from prism_bench.spec.workload import Workload

TAPS, WINDOW = 5, 8
BACKGROUND, NOISE, HEAT, RADIUS = 100.0, 8.0, 600.0, 5
THRESHOLD = 250.0
CELL = 4 * RADIUS + 2 * TAPS  # each spot has its own cell, so that no two meet


def places(rows: int, cols: int, spots: int) -> np.ndarray:
    """Return the centres of the spots."""
    return centres(rows, cols, spots, CELL)


def frame(rows: int, cols: int, spots: int, rng: np.random.Generator) -> np.ndarray:
    """Return noise on a background, with a disc of heat for each spot."""
    return heated(rng.normal(BACKGROUND, NOISE, (rows, cols)), places(rows, cols, spots), RADIUS, HEAT)


def check(results: Mapping[str, np.ndarray], axes: Mapping[str, int]) -> str | None:
    """Return a complaint unless every spot, and nothing else, is a separate component and hot."""
    labels, betti = results["topology.labels"], results["topology.betti"]
    planted = tuple(places(axes["rows"], axes["cols"], axes["spots"]).T)
    found = labels[planted]
    if [axes["spots"], 0] != betti[:2].tolist():
        return f"{betti[0]} components with {betti[1]} holes; {axes['spots']} spots were planted"
    if not (found > 0).all() or len(set(found.tolist())) != axes["spots"]:
        return "a planted spot is no separate component"
    hot = results["segments.labels"][planted]
    return None if (hot == 1).all() else "a planted spot is not segmented as hot"


IMAGE = Pipeline(
    name="image",
    meaning="convolution, then entropy, topology and segmentation side by side, with planted hot spots",
    stages=(
        Stage(
            "smooth", "conv2d", lambda rows, cols: Workload(rows=rows, cols=cols, k=TAPS, padding=TAPS // 2),
            values={"x": frame, "taps": np.full((TAPS, TAPS), 1 / TAPS**2)},
        ),
        Stage(
            "topology", "pixel_tda:sizes", lambda rows, cols: Workload(rows=rows, cols=cols, threshold=THRESHOLD),
            feeds={"x": "smooth.y"},
        ),
        Stage(
            "entropy", "pixel_entropy",
            lambda rows, cols: Workload(rows=rows, cols=cols, window=WINDOW, lo=0.0, hi=1024.0),
            feeds={"x": "smooth.y"},
        ),
        Stage(
            "segments", "image_segmentation",
            lambda rows, cols: Workload(rows=rows, cols=cols, threshold=THRESHOLD),
            feeds={"x": "smooth.y"},
        ),
    ),
    frame=("smooth.x",),
    results=("topology.labels", "topology.sizes", "topology.betti", "entropy.entropy", "segments.labels"),
    workloads={
        "small": Workload(rows=70, cols=100, spots=3),
        "S0": Workload(rows=512, cols=512, spots=24),
    },
    check=check,
)  # fmt: skip
