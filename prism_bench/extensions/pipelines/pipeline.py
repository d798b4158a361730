"""Pipelines: the catalogue's kernels one after the other, each fed by what others wrote, all of it on the device."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from prism_bench import byname
from prism_bench.case import Case
from prism_bench.catalogue import Catalogue
from prism_bench.errors import SpecError, unknown
from prism_bench.workload import Workload


@dataclass(frozen=True)
class Stage:
    """One kernel (`kernel` or `kernel:variant`) of a pipeline, at the workload that `workload` makes of its axes.

    `feeds` says which arguments are another stage's buffers (`"stage.argument"`), usually outputs. `values` are inputs
    that are not drawn as the kernel's spec says: arrays, or functions that ask for the pipeline's axes and `rng`.
    """

    name: str
    kernel: str
    workload: Callable[..., Workload]
    feeds: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Pipeline:
    """Stages in an order in which they can run.

    `frame` are the inputs that come anew with every evaluation, `results` the outputs that somebody waits for, both as
    `"stage.argument"`; all other inputs stay on the device. `carries` are inputs that are what an output was at the end
    of the evaluation before: state. `check` looks at the results of an evaluation by word (with the pipeline's axes)
    and returns what is wrong with them, or None: what was planted in the frame must be found.
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
    """`("conv", "y")` of `"conv.y"`."""
    stage, _, argument = word.rpartition(".")
    return stage, argument


def placed(pipeline: Pipeline, label: str, catalogue: Catalogue) -> tuple[Placed, ...]:
    """Every stage with its case. SpecError where the stages do not fit together, UsageError for an unknown label."""
    if label not in pipeline.workloads:
        raise unknown(f"label of pipeline {pipeline.name}", label, pipeline.workloads)
    found = tuple(Placed(stage, _case(stage, pipeline, label, catalogue)) for stage in pipeline.stages)
    _refuse_gaps(pipeline, found)
    return found


def _case(stage, pipeline, label, catalogue):
    kernel, _, variant = stage.kernel.partition(":")
    spec = catalogue.kernel(kernel)
    spec = spec.with_variant(variant) if variant else spec
    workload = byname.call(stage.workload, pipeline.workloads[label], f"{pipeline.name}: workload of {stage.name}")
    return catalogue.launched(Case(spec, workload, label, variant or None))


def _refuse_gaps(pipeline, stages):
    """Feeds come from earlier stages, frames and carries are inputs, results and carried ones outputs."""
    cases, before = {one.stage.name: one.case for one in stages}, set()
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


def _require(argument, arrays, where):
    if argument not in [array.name for array in arrays]:
        raise SpecError(f"{where}: no '{argument}' among {', '.join(array.name for array in arrays)}")


def together(name: str, meaning: str, parts: tuple[Pipeline, ...]) -> Pipeline:
    """All parts in one pipeline, their stages named `part_stage`; axes of one name mean the same."""
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


def _renamed(stage, part):
    feeds = {argument: f"{part}_{word}" for argument, word in stage.feeds.items()}
    return Stage(f"{part}_{stage.name}", stage.kernel, stage.workload, feeds, stage.values)


def _checked_by(parts):
    def check(results, axes):
        for part in parts:
            own = {word: results[f"{part.name}_{word}"] for word in part.results}
            if part.check and (complaint := part.check(own, axes)):
                return f"{part.name}: {complaint}"
        return None

    return check
