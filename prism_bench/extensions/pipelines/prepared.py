"""Prepared pipeline: every stage on a backend, fed by the buffers of those before it, its frame in host memory."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from prism_bench.backends import Backend, Runnable
from prism_bench.catalogue import Catalogue
from prism_bench.extensions.pipelines.lanes import Lane, lanes
from prism_bench.extensions.pipelines.pipeline import Pipeline, Placed, place_of, placed
from prism_bench.spec import byname
from prism_bench.spec.inputs import InputArray, given


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
        self.inputs = {one.stage.name: self._inputs(one, seed) for one in self.stages}
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
            value = byname.call(value, {**self.axes, "rng": rng}, where) if callable(value) else value
            array = one.case.spec.argument(name)
            drawn[name] = given(np.broadcast_to(np.asarray(value), one.case.sizes.shape(name)), array.dtype)
        return drawn


def _in_place(stages: Sequence[Placed]) -> list[str]:
    """Return the words of inputs that their stage writes."""
    return [f"{one.stage.name}.{array.name}" for one in stages for array in one.case.spec.inputs if array.writes]
