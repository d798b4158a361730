"""`prism-bench memory`: counts without a GPU, views of records, refusals."""

from types import SimpleNamespace

import pytest

from prism_bench.cli import options
from prism_bench.extensions.memory import trace as traces
from prism_bench.extensions.memory.trace import random_trace
from prism_bench.record import store
from tests.extensions.planted_programs import program, record, trace


def test_traces_are_counted_without_a_gpu(shell, tmp_path):
    path = traces.save(random_trace(100), tmp_path / "random.json.gz")
    assert 100 == shell("memory", "--from", path, "--json").json["random"]["tracked"]["total_allocations"]
    assert "100 allocations" in shell("memory", "--from", path).out


def test_kept_records_are_shown(shell, tmp_path):
    for name, steady in (("cupy", 1e-4), ("size_class", 1.3e-4)):
        kept = record(trace(), program(steady=steady, latency=2 * steady))
        store.save(kept, store.path_for(kept, tmp_path / "kept" / name))
    result = shell("memory", "--from", tmp_path / "kept", "--json")
    assert (0, "cupy", "slower") == (result.code, result.json["default"], result.json["verdicts"]["size_class"])
    assert "not measured in these records" == result.json["missing"]["rmm"]


def test_folder_without_records_exits_2(shell, tmp_path):
    result = shell("memory", "--from", tmp_path)
    assert 2 == result.code
    assert "no records of allocators" in result.err


def test_missing_trace_exits_2(shell, tmp_path):
    result = shell("memory", "--from", tmp_path / "none.json.gz")
    assert (2, "") == (result.code, result.out)
    assert "none.json.gz: no such trace" in result.err


@pytest.fixture
def measured(monkeypatch):
    """The plans for the GPU, without a measurement: recording takes no time, and the records are planted."""
    plans = []

    def measure(plan, sides, report=None, keep=None):
        plans.append(plan)
        for side in sides:
            side.recorded = ()
        return {side.name: record(trace(), program()) for side in sides if side.name in ("cupy", "size_class")}

    monkeypatch.setattr("prism_bench.run.task_run.measure_sides", measure)
    monkeypatch.setattr(options, "choose_backend", lambda *_, **__: SimpleNamespace(name="cuda"))
    return plans


def test_records_are_saved_before_the_comparison(shell, tmp_path, measured, monkeypatch):
    monkeypatch.setattr("prism_bench.extensions.memory.replay.contest", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        shell("memory", "--records", tmp_path, "size_class")
    assert {"cupy", "size_class", "traces"} == {path.name for path in tmp_path.iterdir()}


def test_an_allocator_that_is_none_exits_2(shell):
    result = shell("memory", "size_clas")
    assert (2, "") == (result.code, result.out)
    assert "unknown allocator 'size_clas'; did you mean size_class" in result.err


def test_time_limit_includes_the_recording(shell, tmp_path, measured):
    assert 0 == shell("memory", "--records", tmp_path, "size_class", "--time-limit", "100").code
    recording, contest = measured
    assert recording.limit is None
    assert 50 < contest.limit < 100
    assert 0 == shell("memory", "--records", tmp_path, "size_class").code
    assert measured[-1].limit is None
