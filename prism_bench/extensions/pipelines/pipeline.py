"""Pipelines: kernels of the catalogue in sequence, prepared on a backend and run in several forms."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from prism_bench.backends import Backend, Runnable
from prism_bench.backends.base import Fork
from prism_bench.catalogue import Catalogue
from prism_bench.errors import SpecError, unknown
from prism_bench.spec import arguments
from prism_bench.spec.case import Case
from prism_bench.spec.inputs import InputArray, input_of
from prism_bench.spec.kernel import Array
from prism_bench.spec.workload import Workload

# Pipelines: kernels of the catalogue in sequence, each fed by the outputs of others, on the device.


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
    at the end of the evaluation before. `check` gets the results of an evaluation by `"stage.argument"`, and the
    pipeline's axes, and returns a complaint or None: it finds what was planted in the frame.
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

    @property
    def name(self) -> str:
        """The name of the stage."""
        return self.stage.name


def place_of(buffer: str) -> tuple[str, str]:
    """Return `("conv", "y")` for `"conv.y"`."""
    stage, _, argument = buffer.rpartition(".")
    return stage, argument


def placed(pipeline: Pipeline, label: str, catalogue: Catalogue) -> tuple[Placed, ...]:
    """Return every stage with its case. SpecError if stages do not fit together, UsageError for unknown labels."""
    if label not in pipeline.workloads:
        raise unknown(f"label of pipeline {pipeline.name}", label, pipeline.workloads)
    stages: list[Placed] = []
    for stage in pipeline.stages:
        kernel, _, variant = stage.kernel.partition(":")
        spec = catalogue.kernel(kernel)
        spec = spec.with_variant(variant) if variant else spec
        where = f"{pipeline.name}: workload of {stage.name}"
        workload = arguments.call(stage.workload, pipeline.workloads[label], where)
        stages.append(Placed(stage, catalogue.launched(Case(spec, workload, label, variant or None))))
    _refuse_gaps(pipeline, stages)
    return tuple(stages)


def _refuse_gaps(pipeline: Pipeline, stages: Sequence[Placed]) -> None:
    """Raise SpecError unless feeds come from earlier stages, and frame, results and carries fit their arguments."""
    cases, before = {stage.name: stage.case for stage in stages}, set[str]()
    if len(cases) < len(stages):
        raise SpecError(f"{pipeline.name}: two stages have one name")
    for stage in stages:
        for argument, buffer in stage.stage.feeds.items():
            _require(argument, stage.case.spec.inputs, f"{pipeline.name}: {stage.name} is fed")
            feeder, output = place_of(buffer)
            if feeder not in before:
                raise SpecError(f"{pipeline.name}: {stage.name}.{argument} is fed by {buffer}, no stage before it")
            _require(output, cases[feeder].spec.arrays, f"{pipeline.name}: {buffer} feeds")
        before.add(stage.name)
    for buffers, kind in (
        (pipeline.frame, "inputs"),
        (pipeline.results, "outputs"),
        (pipeline.carries, "inputs"),
        (pipeline.carries.values(), "outputs"),
    ):
        for name, argument in map(place_of, buffers):
            if name not in cases:
                raise SpecError(f"{pipeline.name}: there is no stage '{name}'")
            _require(argument, getattr(cases[name].spec, kind), f"{pipeline.name}: the {kind} of {name}")


def _require(argument: str, arrays: Sequence[Array], where: str) -> None:
    if argument not in [array.name for array in arrays]:
        raise SpecError(f"{where}: no '{argument}' among {', '.join(array.name for array in arrays)}")


def together(name: str, meaning: str, parts: tuple[Pipeline, ...]) -> Pipeline:
    """Return all parts as one pipeline, their stages named `part_stage`; axes of one name are shared."""
    labels = [label for label in parts[0].workloads if all(label in part.workloads for part in parts)]
    axes = {label: {k: v for part in parts for k, v in part.workloads[label].items()} for label in labels}
    stages: list[Stage] = []
    for part in parts:
        for stage in part.stages:
            feeds = {argument: f"{part.name}_{buffer}" for argument, buffer in stage.feeds.items()}
            stages.append(replace(stage, name=f"{part.name}_{stage.name}", feeds=feeds))

    def check(results: Mapping[str, np.ndarray], axes: Mapping[str, int]) -> str | None:
        for part in parts:
            part_results = {buffer: results[f"{part.name}_{buffer}"] for buffer in part.results}
            if part.check and (complaint := part.check(part_results, axes)):
                return f"{part.name}: {complaint}"
        return None

    return Pipeline(
        name,
        meaning,
        stages=tuple(stages),
        frame=tuple(f"{part.name}_{buffer}" for part in parts for buffer in part.frame),
        results=tuple(f"{part.name}_{buffer}" for part in parts for buffer in part.results),
        workloads={label: Workload(**axes[label]) for label in labels},
        carries={f"{part.name}_{k}": f"{part.name}_{v}" for part in parts for k, v in part.carries.items()},
        check=check,
    )


# Lanes of a pipeline: stages that run side by side, and the waits between lanes.


@dataclass(frozen=True)
class Lane:
    """The lane of a stage: its `number`, and the positions of the stages of other lanes that it waits for."""

    number: int
    after: tuple[int, ...]


def lanes(stages: Sequence[Placed]) -> tuple[Lane, ...]:
    """Return a lane for every stage, in their order.

    A stage continues the lane of the first stage that feeds it, unless another stage continues it already; then, and
    where nothing feeds it, it opens a new lane. Lane 0 is the first stage's.
    """
    by_stage: list[Lane] = []
    ends: list[int] = []  # by lane the position of its last stage
    for position, stage in enumerate(stages):
        fed_by = set(stage.stage.feeds.values())
        before = [
            earlier
            for earlier, other in enumerate(stages[:position])
            if any(f"{other.name}.{array.name}" in fed_by for array in other.case.spec.arrays if array.writes)
        ]  # a shared input is no dependency
        number = next((by_stage[b].number for b in before if ends[by_stage[b].number] == b), len(ends))
        if number == len(ends):
            ends.append(position)
        ends[number] = position
        by_stage.append(Lane(number, tuple(b for b in before if by_stage[b].number != number)))
    return tuple(by_stage)


# Prepared pipeline: every stage on a backend, fed by the buffers of those before it, its frame in host memory.


@dataclass
class _Transfers:
    """Copies between host and device, and their bytes, either way."""

    up: int = 0
    up_bytes: int = 0
    down: int = 0
    down_bytes: int = 0


class Prepared:
    """A pipeline on a backend; use it in a `with` block. `host` has the host's arrays by `"stage.argument"`."""

    def __init__(self, pipeline: Pipeline, label: str, catalogue: Catalogue, backend: Backend, seed: int = 0) -> None:
        self.pipeline, self.label, self.backend = pipeline, label, backend
        self.stages: tuple[Placed, ...] = placed(pipeline, label, catalogue)
        self.lanes: tuple[Lane, ...] = lanes(self.stages)
        self.axes: Mapping[str, Any] = pipeline.workloads[label]
        self.flow, self.transfers, self._closing = backend.flow(), _Transfers(), ExitStack()
        self.inputs = {stage.name: self._inputs(stage, seed) for stage in self.stages}
        self.runnables: dict[str, Runnable] = {}
        self.host: dict[str, np.ndarray] = {}
        in_place = [f"{stage.name}.{a.name}" for stage in self.stages for a in stage.case.spec.inputs if a.writes]
        self._changing = [*pipeline.carries, *in_place]
        with ExitStack() as stack:
            for stage in self.stages:
                runnable = stack.enter_context(backend.prepare(stage.case, self.inputs[stage.name]))
                self.runnables[stage.name] = runnable
            self.feed()
            self.host = {buffer: self._host_array(buffer) for buffer in (*pipeline.frame, *pipeline.results)}
            self._closing = stack.pop_all()

    def __enter__(self) -> "Prepared":
        return self

    def __exit__(self, *exception: object) -> None:
        self._closing.close()

    def feed(self, only: Placed | None = None) -> None:
        """Connect every fed argument (of the stage `only`) to the current buffer of its feeder."""
        for stage in (only,) if only else self.stages:
            for argument, buffer in stage.stage.feeds.items():
                feeder, output = place_of(buffer)
                self.runnables[stage.name].share(argument, self.runnables[feeder], output)

    def upload(self) -> None:
        """Enqueue copies of the frame from the host."""
        for buffer in self.pipeline.frame:
            stage, argument = place_of(buffer)
            self.runnables[stage].put(argument, self.host[buffer])
            self.transfers.up += 1
            self.transfers.up_bytes += self.host[buffer].nbytes

    def download(self, outputs: Sequence[str] | None = None) -> None:
        """Enqueue copies of the results (or the named outputs) to the host."""
        for buffer in self.pipeline.results if outputs is None else outputs:
            stage, argument = place_of(buffer)
            self.runnables[stage].fetch(argument, self.host[buffer])
            self.transfers.down += 1
            self.transfers.down_bytes += self.host[buffer].nbytes

    def begin(self) -> None:
        """Restore the initial values of carried state and of inputs that are changed in place."""
        for buffer in self._changing:
            stage, argument = place_of(buffer)
            self.host_of(buffer)[...] = self.inputs[stage][argument].on(np)
            self.runnables[stage].put(argument, self.host_of(buffer))
        self.flow.synchronize()

    def carry(self) -> None:
        """Enqueue copies of the state for the next evaluation."""
        for state, source in self.pipeline.carries.items():
            (to, argument), (stage, output) = place_of(state), place_of(source)
            self.runnables[to].take(argument, self.runnables[stage], output)

    def host_of(self, buffer: str) -> np.ndarray:
        """Return the host's array of a buffer, made on first use; inputs hold their initial values."""
        if buffer not in self.host:
            self.host[buffer] = self._host_array(buffer)
        return self.host[buffer]

    def _host_array(self, buffer: str) -> np.ndarray:
        stage, argument = place_of(buffer)
        case = self.runnables[stage].case
        array = self.flow.host_array(case.sizes.shape(argument), case.spec.array(argument).storage)
        if argument in self.inputs[stage]:
            array[...] = self.inputs[stage][argument].on(np)
        return array

    def _inputs(self, stage: Placed, seed: int) -> dict[str, InputArray]:
        """Return the kernel's inputs, with the stage's values in their place."""
        drawn = stage.case.inputs(seed)
        rng = np.random.default_rng((seed, len(stage.name)))
        for name, value in stage.stage.values.items():
            where = f"{self.pipeline.name}: {name} of {stage.name}"
            value = arguments.call(value, {**self.axes, "rng": rng}, where) if callable(value) else value
            array = stage.case.spec.argument(name)
            drawn[name] = input_of(np.broadcast_to(np.asarray(value), stage.case.sizes.shape(name)), array.dtype)
        return drawn


