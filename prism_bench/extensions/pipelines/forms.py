"""Forms: ways to run a prepared pipeline. Calling a form enqueues one evaluation.

per_call      every stage brings its inputs from the host and takes its outputs back: the published host methods
one_stream    everything stays on the device, stage after stage
streams       the same, independent stages side by side
graph         that, captured once and replayed
allocating    one stream; every output is allocated anew, as by a program that keeps no buffers
"""

from collections.abc import Callable

import numpy as np

from prism_bench.backends import Runnable
from prism_bench.backends.base import Fork
from prism_bench.errors import unknown
from prism_bench.extensions.pipelines.pipeline import Placed
from prism_bench.extensions.pipelines.prepared import Prepared

FORMS = ("per_call", "one_stream", "streams", "graph", "allocating")


def require_form(name: str) -> None:
    """Raise a UsageError unless there is such a form."""
    if name not in FORMS:
        raise unknown("form", name, FORMS)


def form(name: str, prepared: Prepared) -> Callable[[], None]:
    """Return one evaluation in that form. UsageError for an unknown one, BackendUnavailable without graphs."""
    require_form(name)
    makers: dict[str, Callable[[Prepared], Callable[[], None]]] = {
        "per_call": _PerCall, "one_stream": _one_stream, "streams": _Streams, "graph": _graph,
        "allocating": _Allocating,
    }  # fmt: skip
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
        self._calls = [(self._inputs(one), self._outputs(one), one) for one in prepared.stages]

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
        for one in prepared.stages:
            runnable = prepared.runnables[one.stage.name]
            runnable.renew([array.name for array in one.case.spec.outputs if not array.reads])
            prepared.feed(one)
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
