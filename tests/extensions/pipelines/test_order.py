"""The order of stages on several lanes, in one evaluation and from one to the next."""

import pytest

from prism_bench.backends.numpy_reference import NumpyBackend
from prism_bench.extensions.pipelines.definitions import KNOWN
from prism_bench.extensions.pipelines.pipeline import Prepared, form, place_of
from tests.built_in import CATALOGUE
from tests.extensions.pipelines.toys import TOY
from tests.extensions.pipelines.watched_flow import WatchedFlow


class Watched(NumpyBackend):
    """NumPy on a flow that keeps the order of its work."""

    def flow(self):
        return WatchedFlow()


@pytest.fixture(params=[TOY, KNOWN["image"], KNOWN["together"], KNOWN["dendritic"]], ids=lambda pipeline: pipeline.name)
def watched(request, monkeypatch):
    """A prepared pipeline whose stages report to the flow that they were enqueued."""
    with Prepared(request.param, "small", CATALOGUE, Watched()) as prepared:
        for name, runnable in prepared.runnables.items():
            prepared.runnables[name] = _Telling(prepared.flow, name, runnable)
        yield prepared


class _Telling:
    def __init__(self, flow, name, runnable):
        self._flow, self._name, self._runnable = flow, name, runnable

    def __call__(self):
        self._flow.enqueue(self._name)
        self._runnable()

    def take(self, name, other, theirs):
        self._flow.enqueue(f"carry into {self._name}")
        self._runnable.take(name, other._runnable, theirs)

    def __getattr__(self, name):
        return getattr(self._runnable, name)


@pytest.mark.parametrize("name", ["streams", "graph"])
def test_fed_stage_comes_after_its_feeder(watched, name):
    evaluate = form(name, watched)
    evaluate()
    for stage in watched.stages:
        for buffer in stage.stage.feeds.values():
            assert watched.flow.comes_after(stage.name, place_of(buffer)[0])


def test_kernels_are_launched_before_their_capture(watched, monkeypatch):
    """Code that is loaded during a capture would not be in the graph."""
    held = []
    monkeypatch.setattr(watched.flow, "captured", lambda call: held.extend(name for name, *_ in watched.flow.work))
    form("graph", watched)
    assert set(watched.runnables) <= set(held)


def test_carries_come_after_everything_and_the_next_evaluation_after_them(watched):
    evaluate = form("streams", watched)
    evaluate()
    names = [stage.name for stage in watched.stages]
    carried = [name for name, *_ in watched.flow.work if name.startswith("carry")]
    assert len(watched.pipeline.carries) == len(carried)
    assert all(watched.flow.comes_after(carry, name) for carry in carried for name in names)
    last = names[-1] if not carried else carried[-1]
    first_done = [work for work in watched.flow.work if work[0] == last][-1]
    evaluate()
    for name in names:
        known = [work for work in watched.flow.work if work[0] == name][-1][3]
        assert known.get(first_done[1], 0) >= first_done[2]


def test_lane_0_ends_after_all_lanes(watched):
    form("streams", watched)()
    watched.flow.enqueue("download")
    assert all(watched.flow.comes_after("download", stage.name) for stage in watched.stages)


def test_some_lanes_run_side_by_side():
    with Prepared(KNOWN["image"], "small", CATALOGUE, Watched()) as prepared:
        for name, runnable in prepared.runnables.items():
            prepared.runnables[name] = _Telling(prepared.flow, name, runnable)
        form("streams", prepared)()
        assert not prepared.flow.comes_after("entropy", "topology")