# Forms: ways to run a prepared pipeline. Calling a form enqueues one evaluation.
#
# per_call      every stage brings its inputs from the host and takes its outputs back: the published host methods
# one_stream    everything stays on the device, stage after stage
# streams       the same, independent stages side by side
# graph         the streams, captured once and replayed
# allocating    one stream; every output is allocated anew, as by a program that keeps no buffers

FORMS = ("per_call", "one_stream", "streams", "graph", "allocating")


def require_form(name: str) -> None:
    """Raise UsageError for an unknown form."""
    if name not in FORMS:
        raise unknown("form", name, FORMS)


def form(name: str, prepared: Prepared) -> Callable[[], None]:
    """Return an evaluation in the form `name`. UsageError for an unknown form, BackendUnavailable without graphs."""
    require_form(name)
    makers: dict[str, Callable[[Prepared], Callable[[], None]]] = {
        "per_call": _PerCall,
        "one_stream": _one_stream,
        "streams": _Streams,
        "graph": _graph,
        "allocating": _Allocating,
    }
    return makers[name](prepared)


def _one_stream(prepared: Prepared) -> Callable[[], None]:
    runnables = tuple(prepared.runnables.values())

    def evaluate() -> None:
        for runnable in runnables:
            runnable()
        prepared.carry()

    return evaluate


