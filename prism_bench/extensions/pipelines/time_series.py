"""Time series: forecasts by an AR model, an LSTM whose head estimates the uncertainty of each step, and the band."""

from collections.abc import Mapping

import numpy as np

from prism_bench.extensions.pipelines.pipeline import Pipeline, Stage
from prism_bench.spec.workload import Workload


def history(series: int, length: int, rng: np.random.Generator) -> np.ndarray:
    """Return trend and season as in the profiling guide (100 + 0.01 t + 10 sin 0.1 t), with phases and noise."""
    at = np.arange(length)
    return (
        100 + 0.01 * at + 10 * np.sin(0.1 * at + rng.uniform(0, 6, (series, 1))) + rng.normal(0, 0.5, (series, length))
    )


def phi(lags: int) -> np.ndarray:
    """Return coefficients of sum 0.95: forecasts decay to their mean."""
    return np.full(lags, 0.95 / lags)


def input_weights(horizon: int, hidden: int, rng: np.random.Generator) -> np.ndarray:
    """Return PyTorch's initial weights, scaled to the forecasts' level of 100."""
    return rng.uniform(-0.01, 0.01, (4 * hidden, horizon)) / np.sqrt(hidden)


def check(results: Mapping[str, np.ndarray], axes: Mapping[str, int]) -> str | None:
    """Return a complaint unless the band holds its forecast and widens, and forecasts stay at their series' level."""
    mean, width = results["forecast.forecast"], results["band.upper"] - results["band.lower"]
    if not (np.isfinite(width).all() and (width >= 0).all()):
        return "a band has no width"
    if not (np.diff(width, axis=1) >= -1e-3).all():
        return "a band narrows with time"
    return None if ((mean > 50) & (mean < 150)).all() else "a forecast left its series"


TIME_SERIES = Pipeline(
    name="time_series",
    meaning="AR forecasts, LSTM with a head for deviations, bands of uncertainty",
    stages=(
        Stage(
            "forecast", "ar_forecast",
            lambda series, length, lags, horizon: Workload(
                series=series, length=length, lags=lags, horizon=horizon, intercept=5.0
            ),
            values={"history": history, "phi": phi},
        ),
        Stage(
            "lstm", "lstm_cell", lambda series, horizon, hidden: Workload(batch=series, inputs=horizon, hidden=hidden),
            feeds={"x": "forecast.forecast"}, values={"w_ih": input_weights},
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
    check=check,
)  # fmt: skip
