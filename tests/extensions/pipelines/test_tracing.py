"""Profiles of a form by a tracer: planted activity records, and tools that fail."""

from contextlib import contextmanager

import pytest

from prism_bench.errors import BackendUnavailable
from prism_bench.extensions.pipelines.pipeline import Prepared
from prism_bench.extensions.pipelines.session import EVALUATIONS, PipelineTracer
from prism_bench.profilers import cupti
from prism_bench.profilers.timeline import COPY, KERNEL, timeline_of
from tests.built_in import CATALOGUE
from tests.extensions.pipelines.test_order import Watched
from tests.extensions.pipelines.toys import TOY


class Planted:
    """A collector with two kernels that overlap by half, and a copy, in its range."""

    made, watching = 0, False

    def __init__(self):
        Planted.made += 1
        self._name = None

    def __enter__(self):
        Planted.watching = True
        return self

    def __exit__(self, *exception):
        """Nothing to flush."""
        Planted.watching = False

    @contextmanager
    def range(self, name):
        self._name = name
        yield

    def timeline(self):
        spans = ((100, 300, KERNEL), (200, 400, KERNEL), (600, 700, COPY))
        rows = [(start, end, 0, kind, 1, 0, number, 0) for number, (start, end, kind) in enumerate(spans)]
        return timeline_of(rows, [], [(100, 1000, 0, 0, 1)], {self._name: 0, "k": 1}, source="p", tool="p")


@pytest.fixture
def prepared():
    with Prepared(TOY, "small", CATALOGUE, Watched()) as pipeline:
        yield pipeline


def test_values_are_those_of_one_evaluation(prepared, monkeypatch):
    monkeypatch.setattr(cupti, "ActivityCollector", Planted)
    calls, tracer, before = [], PipelineTracer(), Planted.made

    def made():
        assert Planted.watching, "CUPTI need not see the kernels of a graph that was there before"
        return lambda: calls.append(1)

    for name in ("toy:graph", "toy:streams"):
        profile = tracer.profile(name, prepared, made)
        values = {key: entry["value"] for key, entry in profile["values"].items()}
        assert (0.25, 2 / EVALUATIONS, 1 / EVALUATIONS) == (
            pytest.approx(values["overlap_share"]),
            values["kernels"],
            values["copies"],
        )
        assert 400e-9 / EVALUATIONS == pytest.approx(values["busy_seconds"])
    assert 2 * (1 + EVALUATIONS) == len(calls)
    assert 1 == Planted.made - before


@pytest.mark.parametrize("error", [BackendUnavailable("CUPTI is not there"), RuntimeError("CUPTI_ERROR_NOT_READY")])
def test_failed_tracer_loses_only_its_values(prepared, monkeypatch, error):
    def broken():
        raise error

    monkeypatch.setattr(cupti, "ActivityCollector", broken)
    share = PipelineTracer().profile("toy:graph", prepared, lambda: lambda: None)["values"]["overlap_share"]
    assert (None, str(error)) == (share["value"], share["reason"])