class _PerCall:
    """Keeps only memory on the device between two stages; fed inputs come from the host as well."""

    def __init__(self, prepared: Prepared) -> None:
        self._prepared = prepared
        self._calls: list[tuple[str, dict[str, str], list[str]]] = []
        for stage in prepared.stages:
            inputs = {array.name: f"{stage.name}.{array.name}" for array in stage.case.spec.inputs}
            sources = inputs | dict(stage.stage.feeds)
            outputs = [f"{stage.name}.{array.name}" for array in stage.case.spec.outputs]
            for buffer in (*sources.values(), *outputs):
                prepared.host_of(buffer)
            self._calls.append((stage.name, sources, outputs))

    def __call__(self) -> None:
        prepared = self._prepared
        for name, sources, outputs in self._calls:
            runnable = prepared.runnables[name]
            for argument, source in sources.items():
                runnable.put(argument, prepared.host[source])
                prepared.transfers.up += 1
                prepared.transfers.up_bytes += prepared.host[source].nbytes
            runnable()
            prepared.download(outputs)
            prepared.flow.synchronize()
        for state, source in prepared.pipeline.carries.items():
            prepared.host[state][...] = prepared.host[source].reshape(prepared.host[state].shape)


class _Streams:
    """Runs lanes side by side: all wait for lane 0 to begin, lane 0 for all of them at the end."""

    def __init__(self, prepared: Prepared) -> None:
        self._prepared, flow = prepared, prepared.flow
        self._fork = Fork(flow, sorted({lane.number for lane in prepared.lanes} - {0}))
        awaited = {before for lane in prepared.lanes for before in lane.after}
        self._reached = {position: flow.point() for position in awaited}

    def __call__(self) -> None:
        prepared, flow = self._prepared, self._prepared.flow
        with self._fork:
            for position, (lane, runnable) in enumerate(zip(prepared.lanes, prepared.runnables.values(), strict=True)):
                for before in lane.after:
                    flow.wait(lane.number, self._reached[before])
                with flow.lane(lane.number):
                    runnable()
                if position in self._reached:
                    flow.reached(self._reached[position], lane.number)
        prepared.carry()


class _Allocating:
    """Gives outputs new memory, and their readers the new buffers; carried state stays where it is."""

    def __init__(self, prepared: Prepared) -> None:
        self._prepared = prepared

    def __call__(self) -> None:
        prepared = self._prepared
        for stage in prepared.stages:
            runnable = prepared.runnables[stage.name]
            runnable.renew([array.name for array in stage.case.spec.outputs if not array.reads])
            prepared.feed(stage)
            runnable()
        prepared.carry()


def _graph(prepared: Prepared) -> Callable[[], None]:
    """Capture the streams as one graph, after an evaluation: code must be loaded before it is captured."""
    evaluate = _Streams(prepared)
    evaluate()
    return prepared.flow.captured(evaluate)
