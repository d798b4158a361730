"""Every pipeline by name: images, time series, LSTM, dendrites, and short ones across families."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from prism_bench.errors import unknown
from prism_bench.extensions.pipelines.pipeline import Pipeline, Stage, together
from prism_bench.spec.workload import Workload

if TYPE_CHECKING:
    from numpy.typing import NDArray


# Short pipelines across families, whose kernels read each other's outputs. They test that kernels fit together.

_FORECAST_TO_SOFTMAX = Pipeline(
    "forecast_to_softmax", "time series, neuromorphic, tensor, basic: a reservoir reads a forecast",
    stages=(
        Stage("forecast", "ar_forecast", lambda inputs: Workload(series=1, length=32, lags=4, horizon=inputs)),
        Stage("reservoir", "reservoir_update", lambda neurons, inputs: Workload(neurons=neurons, inputs=inputs),
              feeds={"u": "forecast.forecast"}),
        Stage("readout", "gemv", lambda neurons, classes: Workload(rows=classes, cols=neurons),
              feeds={"x": "reservoir.x_next"}),
        Stage("choice", "softmax", lambda classes: Workload(rows=1, cols=classes), feeds={"x": "readout.y"}),
    ),
    frame=("forecast.history",), results=("choice.y",), carries={"reservoir.x": "reservoir.x_next"},
    workloads={"small": Workload(neurons=20, inputs=3, classes=5),
               "S0": Workload(neurons=1000, inputs=10, classes=100)},
)  # fmt: skip

_IMAGE_TO_INFORMATION = Pipeline(
    "image_to_information", "pixel, transfer entropy, information theory: how informative the edges of an image are",
    stages=(
        Stage("edges", "conv2d", lambda rows, cols: Workload(rows=rows, cols=cols, k=3)),
        Stage("joint", "histogram_2d",
              lambda rows, cols, bins: Workload(n=rows * cols, rows=bins, columns=bins, y_lo=-12.0, y_hi=12.0),
              feeds={"x": "edges.x", "y": "edges.y"}),
        Stage("entropy", "shannon_entropy_corrected", lambda bins: Workload(rows=bins, cols=bins),
              feeds={"counts": "joint.histogram"}),
    ),
    frame=("edges.x",), results=("joint.histogram", "entropy.entropy"),
    workloads={"small": Workload(rows=12, cols=20, bins=8), "S0": Workload(rows=256, cols=256, bins=64)},
)  # fmt: skip

_DENDRITES_TO_OSCILLATORS = Pipeline(
    "dendrites_to_oscillators",
    "dendritic, statistical mechanics: branches set the frequencies of oscillators",
    stages=(
        Stage("dendrites", "dendritic_integration", lambda n: Workload(neurons=n, dendrites=4, inputs=12)),
        Stage("oscillators", "kuramoto_evolution", lambda n: Workload(n=n), feeds={"omega": "dendrites.y"}),
        Stage("order", "order_parameter", lambda n: Workload(n=n), feeds={"theta": "oscillators.theta_next"}),
    ),
    frame=("dendrites.x",),
    results=("order.r", "order.psi"),
    carries={"oscillators.theta": "oscillators.theta_next"},
    workloads={"small": Workload(n=17), "S0": Workload(n=256)},
)

_LSTM_TO_TENSOR_CORES = Pipeline(
    "lstm_to_tensor_cores", "time series, tensor core, basic: a recurrent state through tensor cores to a choice",
    stages=(
        Stage("lstm", "lstm_cell", lambda batch, hidden: Workload(batch=batch, inputs=hidden, hidden=hidden)),
        Stage("half", "fp32_to_fp16", lambda batch, hidden: Workload(n=batch * hidden), feeds={"x": "lstm.h_next"}),
        Stage("head", "tensor_core_matmul", lambda batch, hidden, classes: Workload(m=batch, n=classes, k=hidden),
              feeds={"a": "half.y"}),
        Stage("choice", "softmax", lambda batch, classes: Workload(rows=batch, cols=classes), feeds={"x": "head.c"}),
    ),
    frame=("lstm.x",), results=("choice.y",), carries={"lstm.h": "lstm.h_next", "lstm.c": "lstm.c_next"},
    workloads={"small": Workload(batch=3, hidden=16, classes=8), "S0": Workload(batch=32, hidden=128, classes=256)},
)  # fmt: skip

_QUANTUM_TO_DIVERGENCE = Pipeline(
    "quantum_to_divergence",
    "quantum, active inference: how far a measurement is from what was believed",
    stages=(
        Stage("gate", "hadamard_gate", lambda qubits: Workload(qubits=qubits, qubit=qubits // 3)),
        Stage("measured", "quantum_measurement", lambda qubits: Workload(qubits=qubits), feeds={"psi": "gate.psi"}),
        Stage(
            "surprise", "kl_divergence", lambda qubits: Workload(rows=1, cols=1 << qubits), feeds={"q": "measured.p"}
        ),
    ),
    frame=("gate.psi",),
    results=("measured.p", "surprise.divergence"),
    workloads={"small": Workload(qubits=5), "S0": Workload(qubits=10)},
)

_TOKENS_TO_SAMPLING = Pipeline(
    "tokens_to_sampling", "transformer, fused, transformer: the next token of a batch of tokens",
    stages=(
        Stage("embedding", "embedding_lookup",
              lambda tokens, vocabulary, cols: Workload(tokens=tokens, vocabulary=vocabulary, cols=cols)),
        Stage("norm", "layer_norm", lambda tokens, cols: Workload(length=tokens, cols=cols),
              feeds={"x": "embedding.out"}),
        Stage("logits", "fused_linear_gelu",
              lambda tokens, vocabulary, cols: Workload(batch=tokens, inputs=cols, outputs=vocabulary),
              feeds={"x": "norm.y"}),
        Stage("token", "top_k_sampling",
              lambda tokens, vocabulary, k: Workload(rows=tokens, vocabulary=vocabulary, k=k),
              feeds={"logits": "logits.y"}),
    ),
    frame=("embedding.id",), results=("token.token",),
    workloads={"small": Workload(tokens=3, vocabulary=40, cols=16, k=4),
               "S0": Workload(tokens=32, vocabulary=1024, cols=128, k=50)},
)  # fmt: skip

_GRU_TO_FREE_ENERGY = Pipeline(
    "gru_to_free_energy", "time series, basic, active inference: the free energy of a recurrent belief",
    stages=(
        Stage("gru", "gru_cell", lambda batch, hidden: Workload(batch=batch, inputs=hidden, hidden=hidden)),
        Stage("belief", "softmax", lambda batch, hidden: Workload(rows=batch, cols=hidden), feeds={"x": "gru.h_next"}),
        Stage("energy", "free_energy", lambda batch, hidden: Workload(rows=batch, cols=hidden),
              feeds={"q": "belief.y"}),
    ),
    frame=("gru.x",), results=("energy.free_energy",), carries={"gru.h": "gru.h_next"},
    workloads={"small": Workload(batch=3, hidden=9), "S0": Workload(batch=32, hidden=128)},
)  # fmt: skip

_SERIES_TO_NEIGHBOURS = Pipeline(
    "series_to_neighbours", "transfer entropy, information theory, tensor: how densely an embedded series fills space",
    stages=(
        Stage("embedding", "time_delayed_embedding", lambda n, m: Workload(n=n, m=m)),
        Stage("distance", "knn_distances_chebyshev", lambda n, m: Workload(n=n - m + 1, d=m, k=4),
              feeds={"x": "embedding.embedded"}),
        Stage("density", "digamma", lambda n, m: Workload(n=n - m + 1), feeds={"x": "distance.eps"}),
        Stage("total", "reduce_sum", lambda n, m: Workload(n=n - m + 1), feeds={"x": "density.y"}),
    ),
    frame=("embedding.x",), results=("total.result",),
    workloads={"small": Workload(n=40, m=2), "S0": Workload(n=500, m=3)},
)  # fmt: skip

_SENSORS_TO_KALMAN = Pipeline(
    "sensors_to_kalman", "tensor, time series: measurements with their offsets taken off, filtered, with a band",
    stages=(
        Stage("offset", "broadcast_add", lambda filters, m: Workload(rows=filters, cols=m)),
        Stage("filter", "kalman_filter_step", lambda filters, n, m: Workload(filters=filters, n=n, m=m),
              feeds={"z": "offset.y"}),
        Stage("band", "uncertainty_propagation:bands", lambda filters, n: Workload(rows=filters, cols=n),
              feeds={"mean": "filter.x_next"}),
    ),
    frame=("offset.x",), results=("band.lower", "band.upper"),
    carries={"filter.x": "filter.x_next", "filter.p": "filter.p_next"},
    workloads={"small": Workload(filters=3, n=4, m=2), "S0": Workload(filters=64, n=16, m=8)},
)  # fmt: skip

_CROSSINGS = (
    _FORECAST_TO_SOFTMAX, _IMAGE_TO_INFORMATION, _DENDRITES_TO_OSCILLATORS, _LSTM_TO_TENSOR_CORES,
    _QUANTUM_TO_DIVERGENCE, _TOKENS_TO_SAMPLING, _GRU_TO_FREE_ENERGY, _SERIES_TO_NEIGHBOURS, _SENSORS_TO_KALMAN,
)  # fmt: skip


# Dendrites and somata: NMDA branches drive leaky integrate-and-fire neurons, whose potential unblocks the branches.


def _dendritic_check(results: Mapping[str, np.ndarray], axes: Mapping[str, int]) -> str | None:
    """Return a complaint unless potentials stay between rest and threshold."""
    v = results["soma.v_next"]
    return None if ((v >= -75) & (v < -50)).all() else "a potential left the range from rest to threshold"


_DENDRITIC = Pipeline(
    name="dendritic",
    meaning="dendritic integration with NMDA branches into spiking somata, potentials kept on the device",
    stages=(
        Stage(
            "dendrites",
            "dendritic_integration:nmda",
            lambda neurons, dendrites, inputs: Workload(neurons=neurons, dendrites=dendrites, inputs=inputs),
            values={
                "x": lambda neurons, dendrites, inputs, rng: rng.uniform(0, 1, (neurons, dendrites, inputs)),
                # Excitatory weights with which a branch's drive is about 1.
                "w": lambda neurons, dendrites, inputs, rng: rng.uniform(0, 4 / inputs, (neurons, dendrites, inputs)),
                "v": -65.0,
            },
        ),
        Stage(
            "soma",
            "leaky_integrate_fire",
            lambda neurons: Workload(n=neurons),
            feeds={"current": "dendrites.y", "v": "dendrites.v"},
            values={"held": 0},
        ),
    ),
    frame=("dendrites.x",),
    results=("soma.v_next", "soma.spikes"),
    workloads={"small": Workload(neurons=5, dendrites=3, inputs=8), "S0": Workload(neurons=10, dendrites=8, inputs=16)},
    carries={"dendrites.v": "soma.v_next", "soma.held": "soma.held_next"},
    check=_dendritic_check,
)


# Images with hot spots, for kernels that look for them.


def centres(rows: int, cols: int, spots: int, cell: int) -> "NDArray[Any]":
    """Return rows and columns [spots, 2] of spots, each in the middle of another cell of `cell` pixels.

    The spots are spread over the image, always at the same places; an image with fewer cells has fewer spots.
    """
    across, down = cols // cell, rows // cell
    cells = np.linspace(0, across * down - 1, min(spots, across * down)).round().astype(int)
    return np.stack([cells // across, cells % across], axis=1) * cell + cell // 2


def heated(image: "NDArray[Any]", places: "NDArray[Any]", radius: int, heat: float) -> "NDArray[Any]":
    """Return the image with a disc of `heat` added at every place, each at least `radius` from the image's border."""
    reach, warm = np.arange(-radius, radius + 1), image.copy()
    disc = heat * (reach[:, None] ** 2 + reach**2 <= radius**2)
    for row, col in places:
        warm[row - radius : row + radius + 1, col - radius : col + radius + 1] += disc
    return warm


