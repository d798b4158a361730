"""Dendrites and somata: NMDA branches drive leaky integrate-and-fire neurons, whose potential unblocks the branches."""

from collections.abc import Mapping

import numpy as np

from prism_bench.extensions.pipelines.pipeline import Pipeline, Stage
from prism_bench.spec.workload import Workload


def weights(neurons: int, dendrites: int, inputs: int, rng: np.random.Generator) -> np.ndarray:
    """Return excitatory weights with which a branch's drive is about one."""
    return rng.uniform(0, 4 / inputs, (neurons, dendrites, inputs))


def check(results: Mapping[str, np.ndarray], axes: Mapping[str, int]) -> str | None:
    """Return a complaint unless potentials stay between rest and threshold."""
    v = results["soma.v_next"]
    return None if ((v >= -75) & (v < -50)).all() else "a potential left the range from rest to threshold"


DENDRITIC = Pipeline(
    name="dendritic",
    meaning="dendritic integration with NMDA branches into spiking somata, potentials kept on the device",
    stages=(
        Stage(
            "dendrites", "dendritic_integration:nmda",
            lambda neurons, dendrites, inputs: Workload(neurons=neurons, dendrites=dendrites, inputs=inputs),
            values={
                "x": lambda neurons, dendrites, inputs, rng: rng.uniform(0, 1, (neurons, dendrites, inputs)),
                "w": weights, "v": -65.0,
            },
        ),
        Stage(
            "soma", "leaky_integrate_fire", lambda neurons: Workload(n=neurons),
            feeds={"current": "dendrites.y", "v": "dendrites.v"}, values={"held": 0},
        ),
    ),
    frame=("dendrites.x",),
    results=("soma.v_next", "soma.spikes"),
    workloads={
        "small": Workload(neurons=5, dendrites=3, inputs=8),
        "S0": Workload(neurons=10, dendrites=8, inputs=16),
    },
    carries={"dendrites.v": "soma.v_next", "soma.held": "soma.held_next"},
    check=check,
)  # fmt: skip
