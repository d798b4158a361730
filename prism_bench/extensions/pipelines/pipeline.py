"""Pipelines: kernels of the catalogue in sequence, prepared on a backend and run in several forms."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from prism_bench.backends import Backend, Runnable
from prism_bench.backends.base import Fork
from prism_bench.catalogue import Catalogue
from prism_bench.errors import SpecError, unknown
from prism_bench.spec import arguments
from prism_bench.spec.case import Case
from prism_bench.spec.inputs import InputArray, given
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
    """Return every stage with its case. SpecError if stages do not fit together, UsageError for unknown labels."""
    if label not in pipeline.workloads:
        raise unknown(f"label of pipeline {pipeline.name}", label, pipeline.workloads)
    found = tuple(Placed(stage, _case(stage, pipeline, label, catalogue)) for stage in pipeline.stages)
    _refuse_gaps(pipeline, found)
    return found


def _case(stage: Stage, pipeline: Pipeline, label: str, catalogue: Catalogue) -> Case:
    kernel, _, variant = stage.kernel.partition(":")
    spec = catalogue.kernel(kernel)
    spec = spec.with_variant(variant) if variant else spec
    workload = arguments.call(stage.workload, pipeline.workloads[label], f"{pipeline.name}: workload of {stage.name}")
    return catalogue.launched(Case(spec, workload, label, variant or None))


def _refuse_gaps(pipeline: Pipeline, stages: Sequence[Placed]) -> None:
    """Raise SpecError unless feeds come from earlier stages, and frame, results and carries fit their arguments."""
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
        (pipeline.frame, "inputs"),
        (pipeline.results, "outputs"),
        (pipeline.carries, "inputs"),
        (pipeline.carries.values(), "outputs"),
    ):
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
        name,
        meaning,
        stages=tuple(_renamed(stage, part.name) for part in parts for stage in part.stages),
        frame=tuple(f"{part.name}_{word}" for part in parts for word in part.frame),
        results=tuple(f"{part.name}_{word}" for part in parts for word in part.results),
        workloads={label: Workload(**axes[label]) for label in labels},
        carries={f"{part.name}_{k}": f"{part.name}_{v}" for part in parts for k, v in part.carries.items()},
        check=_checked_by(parts),
    )


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


# Lanes of a pipeline: which stages run side by side, and where one lane waits for another.


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
    found: list[Lane] = []
    ends: list[int] = []  # by lane the stage that was last on it
    for position, one in enumerate(stages):
        before = _feeding(one, stages[:position])
        number = next((found[b].number for b in before if ends[found[b].number] == b), len(ends))
        if number == len(ends):
            ends.append(position)
        ends[number] = position
        found.append(Lane(number, tuple(b for b in before if found[b].number != number)))
    return tuple(found)


def _feeding(one: Placed, earlier: Sequence[Placed]) -> list[int]:
    """Return the positions of the stages whose outputs the stage reads; a shared input is no output."""
    fed = [place_of(word) for word in one.stage.feeds.values()]
    return [
        position
        for position, other in enumerate(earlier)
        if any(stage == other.stage.name and name in _written(other) for stage, name in fed)
    ]


def _written(one: Placed) -> set[str]:
    return {array.name for array in one.case.spec.arrays if array.writes}


# Prepared pipeline: every stage on a backend, fed by the buffers of those before it, its frame in host memory.


@dataclass
class Transfers:
    """Copies between host and device, and their bytes, either way."""

    up: int = 0
    up_bytes: int = 0
    down: int = 0
    down_bytes: int = 0


class Prepared:
    """A pipeline on a backend; use it in a `with` block. `host` are the host's arrays that are copied, by word."""

    def __init__(self, pipeline: Pipeline, label: str, catalogue: Catalogue, backend: Backend, seed: int = 0) -> None:
        self.pipeline, self.label, self.backend = pipeline, label, backend
        self.stages: tuple[Placed, ...] = placed(pipeline, label, catalogue)
        self.lanes: tuple[Lane, ...] = lanes(self.stages)
        self.axes: Mapping[str, Any] = pipeline.workloads[label]
        self.flow, self.transfers, self._closing = backend.flow(), Transfers(), ExitStack()
        self.inputs = {stage.stage.name: self._inputs(stage, seed) for stage in self.stages}
        self.runnables: dict[str, Runnable] = {}
        self.host: dict[str, np.ndarray] = {}
        self._changing = [*pipeline.carries, *_in_place(self.stages)]
        with ExitStack() as stack:
            for one in self.stages:
                runnable = stack.enter_context(backend.prepare(one.case, self.inputs[one.stage.name]))
                self.runnables[one.stage.name] = runnable
            self.feed()
            self.host = {word: self._host_array(word) for word in (*pipeline.frame, *pipeline.results)}
            self._closing = stack.pop_all()

    def __enter__(self) -> "Prepared":
        return self

    def __exit__(self, *exception: object) -> None:
        self._closing.close()

    def feed(self, only: Placed | None = None) -> None:
        """Connect every fed argument (of one stage) to the buffer that feeds it, as it is now."""
        for one in (only,) if only else self.stages:
            for argument, word in one.stage.feeds.items():
                stage, theirs = place_of(word)
                self.runnables[one.stage.name].share(argument, self.runnables[stage], theirs)

    def upload(self, words: Sequence[str] | None = None) -> None:
        """Enqueue copies of the frame (or the named inputs) from the host."""
        for word in self.pipeline.frame if words is None else words:
            stage, argument = place_of(word)
            self.runnables[stage].put(argument, self.host[word])
            self.transfers.up += 1
            self.transfers.up_bytes += self.host[word].nbytes

    def download(self, words: Sequence[str] | None = None) -> None:
        """Enqueue copies of the results (or the named outputs) to the host."""
        for word in self.pipeline.results if words is None else words:
            stage, argument = place_of(word)
            self.runnables[stage].fetch(argument, self.host[word])
            self.transfers.down += 1
            self.transfers.down_bytes += self.host[word].nbytes

    def begin(self) -> None:
        """Restore carried state and inputs that are changed in place, as when the pipeline was prepared."""
        for word in self._changing:
            stage, argument = place_of(word)
            self.host_of(word)[...] = self.inputs[stage][argument].on(np)
            self.runnables[stage].put(argument, self.host_of(word))
        self.flow.synchronize()

    def carry(self) -> None:
        """Enqueue copies of the state for the next evaluation."""
        for word, source in self.pipeline.carries.items():
            (to, argument), (stage, theirs) = place_of(word), place_of(source)
            self.runnables[to].take(argument, self.runnables[stage], theirs)

    def host_of(self, word: str) -> np.ndarray:
        """Return the host's array of a buffer, made on first use; inputs hold their initial values."""
        if word not in self.host:
            self.host[word] = self._host_array(word)
        return self.host[word]

    def _host_array(self, word: str) -> np.ndarray:
        stage, argument = place_of(word)
        case = self.runnables[stage].case
        array = self.flow.host_array(case.sizes.shape(argument), case.spec.argument(argument).dtype)
        if argument in self.inputs[stage]:
            array[...] = self.inputs[stage][argument].on(np)
        return array

    def _inputs(self, one: Placed, seed: int) -> dict[str, InputArray]:
        """Return the kernel's inputs, replaced by the stage's values where it has any."""
        drawn = one.case.inputs(seed)
        rng = np.random.default_rng((seed, len(one.stage.name)))
        for name, value in one.stage.values.items():
            where = f"{self.pipeline.name}: {name} of {one.stage.name}"
            value = arguments.call(value, {**self.axes, "rng": rng}, where) if callable(value) else value
            array = one.case.spec.argument(name)
            drawn[name] = given(np.broadcast_to(np.asarray(value), one.case.sizes.shape(name)), array.dtype)
        return drawn