# Infrared images: smoothed, then at once the entropy of windows, the components above a threshold, and segments.
#
# Hot spots are planted in every frame; each must be found as a component without holes, and nothing else may.

_TAPS, _WINDOW = 5, 8
BACKGROUND, _NOISE, _HEAT, _RADIUS = 100.0, 8.0, 600.0, 5
_THRESHOLD = 250.0
_CELL = 4 * _RADIUS + 2 * _TAPS  # each spot has its own cell, so that no two meet


def places(rows: int, cols: int, spots: int) -> np.ndarray:
    """Return the centres of the spots."""
    return centres(rows, cols, spots, _CELL)


def _hot_frame(rows: int, cols: int, spots: int, rng: np.random.Generator) -> np.ndarray:
    """Return noise on a background, with a disc of heat for each spot."""
    return heated(rng.normal(BACKGROUND, _NOISE, (rows, cols)), places(rows, cols, spots), _RADIUS, _HEAT)


def _image_check(results: Mapping[str, np.ndarray], axes: Mapping[str, int]) -> str | None:
    """Return a complaint unless every spot, and nothing else, is a separate component and hot."""
    labels, betti = results["topology.labels"], results["topology.betti"]
    planted = tuple(places(axes["rows"], axes["cols"], axes["spots"]).T)
    spots = labels[planted]
    if [axes["spots"], 0] != betti[:2].tolist():
        return f"{betti[0]} components with {betti[1]} holes; {axes['spots']} spots were planted"
    if not (spots > 0).all() or len(set(spots.tolist())) != axes["spots"]:
        return "a planted spot is no separate component"
    hot = results["segments.labels"][planted]
    return None if (hot == 1).all() else "a planted spot is not segmented as hot"


