"""Configurations tried in one process after another: verified, timed, refused; the best few in turn in fresh ones."""

import json
from pathlib import Path

import pytest

from prism_bench.backends.null import SCRIPT
from prism_bench.catalogue import discover
from prism_bench.errors import BackendUnavailable
from prism_bench.run.settings import Settings
from prism_bench.run.worker import _cases
from prism_bench.spec.case import edges_task
from prism_bench.workflows.tuning_session import Bench, Trials, timed_in_turn

TUNABLE = discover(Path(__file__).parents[1] / "tunable")
CASE = TUNABLE.case("tripled[n=1000]")


@pytest.fixture
def bench(monkeypatch, tmp_path):
    """A function that gives a bench on the null backend, scripted."""

    def make(script=None, timeout=20.0, backend="null"):
        path = tmp_path / "script.json"
        path.write_text(json.dumps(script or {}))
        monkeypatch.setenv(SCRIPT, str(path))
        return Bench(backend, TUNABLE, timeout)

    return make


def block(size):
    return CASE.configured({"block": size})


def test_one_process_tries_all_and_goes_on_after_a_crash_and_a_hang(bench):
    script = {
        "*@block=64,items=1": {"crash": True},
        "*@block=256,items=1": {"hang": True},
        "*@block=128,items=2": {"seconds": 5e-7, "noise": 0.0},
        "*@block=64,items=2": {"wrong": True},
        "*": {"seconds": 1e-6, "noise": 0.0},
    }
    with Trials(bench(script, timeout=1.0)) as trials:
        found = [trials(case) for case in (block(64), block(256), CASE, CASE.configured({"items": 2}))]
        wrong = trials(CASE.configured({"block": 64, "items": 2}))
        assert "no device (scripted times)" == trials.facts["device"]
    assert ["crashed", "timed out", "ok", "ok"] == [trial.result.status for trial in found]
    assert [None, None, 1e-6, 5e-7] == [trial.seconds and pytest.approx(trial.seconds) for trial in found]
    assert "tripled[n=1000]@block=256,items=1: no answer within 1 s" == found[1].reason
    assert ("wrong", None) == (wrong.result.status, wrong.seconds)
    assert "on null: y[" in wrong.reason
    assert {"block": 128, "items": 2} == found[3].result.configuration


def test_a_size_that_no_workload_has_may_be_tried(bench):
    with Trials(bench()) as trials:
        assert ("tripled[n=77]", "ok") == _ended(trials(TUNABLE.anywhere("tripled[n=77]")))


def _ended(trial):
    return trial.result.name, trial.result.status


def test_edges_are_looked_at_as_the_case_is_launched(bench):
    with Trials(bench({"tripled[n=300]@block=64,items=1": {"wrong": True}})) as t:
        assert None is t.at_edges(block(256))
        assert "tripled[n=300] on null: y[" in t.at_edges(block(64))


def test_what_is_tried_may_be_compiled_ahead_with_its_edges(bench):
    order = bench().order(Settings(), verifies=True, ahead=[block(64).task, edges_task(block(64))])
    sizes = [case.workload["n"] for case in _cases(TUNABLE, order["ahead"])]
    assert 1000 in sizes
    assert len(sizes) == 1 + len(TUNABLE.edges_of("tripled@block=64,items=1"))
    assert {64} == {case.configuration["block"] for case in _cases(TUNABLE, order["ahead"])}


def test_a_backend_that_does_not_start_says_so(bench):
    with Trials(bench(backend="cuda")) as trials, pytest.raises(BackendUnavailable, match="cuda does not start"):
        trials(CASE)


def test_sides_take_turns_in_fresh_processes(bench):
    seen = []
    script = {"*@block=64,*": {"seconds": 5e-7}, "*@block=256,*": {"memory": True}}
    sides = [[CASE], [block(64)], [block(256)], []]
    told = lambda number, case: seen.append((number, case.task))  # noqa: E731
    first, found = timed_in_turn(bench(script), sides, 2, report=told)
    tasks = [side[0].task for side in sides[:3]]
    assert [*((1, task) for task in tasks), *((2, task) for task in tasks[::-1])] == seen
    assert set(tasks[:2]) == set(found), "what does not fit has no time"
    assert [1, 1] == [len(one.processes) for one in first.values()]
    assert [2, 2] == [len(one.processes) for one in found.values()]
    assert 0.5 == pytest.approx(found[tasks[1]].median / found[tasks[0]].median, rel=0.02)


def test_no_round_starts_that_would_end_too_late(bench):
    (found,) = timed_in_turn(bench(), [[CASE]], 5, end=0.0)
    assert 1 == len(found[CASE.task].processes)
