"""The ways to run a prepared pipeline. Called, a form enqueues one evaluation.

per_call      every stage brings its inputs from the host and takes its outputs back: the documents' host methods
one_stream    everything stays on the device, stage after stage
streams       the same, what does not depend on one another side by side
graph         that, captured once and replayed
allocating    one stream; every output is allocated anew, as by a program that keeps no buffers
"""

from collections.abc import Callable

from prism_bench.backends.base import Fork
from prism_bench.errors import unknown
from prism_bench.extensions.pipelines.prepared import Prepared

FORMS = ("per_call", "one_stream", "streams", "graph", "allocating")
RESIDENT = ("one_stream", "streams", "graph")


def require_form(name: str) -> None:
    """A UsageError unless there is such a form."""
    if name not in FORMS:
        raise unknown("form", name, FORMS)


def form(name: str, prepared: Prepared) -> Callable[[], None]:
    """One evaluation in that form. UsageError for an unknown one, BackendUnavailable without graphs."""
    require_form(name)
    return {
        "per_call": lambda: _PerCall(prepared),
        "one_stream": lambda: _one_stream(prepared),
        "streams": lambda: _Streams(prepared),
        "graph": lambda: _graph(prepared),
        "allocating": lambda: _Allocating(prepared),
    }[name]()


def _one_stream(prepared):
    runnables = tuple(prepared.runnables.values())

    def evaluate():
        for runnable in runnables:
            runnable()
        prepared.carry()

    return evaluate


class _PerCall:
    """Nothing stays on the device between two stages but memory; fed inputs come from the host as well."""

    def __init__(self, prepared):
        self._prepared = prepared
        self._calls = [(self._inputs(one), self._outputs(one), one) for one in prepared.stages]

    def __call__(self):
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

    def _inputs(self, one):
        """Every input with the word of the host's array that it comes from."""
        feeds = one.stage.feeds
        found = [
            (array.name, feeds.get(array.name, f"{one.stage.name}.{array.name}")) for array in one.case.spec.inputs
        ]
        for _, word in found:
            self._prepared.host_of(word)
        return found

    def _outputs(self, one):
        words = [f"{one.stage.name}.{array.name}" for array in one.case.spec.outputs]
        for word in words:
            self._prepared.host_of(word)
        return words


class _Streams:
    """Lanes beside one another: all wait for lane 0 to begin, lane 0 for all of them at the end."""

    def __init__(self, prepared):
        self._prepared, flow = prepared, prepared.flow
        self._fork = Fork(flow, sorted({lane.number for lane in prepared.lanes} - {0}))
        awaited = {before for lane in prepared.lanes for before in lane.after}
        self._reached = {position: flow.point() for position in awaited}

    def __call__(self):
        with self._fork:
            for position, runnable in enumerate(self._prepared.runnables.values()):
                self._stage(position, runnable)
        self._prepared.carry()

    def _stage(self, position, runnable):
        flow, lane = self._prepared.flow, self._prepared.lanes[position]
        for before in lane.after:
            flow.wait(lane.number, self._reached[before])
        with flow.lane(lane.number):
            runnable()
        if position in self._reached:
            flow.reached(self._reached[position], lane.number)


class _Allocating:
    """Outputs get new memory, and who reads them is told; carried state stays where it is."""

    def __init__(self, prepared):
        self._prepared = prepared

    def __call__(self):
        prepared = self._prepared
        for one in prepared.stages:
            runnable = prepared.runnables[one.stage.name]
            runnable.renew([array.name for array in one.case.spec.outputs if not array.reads])
            prepared.feed(one)
            runnable()
        prepared.carry()


def _graph(prepared):
    """Evaluated once as it is: what is loaded at the first launch is not loaded into a graph."""
    evaluate = _Streams(prepared)
    evaluate()
    return prepared.flow.captured(evaluate)


def results_of(prepared: Prepared) -> dict:
    """The results that were last downloaded, by word."""
    return {word: prepared.host[word] for word in prepared.pipeline.results}
