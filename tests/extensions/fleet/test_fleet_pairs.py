"""Comparisons on a fleet: what a job is, and what remains of lost ones."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from prism_bench.analysis.compare.verdict import RULES
from prism_bench.backends.null import SCRIPT
from prism_bench.catalogue import discover
from prism_bench.errors import BackendUnavailable
from prism_bench.extensions.fleet import pairs
from prism_bench.extensions.fleet.dispatch import BoardState, Dispatcher
from prism_bench.extensions.fleet.fleet import JobChannel
from prism_bench.extensions.fleet.pairs import PairWork, groups_of, measure, measure_pairs
from prism_bench.record.run_record import encode
from prism_bench.run.builds import Build
from prism_bench.workflows.pairs import PairEffort, PairJudge
from tests.extensions.fleet.test_fleet import TOYS

BOARD = SimpleNamespace(title="gpu1 x", host={"cpu": "x"}, software={"numpy": "1"}, key="x")


@pytest.fixture
def work(monkeypatch):
    """The work of comparing the toys with themselves on the null backend, in one pair of processes."""
    monkeypatch.delenv(SCRIPT, raising=False)
    catalogue = discover(TOYS)
    builds = tuple(Build(side, catalogue, tuple(catalogue.cases(labels=("S0",)))) for side in "AB")
    return PairWork(builds, PairEffort("null", 1), (1,), PairJudge("none", RULES, "builds"))


class Channel(JobChannel):
    """Keeps what a job sends."""

    def __init__(self):
        self.events = []

    def send(self, event):
        self.events.append(event)


def kernel(work, name):
    return next(group for group in groups_of(work) if name in group.kernels)


def test_a_job_measures_both_sides_of_its_kernels_and_parts_make_one_record(work):
    assert {"double", "triple", "nothing"} == {name for group in groups_of(work) for name in group.kernels}
    for name in ("double", "triple"):
        group, channel = kernel(work, name), Channel()
        order = json.loads(json.dumps(work.order(BOARD, [group])))  # as it travels
        assert [list(group.tasks)] * 2 == order["tasks"]
        result = measure(order, channel)
        assert any("verifying" in str(event) or "A: " in str(event) for event in channel.events)
        work.done(BOARD, [group], json.loads(json.dumps(result)))
    a, b = work.records(complete=True)
    assert a.complete and b.complete
    timed = {case.name for case in a.cases if case.measurements}
    assert {"double[n=1000]", "double:by_adding[n=1000]", "triple[n=1000]"} == timed
    assert {case.name for case in b.cases} == {case.name for case in a.cases}
    assert {"cpu": "x"} == a.machine["host"] and {"numpy": "1"} == dict(b.software)
    assert 3 == work.finished


def test_a_lost_job_is_measured_anew_as_a_whole_and_one_that_is_given_up_is_named(work):
    group = kernel(work, "double")
    assert [group] == work.lost(BOARD, [group])
    work.give_up(BOARD, group, "3 workers were lost")
    with pytest.raises(BackendUnavailable, match="nothing was measured: double: 3 workers were lost"):
        work.records(complete=True)


def test_an_interrupt_keeps_the_jobs_that_have_ended(work, monkeypatch):
    record = measure(work.order(BOARD, [kernel(work, "triple")]), Channel())

    class Interrupted(Dispatcher):
        def run(self):
            self.work.event(BOARD, [], {"task": "triple"}, BoardState("x"))
            self.work.done(BOARD, [kernel(self.work, "triple")], record)
            raise KeyboardInterrupt

    monkeypatch.setattr(pairs, "Dispatcher", Interrupted)
    stopped = []
    fleet = SimpleNamespace(messages=lambda seconds: [], stop=lambda: stopped.append(True))
    a, b = measure_pairs(fleet, [BOARD], work, lambda _: None)
    assert [True] == stopped
    assert not a.complete and not b.complete
    assert "triple[n=1000]" in {case.name for case in b.cases}


def test_a_job_judges_by_the_rules_of_the_command(work):
    group = kernel(work, "triple")
    plain = measure(work.order(BOARD, [group]), Channel())["records"]
    a, b = (pairs.decode(one, "x") for one in plain)
    one_process = replace(work.judge, metric="cold_time").undecided((a, b))
    assert "triple[n=1000]" in one_process[0] and one_process[0] == one_process[1]
    assert encode(a)["complete"]


def test_a_folder_that_a_worker_lacks_is_named(work):
    order = work.order(BOARD, [kernel(work, "triple")])
    order["sides"][1]["catalogue"] = "/nowhere"
    with pytest.raises(Exception, match="/nowhere: this worker of the fleet has no such folder"):
        measure(order, Channel())
