"""Small pipelines of the catalogue's kernels, right ones and broken ones."""

from prism_bench.extensions.pipelines.pipeline import Pipeline, Stage
from prism_bench.spec.workload import Workload

SIZES = {"small": Workload(n=8), "S0": Workload(n=100)}


def stage(name, kernel="relu", **feeds):
    return Stage(name, kernel, lambda n: Workload(n=n), feeds=feeds)


def chain(*stages, **changes):
    """Return a pipeline whose frame is the first stage's x and whose result is the last stage's y."""
    first, last = stages[0].name, stages[-1].name
    fields = {"frame": (f"{first}.x",), "results": (f"{last}.y",), "workloads": SIZES} | changes
    return Pipeline(name="toy", meaning="a toy", stages=stages, **fields)


TOY = chain(stage("first"), stage("left", "sigmoid", x="first.y"), stage("right", "tanh_activation", x="first.y"))
