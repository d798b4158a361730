"""Records of every kind of run come from one builder; their stored fields stay what they were, byte for byte."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from prism_bench.backends import open_backend
from prism_bench.catalogue import discover
from prism_bench.io.files import default_folder
from prism_bench.record import identity
from prism_bench.record.run_record import encode
from prism_bench.run.job import Run
from prism_bench.run.settings import RecordBuilder, RunClock, RunSpan, Settings, catalogue_name
from prism_bench.run.task_run import ComparisonSide, TaskPlan, measure_sides
from prism_bench.workflows.profiling import record_of_profiles
from tests.run.conftest import scripted
from tests.run.test_task_run import PLACE, Workers

TOYS = Path(__file__).parent.parent / "toys"
SPAN = RunSpan(datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC), 12.345, True)
STORED = (
    '{"schema": 1, "created": "2026-01-02T03:04:05", "backend": "null", "machine": {"id": "bench-1"}, '
    '"software": {"python": "3.12"}, "protocol": %s, "commit": "c0ffee", "dirty": true, "catalogue": "TOYS", '
    '"complete": %s, "duration": 12.3, "monitor": %s, "tuning": {}}'
)
OF_RUN = '{"version": 1, "processes": 2, "seed": 0, "seeds": [0, 1], "criteria": {}}'
OF_TASKS = '{"version": 1, "of": "pipelines", "processes": 2}'


@pytest.fixture(autouse=True)
def circumstances(monkeypatch):
    """One machine, commit and clock."""
    monkeypatch.setattr(identity, "machine", lambda facts: {"id": "bench-1"})
    monkeypatch.setattr(identity, "software", lambda facts: {"python": "3.12"})
    monkeypatch.setattr(identity, "commit_of", lambda folder: ("c0ffee", True))
    monkeypatch.setattr(RunClock, "span", lambda self, complete: SPAN._replace(complete=complete))


def stored(record):
    """The record as it is stored, without its cases."""
    plain = {key: value for key, value in encode(record).items() if key != "cases"}
    return json.dumps(plain).replace(str(TOYS), "TOYS")


@pytest.fixture
def toys():
    return discover(TOYS)


def test_a_run_of_cases(toys):
    run = Run(toys, "null", Settings(processes=2, criteria={}))
    run.take({"facts": {"device": "toy"}, "monitor": {"hertz": 10}}, 0, [])
    assert STORED % (OF_RUN, "true", '[{"hertz": 10}]') == stored(run.record(SPAN))
    assert STORED % (OF_RUN, "false", '[{"hertz": 10}]') == stored(run.record(SPAN._replace(complete=False)))


def test_a_run_of_tasks(toys, monkeypatch):
    monkeypatch.setattr("prism_bench.run.pool.EventWorker", scripted(Workers()))
    plan = TaskPlan(toys, "null", ("image:graph",), PLACE, processes=2)
    record = measure_sides(plan, [ComparisonSide("a")])["a"]
    assert STORED % (OF_TASKS, "true", "[]") == stored(record)


def test_profiles(toys):
    cases = toys.cases(labels=("S0",))
    record = record_of_profiles(toys, open_backend("null"), cases, {cases[0].task: {"tool": "ncu"}})
    assert STORED % ("{}", "true", "[]") == stored(record)
    assert ["ok", *["failed"] * (len(cases) - 1)] == [case.status for case in record.cases]
    reasons = {cases[1].task: "Warp is not installed"}
    record = record_of_profiles(toys, open_backend("null"), cases, {cases[0].task: {"tool": "ncu"}}, reasons)
    assert ("skipped", "Warp is not installed") == (record.cases[1].status, record.cases[1].reason)


def test_the_built_in_catalogue_has_a_name():
    assert ("built-in", "/elsewhere") == (catalogue_name(default_folder()), catalogue_name(Path("/elsewhere")))


def test_facts_of_software_come_from_the_backend(toys, monkeypatch):
    monkeypatch.setattr(identity, "software", lambda facts: {"given": facts})
    record = RecordBuilder(toys, "null", {"software": {"cuda": "13"}}).build(SPAN, (), protocol={})
    assert {"given": {"cuda": "13"}} == record.software
