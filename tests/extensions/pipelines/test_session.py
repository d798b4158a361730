"""The session of a worker on a pretended device: measurements, and reasons of wrong and unavailable forms."""

import pytest

from prism_bench.backends.numpy_reference import NumpyBackend
from prism_bench.errors import BackendUnavailable
from prism_bench.extensions.pipelines import session as sessions
from prism_bench.extensions.pipelines.session import PipelineSession
from tests.built_in import CATALOGUE
from tests.extensions.pipelines.watched_flow import WatchedFlow


class Pretended(NumpyBackend):
    """NumPy with the name and the graphs of a device."""

    name = "cuda"

    def flow(self):
        return WatchedFlow()


class NoCupti:
    """A tracer without a tool."""

    def profile(self, name, prepared, evaluate):
        return {"tool": "cupti", "values": {"overlap_share": {"value": None, "unit": "1", "reason": f"not for {name}"}}}


@pytest.fixture
def session(monkeypatch):
    monkeypatch.setattr(sessions, "PipelineTracer", NoCupti)

    def make(first=True, backend=None):
        return PipelineSession(backend or Pretended(), CATALOGUE, "small", first=first)

    return make


def metrics(result):
    return {(measurement.metric, measurement.subject) for measurement in result.measurements}


def test_first_process_only_verifies_traces_and_times_the_cpu(session):
    result = session().task("dendritic:one_stream")
    assert ("ok", "dendritic:one_stream[neurons=5,dendrites=3,inputs=8]") == (result.status, result.name)
    assert {("wall_time", "cpu")} == metrics(result)
    assert 5 == len(result.verification)
    assert "not for dendritic:one_stream" == result.profile["values"]["overlap_share"]["reason"]
    assert {"up": 1, "up_bytes": 480, "down": 2, "down_bytes": 25} == result.code["transfers"]


def test_later_processes_only_time(session):
    result = session(first=False).task("dendritic:graph")
    assert {("end_to_end_time", "kernel"), ("steady_time", "kernel"), ("launch_time", "kernel")} == metrics(result)
    assert ((), {}) == (result.verification, result.profile)


def test_per_call_form_has_no_steady_time(session):
    assert {("end_to_end_time", "kernel")} == metrics(session(first=False).task("dendritic:per_call"))


def test_stages_are_verified_once_for_all_forms(session, monkeypatch):
    seen, checked = [], sessions.check_stages
    monkeypatch.setattr(sessions, "check_stages", lambda prepared: seen.append(1) or checked(prepared))
    opened = session()
    for form in ("one_stream", "streams"):
        opened.task(f"dendritic:{form}")
    assert [1] == seen


def test_a_wrong_stage_has_no_time(session, monkeypatch):
    entry = {"passed": False, "output": "soma.spikes", "differing": 1, "compared": 5, "actual": 1.0, "expected": 0.0,
             "tolerance": "exact"}  # fmt: skip
    monkeypatch.setattr(sessions, "check_stages", lambda prepared: [entry])
    result = session().task("dendritic:one_stream")
    assert ("wrong", ()) == (result.status, result.measurements)
    assert "soma.spikes: 1 of 5 elements differ, the worst is 1, reference 0 (exact)" in result.reason


@pytest.mark.parametrize(
    ("error", "status"), [(MemoryError("wants 1 PB"), "skipped"), (BackendUnavailable("no graphs"), "skipped")]
)
def test_unavailable_pipeline_is_skipped_with_its_reason(session, monkeypatch, error, status):
    class Broken(Pretended):
        def prepare(self, case, inputs):
            raise error

    result = session(backend=Broken()).task("dendritic:one_stream")
    assert (status, True) == (result.status, str(error) in result.reason)