def _in_place(stages: Sequence[Placed]) -> list[str]:
    """Return the words of inputs that their stage writes."""
    return [f"{stage.stage.name}.{array.name}" for stage in stages for array in stage.case.spec.inputs if array.writes]


# Forms: ways to run a prepared pipeline. Calling a form enqueues one evaluation.
#
# per_call      every stage brings its inputs from the host and takes its outputs back: the published host methods
# one_stream    everything stays on the device, stage after stage
# streams       the same, independent stages side by side
# graph         that, captured once and replayed
# allocating    one stream; every output is allocated anew, as by a program that keeps no buffers

FORMS = ("per_call", "one_stream", "streams", "graph", "allocating")


def require_form(name: str) -> None:
    """Raise UsageError unless there is such a form."""
    if name not in FORMS:
        raise unknown("form", name, FORMS)


def form(name: str, prepared: Prepared) -> Callable[[], None]:
    """Return one evaluation in that form. UsageError for an unknown one, BackendUnavailable without graphs."""
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
        self._calls = [(self._inputs(stage), self._outputs(stage), stage) for stage in prepared.stages]

    def __call__(self) -> None:
        prepared = self._prepared
        for inputs, outputs, one in self._calls:
            runnable = prepared.runnables[one.stage.name]
            for argument, word in inputs:
                runnable.put(argument, prepared.host[word])
                prepared.transfers.up += 1
                prepared.transfers.up_bytes += prepared.host[word].nbytes
            runnable()
            prepared.download(outputs)
            prepared.flow.synchronize()
        for word, source in prepared.pipeline.carries.items():
            prepared.host[word][...] = prepared.host[source].reshape(prepared.host[word].shape)

    def _inputs(self, one: Placed) -> list[tuple[str, str]]:
        """Return every input with the word of the host's array that it comes from."""
        feeds = one.stage.feeds
        found = [
            (array.name, feeds.get(array.name, f"{one.stage.name}.{array.name}")) for array in one.case.spec.inputs
        ]
        for _, word in found:
            self._prepared.host_of(word)
        return found

    def _outputs(self, one: Placed) -> list[str]:
        words = [f"{one.stage.name}.{array.name}" for array in one.case.spec.outputs]
        for word in words:
            self._prepared.host_of(word)
        return words


