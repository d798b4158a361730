"""Pipelines: kernels of the catalogue in sequence, each fed by the outputs of others, on the device."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from prism_bench.catalogue import Catalogue
from prism_bench.errors import SpecError, unknown
from prism_bench.spec import byname
from prism_bench.spec.case import Case
from prism_bench.spec.kernel import Array
from prism_bench.spec.workload import Workload


@dataclass(frozen=True)
class Stage:
    """One kernel (`kernel` or `kernel:variant`) of a pipeline, at the workload that `workload` makes of its axes.

    `feeds` are arguments that are another stage's buffers (`"stage.argument"`), usually outputs. `values` are inputs
    other than those of the kernel's spec: arrays, or functions of the pipeline's axes and `rng`.
    """

    name: str
    kernel: str
    workload: Callable[..., Workload]
    feeds: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Pipeline:
    """Stages in an order in which they can run.

    `frame` are the inputs that are new in every evaluation, `results` the outputs that are copied back, both as
    `"stage.argument"`; all other inputs stay on the device. `carries` is state: inputs that take the value of an output
    at the end of the evaluation before. `check` gets the results of an evaluation by word, and the pipeline's axes,
    and returns what is wrong with them, or None: it finds what was planted in the frame.
    """

    name: str
    meaning: str
    stages: tuple[Stage, ...]
    frame: tuple[str, ...]
    results: tuple[str, ...]
    workloads: Mapping[str, Workload]
    carries: Mapping[str, str] = field(default_factory=dict)
    check: Callable[..., str | None] | None = None


@dataclass(frozen=True)
class Placed:
    """A stage with its case: kernel, variant and workload known."""

    stage: Stage
    case: Case


def place_of(word: str) -> tuple[str, str]:
    """Return `("conv", "y")` for `"conv.y"`."""
    stage, _, argument = word.rpartition(".")
    return stage, argument


def placed(pipeline: Pipeline, label: str, catalogue: Catalogue) -> tuple[Placed, ...]:
    """Return every stage with its case. SpecError where stages do not fit together, UsageError for unknown labels."""
    if label not in pipeline.workloads:
        raise unknown(f"label of pipeline {pipeline.name}", label, pipeline.workloads)
    found = tuple(Placed(stage, _case(stage, pipeline, label, catalogue)) for stage in pipeline.stages)
    _refuse_gaps(pipeline, found)
    return found


def _case(stage: Stage, pipeline: Pipeline, label: str, catalogue: Catalogue) -> Case:
    kernel, _, variant = stage.kernel.partition(":")
    spec = catalogue.kernel(kernel)
    spec = spec.with_variant(variant) if variant else spec
    workload = byname.call(stage.workload, pipeline.workloads[label], f"{pipeline.name}: workload of {stage.name}")
    return catalogue.launched(Case(spec, workload, label, variant or None))


def _refuse_gaps(pipeline: Pipeline, stages: Sequence[Placed]) -> None:
    """Raise a SpecError unless feeds come from earlier stages, and frame, results and carries fit their arguments."""
    cases, before = {one.stage.name: one.case for one in stages}, set[str]()
    if len(cases) < len(stages):
        raise SpecError(f"{pipeline.name}: two stages have one name")
    for one in stages:
        for argument, word in one.stage.feeds.items():
            _require(argument, one.case.spec.inputs, f"{pipeline.name}: {one.stage.name} is fed")
            if place_of(word)[0] not in before:
                raise SpecError(f"{pipeline.name}: {one.stage.name}.{argument} is fed by {word}, no stage before it")
            _require(place_of(word)[1], cases[place_of(word)[0]].spec.arrays, f"{pipeline.name}: {word} feeds")
        before.add(one.stage.name)
    for words, kind in (
        (pipeline.frame, "inputs"), (pipeline.results, "outputs"), (pipeline.carries, "inputs"),
        (pipeline.carries.values(), "outputs"),
    ):  # fmt: skip
        for stage, argument in map(place_of, words):
            if stage not in cases:
                raise SpecError(f"{pipeline.name}: there is no stage '{stage}'")
            _require(argument, getattr(cases[stage].spec, kind), f"{pipeline.name}: the {kind} of {stage}")


def _require(argument: str, arrays: Sequence[Array], where: str) -> None:
    if argument not in [array.name for array in arrays]:
        raise SpecError(f"{where}: no '{argument}' among {', '.join(array.name for array in arrays)}")


def together(name: str, meaning: str, parts: tuple[Pipeline, ...]) -> Pipeline:
    """Return all parts as one pipeline, their stages named `part_stage`; axes of one name are shared."""
    labels = [label for label in parts[0].workloads if all(label in part.workloads for part in parts)]
    axes = {label: {k: v for part in parts for k, v in part.workloads[label].items()} for label in labels}
    return Pipeline(
        name, meaning,
        stages=tuple(_renamed(stage, part.name) for part in parts for stage in part.stages),
        frame=tuple(f"{part.name}_{word}" for part in parts for word in part.frame),
        results=tuple(f"{part.name}_{word}" for part in parts for word in part.results),
        workloads={label: Workload(**axes[label]) for label in labels},
        carries={f"{part.name}_{k}": f"{part.name}_{v}" for part in parts for k, v in part.carries.items()},
        check=_checked_by(parts),
    )  # fmt: skip


def _renamed(stage: Stage, part: str) -> Stage:
    feeds = {argument: f"{part}_{word}" for argument, word in stage.feeds.items()}
    return Stage(f"{part}_{stage.name}", stage.kernel, stage.workload, feeds, stage.values)


def _checked_by(parts: Sequence[Pipeline]) -> Callable[..., str | None]:
    def check(results: Mapping[str, np.ndarray], axes: Mapping[str, int]) -> str | None:
        for part in parts:
            own = {word: results[f"{part.name}_{word}"] for word in part.results}
            if part.check and (complaint := part.check(own, axes)):
                return f"{part.name}: {complaint}"
        return None

    return check
