"""A whole run on the scripted backend, its worker watching the scripted GPU: the record carries what was seen."""

import json
from pathlib import Path

import pytest

from prism_bench import run as runs
from prism_bench.backends.null import GPU, SCRIPT
from prism_bench.catalogue import discover
from prism_bench.measure import Criterion
from prism_bench.monitor import Rules
from prism_bench.monitor.executions import ExecutionJournal
from prism_bench.record import store
from prism_bench.run.settings import Watching
from tests.monitor.conftest import HOPPER

TOYS = Path(__file__).parent.parent / "toys"
QUICK = dict.fromkeys(("cold_time", "hot_time", "wall_time"), Criterion(min_samples=3, max_samples=3))


@pytest.fixture
def run(gpu, seen, tmp_path, monkeypatch):
    """A function that runs the toys on the null backend, which pretends to be on the scripted GPU."""
    monkeypatch.setenv(GPU, HOPPER["uuid"])
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(SCRIPT, raising=False)

    def go(report=lambda _: None, script=None, **watching):
        if script:
            path = tmp_path / "script.json"
            path.write_text(json.dumps(script))
            monkeypatch.setenv(SCRIPT, str(path))
        found = discover(TOYS)
        settings = runs.Settings(processes=1, criteria=QUICK, watching=Watching(**{"hertz": 100.0, **watching}))
        record = runs.run(found, "null", found.cases((), ("S0",)), settings, report)
        return store.read(store.save(record, tmp_path / "record.json.gz"))

    return go


def measurements(record):
    return [one for case in record.cases for one in case.measurements]


def test_every_measurement_of_a_run_carries_its_evidence(run):
    record = run()
    assert record.complete
    assert measurements(record)
    for one in measurements(record):
        (evidence,) = one.evidence
        assert one.valid
        assert evidence.readings >= 1
        assert (1.98e9, 1.98e9, 1.98e9) == evidence.spans["sm_clock"]
        assert 41 == evidence.highest("temperature")
    (monitor,) = record.monitor
    assert 0 < monitor["beats"]
    assert 0 < monitor["cpu_share"]


def test_unplugging_the_gpu_in_the_middle_loses_nothing(run, gpu):
    """One beat at the start, then a look at the end of each window: the fourth window finds the device gone."""
    gpu.set(0, lost_after=4)
    started = []
    record = run(started.append, hertz=0.01)
    timed = [one.task for one in started if not one.task.startswith("edges:")]
    assert record.complete
    assert 4 == len(timed)
    assert {"ok"} == {case.status for case in record.cases}
    assert all(one.valid and one.samples for one in measurements(record))
    first, last = (record.case(timed[place]).measurement("hot_time") for place in (0, -1))
    assert (None, ()) == (first.evidence[0].lost, first.notes)
    assert last.evidence[0].lost.endswith("GPU is lost")
    assert (f"evidence {last.evidence[0].lost}",) == last.notes
    assert [last.evidence[0].lost] == record.monitor[0]["lost"]


def test_a_throttled_run_is_invalid_with_its_reason(run, gpu):
    gpu.set(0, reasons=0x40)
    record = run(rules=Rules(repeats=1, rest=0.0))
    doubtful = [one for one in measurements(record) if one.metric != "launch_time"]
    assert {(False, "throttled throughout: hw thermal")} == {(one.valid, one.reason) for one in doubtful}
    assert all(("measured again, because throttled throughout: hw thermal",) == one.notes for one in doubtful)


def test_a_watch_that_cannot_be_kept_says_why_and_the_run_goes_on(run, gpu):
    gpu.library(init="!9")
    record = run()
    assert record.complete
    assert all(one.valid for one in measurements(record))
    assert "Driver Not Loaded" in measurements(record)[0].evidence[0].missing["readings"]
    assert "Driver Not Loaded" in record.monitor[0]["missing"]


def test_nobody_watches_at_0_hertz(run):
    found = discover(TOYS)
    settings = runs.Settings(processes=1, criteria=QUICK, watching=Watching(hertz=0.0))
    record = runs.run(found, "null", found.cases(("triple",), ("S0",)), settings)
    assert {()} == {one.evidence for one in measurements(record)}


def test_a_monitor_elsewhere_sees_what_was_executed(run):
    run(script={"triple[n=1000]": {"wrong": True}})
    (found, *_), seen = [next(ExecutionJournal().follow(0.0))], {}
    for one in found:
        seen.setdefault(one.kernel, []).append(one.succeeded)
    assert [False] == seen["triple[n=1000]"]
    assert [True] * 6 == seen["double[n=1000]"]