_IMAGE = Pipeline(
    name="image",
    meaning="convolution, then entropy, topology and segmentation side by side, with planted hot spots",
    stages=(
        Stage(
            "smooth",
            "conv2d",
            lambda rows, cols: Workload(rows=rows, cols=cols, k=_TAPS, padding=_TAPS // 2),
            values={"x": _hot_frame, "taps": np.full((_TAPS, _TAPS), 1 / _TAPS**2)},
        ),
        Stage(
            "topology",
            "pixel_tda:sizes",
            lambda rows, cols: Workload(rows=rows, cols=cols, threshold=_THRESHOLD),
            feeds={"x": "smooth.y"},
        ),
        Stage(
            "entropy",
            "pixel_entropy",
            lambda rows, cols: Workload(rows=rows, cols=cols, window=_WINDOW, lo=0.0, hi=1024.0),
            feeds={"x": "smooth.y"},
        ),
        Stage(
            "segments",
            "image_segmentation",
            lambda rows, cols: Workload(rows=rows, cols=cols, threshold=_THRESHOLD),
            feeds={"x": "smooth.y"},
        ),
    ),
    frame=("smooth.x",),
    results=("topology.labels", "topology.sizes", "topology.betti", "entropy.entropy", "segments.labels"),
    workloads={"small": Workload(rows=70, cols=100, spots=3), "S0": Workload(rows=512, cols=512, spots=24)},
    check=_image_check,
)


# Sequence through an LSTM, in the two phases of the published design.
#
# `lstm` is a call of the cell for each step, on state and weights that stay on the device; in the form `per_call` each
# call copies all its inputs from the host and its outputs back, which is phase 1. `lstm_sequence` is the catalogue's
# kernel for all steps in one launch.

STEPS = 16
_SIZES = {"small": Workload(batch=2, inputs=3, hidden=5), "S0": Workload(batch=32, inputs=64, hidden=128)}
_SHARED = ("w_ih", "w_hh", "bias")


def _step(number: int) -> Stage:
    """Return a step, fed with the state of the one before and the first step's weights."""
    feeds: dict[str, str] = {}
    if number:
        before = f"step{number - 1}"
        feeds = {"h": f"{before}.h_next", "c": f"{before}.c_next", **{name: f"step0.{name}" for name in _SHARED}}
    return Stage(
        f"step{number}",
        "lstm_cell",
        lambda batch, inputs, hidden: Workload(batch=batch, inputs=inputs, hidden=hidden),
        feeds=feeds,
    )


_LAST = f"step{STEPS - 1}"
_LSTM = Pipeline(
    name="lstm",
    meaning=f"{STEPS} steps of an LSTM, a launch each",
    stages=tuple(_step(number) for number in range(STEPS)),
    frame=tuple(f"step{number}.x" for number in range(STEPS)),
    results=tuple(f"step{number}.h_next" for number in range(STEPS)),
    workloads=_SIZES,
    carries={"step0.h": f"{_LAST}.h_next", "step0.c": f"{_LAST}.c_next"},
)
_LSTM_SEQUENCE = Pipeline(
    name="lstm_sequence",
    meaning=f"{STEPS} steps of an LSTM in one launch",
    stages=(
        Stage(
            "all",
            "lstm_cell:sequence",
            lambda batch, inputs, hidden: Workload(steps=STEPS, batch=batch, inputs=inputs, hidden=hidden),
        ),
    ),
    frame=("all.x",),
    results=("all.y",),
    workloads=_SIZES,
    carries={"all.c": "all.c_next"},
)


# Time series: forecasts by an AR model, an LSTM whose head estimates the uncertainty of each step, and the band.


def _history(series: int, length: int, rng: np.random.Generator) -> np.ndarray:
    """Return trend and season as in the profiling guide (100 + 0.01 t + 10 sin 0.1 t), with phases and noise."""
    t = np.arange(length)
    return 100 + 0.01 * t + 10 * np.sin(0.1 * t + rng.uniform(0, 6, (series, 1))) + rng.normal(0, 0.5, (series, length))


def _time_series_check(results: Mapping[str, np.ndarray], axes: Mapping[str, int]) -> str | None:
    """Return a complaint unless the band holds its forecast and widens, and forecasts stay at their series' level."""
    mean, width = results["forecast.forecast"], results["band.upper"] - results["band.lower"]
    if not (np.isfinite(width).all() and (width >= 0).all()):
        return "a band has no width"
    if not (np.diff(width, axis=1) >= -1e-3).all():
        return "a band narrows with time"
    return None if ((mean > 50) & (mean < 150)).all() else "a forecast left its series"


_TIME_SERIES = Pipeline(
    name="time_series",
    meaning="AR forecasts, LSTM with a head for deviations, bands of uncertainty",
    stages=(
        Stage(
            "forecast", "ar_forecast",
            lambda series, length, lags, horizon: Workload(
                series=series, length=length, lags=lags, horizon=horizon, intercept=5.0
            ),
            # Coefficients of sum 0.95: forecasts decay to their mean.
            values={"history": _history, "phi": lambda lags: np.full(lags, 0.95 / lags)},
        ),
        Stage(
            "lstm", "lstm_cell", lambda series, horizon, hidden: Workload(batch=series, inputs=horizon, hidden=hidden),
            feeds={"x": "forecast.forecast"},
            # PyTorch's initial weights, scaled to the forecasts' level of 100.
            values={"w_ih": lambda horizon, hidden, rng: (
                rng.uniform(-0.01, 0.01, (4 * hidden, horizon)) / np.sqrt(hidden)
            )},
        ),
        Stage(
            "head", "fused_linear_relu",
            lambda series, horizon, hidden: Workload(batch=series, inputs=hidden, outputs=horizon),
            feeds={"x": "lstm.h_next"},
        ),
        Stage(
            "band", "uncertainty_propagation:bands", lambda series, horizon: Workload(rows=series, cols=horizon),
            feeds={"sigma": "head.y", "mean": "forecast.forecast"},
        ),
    ),
    frame=("forecast.history",),
    results=("forecast.forecast", "band.lower", "band.upper"),
    workloads={
        "small": Workload(series=3, length=40, lags=5, horizon=12, hidden=8),
        "S0": Workload(series=32, length=1000, lags=5, horizon=64, hidden=128),
    },
    carries={"lstm.h": "lstm.h_next", "lstm.c": "lstm.c_next"},
    check=_time_series_check,
)  # fmt: skip


# Every pipeline by name: those that are measured, and the short ones that test how families fit together.

_ALL_THREE = together("together", "time series, image and dendrites side by side", (_TIME_SERIES, _IMAGE, _DENDRITIC))
PHASES = (_LSTM, _LSTM_SEQUENCE)
MEASURED = (_TIME_SERIES, _IMAGE, _DENDRITIC, _ALL_THREE, *PHASES)
INTEGRATION = (_TIME_SERIES, _IMAGE, _DENDRITIC, _ALL_THREE, *_CROSSINGS)
KNOWN = {pipeline.name: pipeline for pipeline in (*MEASURED, *_CROSSINGS)}


def pipelines(names: Sequence[str] = ()) -> tuple[Pipeline, ...]:
    """Return the pipelines of the names, or without names the measured ones. UsageError for an unknown name."""
    for name in names:
        if name not in KNOWN:
            raise unknown("pipeline", name, KNOWN)
    return tuple(KNOWN[name] for name in names) or MEASURED
