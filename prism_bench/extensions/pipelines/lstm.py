"""Sequence through an LSTM, in the two phases of the published design.

`lstm` is a call of the cell for each step, on state and weights that stay where they are; in the form `per_call` each
of these calls brings all its inputs from the host and takes its outputs back, which is phase 1. `lstm_sequence` is the
catalogue's own kernel for all steps in one launch.
"""

from prism_bench.extensions.pipelines.pipeline import Pipeline, Stage
from prism_bench.spec.workload import Workload

STEPS = 16
SIZES = {"small": Workload(batch=2, inputs=3, hidden=5), "S0": Workload(batch=32, inputs=64, hidden=128)}
SHARED = ("w_ih", "w_hh", "bias")


def _step(number: int) -> Stage:
    """Return a step, fed with the state of the one before and the first step's weights."""
    feeds: dict[str, str] = {}
    if number:
        before = f"step{number - 1}"
        feeds = {"h": f"{before}.h_next", "c": f"{before}.c_next", **{name: f"step0.{name}" for name in SHARED}}
    return Stage(
        f"step{number}", "lstm_cell",
        lambda batch, inputs, hidden: Workload(batch=batch, inputs=inputs, hidden=hidden), feeds=feeds,
    )  # fmt: skip


LAST = f"step{STEPS - 1}"
LSTM = Pipeline(
    name="lstm", meaning=f"{STEPS} steps of an LSTM, a launch each",
    stages=tuple(_step(number) for number in range(STEPS)), frame=tuple(f"step{number}.x" for number in range(STEPS)),
    results=tuple(f"step{number}.h_next" for number in range(STEPS)), workloads=SIZES,
    carries={"step0.h": f"{LAST}.h_next", "step0.c": f"{LAST}.c_next"},
)  # fmt: skip
LSTM_SEQUENCE = Pipeline(
    name="lstm_sequence",
    meaning=f"{STEPS} steps of an LSTM in one launch",
    stages=(
        Stage(
            "all", "lstm_cell:sequence",
            lambda batch, inputs, hidden: Workload(steps=STEPS, batch=batch, inputs=inputs, hidden=hidden),
        ),
    ),
    frame=("all.x",),
    results=("all.y",),
    workloads=SIZES,
    carries={"all.c": "all.c_next"},
)  # fmt: skip