class _Streams:
    """Runs lanes side by side: all wait for lane 0 to begin, lane 0 for all of them at the end."""

    def __init__(self, prepared: Prepared) -> None:
        self._prepared, flow = prepared, prepared.flow
        self._fork = Fork(flow, sorted({lane.number for lane in prepared.lanes} - {0}))
        awaited = {before for lane in prepared.lanes for before in lane.after}
        self._reached = {position: flow.point() for position in awaited}

    def __call__(self) -> None:
        with self._fork:
            for position, runnable in enumerate(self._prepared.runnables.values()):
                self._stage(position, runnable)
        self._prepared.carry()

    def _stage(self, position: int, runnable: Runnable) -> None:
        flow, lane = self._prepared.flow, self._prepared.lanes[position]
        for before in lane.after:
            flow.wait(lane.number, self._reached[before])
        with flow.lane(lane.number):
            runnable()
        if position in self._reached:
            flow.reached(self._reached[position], lane.number)


class _Allocating:
    """Gives outputs new memory, and their readers the new buffers; carried state stays where it is."""

    def __init__(self, prepared: Prepared) -> None:
        self._prepared = prepared

    def __call__(self) -> None:
        prepared = self._prepared
        for stage in prepared.stages:
            runnable = prepared.runnables[stage.stage.name]
            runnable.renew([array.name for array in stage.case.spec.outputs if not array.reads])
            prepared.feed(stage)
            runnable()
        prepared.carry()


def _graph(prepared: Prepared) -> Callable[[], None]:
    """Capture the streams as one graph, after an evaluation: code must be loaded before it is captured."""
    evaluate = _Streams(prepared)
    evaluate()
    return prepared.flow.captured(evaluate)


def results_of(prepared: Prepared) -> dict[str, np.ndarray]:
    """Return the results that were last downloaded, by word."""
    return {word: prepared.host[word] for word in prepared.pipeline.results}
