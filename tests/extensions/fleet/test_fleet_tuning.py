"""Tuning on a fleet of null-backend workers: a killed one, an interrupt, and what travels between run and job."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from prism_bench.backends.null import SCRIPT
from prism_bench.catalogue import discover
from prism_bench.errors import BackendUnavailable
from prism_bench.extensions.fleet import pairs
from prism_bench.extensions.fleet.catalogue_run import SECONDS
from prism_bench.extensions.fleet.cluster import parse
from prism_bench.extensions.fleet.dispatch import BoardState, Dispatcher, boards_of
from prism_bench.extensions.fleet.fleet import JobChannel, opened
from prism_bench.extensions.fleet.pairs import TuningWork, encoded, tune_on, tuning_groups_of, tuning_measure
from prism_bench.io.files import INTERVAL
from prism_bench.spec.case import Device
from prism_bench.workflows.tuning_session import Bench, TuningPlan
from tests.extensions.fleet.test_fleet import kill

TUNABLE = Path(__file__).parents[2] / "tunable"
HALF = {"*@block=64,items=1": {"seconds": 5e-7, "noise": 0.0}, "*": {"seconds": 1e-6, "noise": 0.0}}
BOARD = SimpleNamespace(title="gpu1 x", key="x", device=Device())


@pytest.fixture(scope="module", autouse=True)
def scripted(tmp_path_factory):
    """The script that makes one configuration twice as fast, in this process and in the workers that start later."""
    path = tmp_path_factory.mktemp("script") / "script.json"
    path.write_text(json.dumps(HALF))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(TUNABLE.parent.parent))
        patch.setenv(SCRIPT, str(path))
        yield


@pytest.fixture
def work(monkeypatch):
    """The work of tuning the toy at two sizes, each case a job."""
    monkeypatch.setenv(SECONDS, "0")
    monkeypatch.setenv(INTERVAL, "0")
    catalogue = discover(TUNABLE)
    cases = [case for case in catalogue.cases(labels=("S0", "S1")) if case.tunable]
    assert 2 == len(cases)
    return TuningWork(Bench("null", catalogue), TuningPlan(processes=2), cases, Path("no-noise"))


class Channel(JobChannel):
    """Keeps what a job sends, as it travels."""

    def __init__(self):
        self.events = []

    def send(self, event):
        self.events.append(json.loads(json.dumps(event)))


def carried_out(work, group):
    """Return the events and the result of the job for a group."""
    channel = Channel()
    result = tuning_measure(json.loads(json.dumps(work.order(BOARD, [group]))), channel)
    return channel.events, json.loads(json.dumps(result))


def test_a_killed_worker_costs_its_job_alone_and_all_cases_are_decided(work):
    left, kept = [1], []
    work.keep = kept.append

    with opened(parse("local", 2), needs_gpu=False) as fleet:

        def report(progress):
            for board in progress.boards:
                if left[0] and "tripled" in board.line:
                    left[0] -= 1
                    kill(fleet, board.title)

        boards, _ = boards_of(fleet, "null", work.bench.catalogue.folder)
        result = tune_on(fleet, boards, work, report)
    assert [0] == left
    assert result.complete and () == result.left and not work.given_up
    assert [case.name for case in work.cases] == [one.searched.default.name for one in result.decisions]
    for one in result.decisions:
        assert one.settled and {"block": 64, "items": 1} == one.chosen.configuration
        assert 5 == one.searched.tried == one.searched.space
    assert kept and not any(version.complete for version in kept)


def test_a_job_sends_what_it_has_after_the_search_and_every_round(work):
    group = tuning_groups_of(work, Device())[0]
    events, result = carried_out(work, group)
    found = [event["found"] for event in events if "found" in event]
    assert [0, 2, 2] == [len(one["again"]) for one in found], "default and the one quicker, after each of two rounds"
    assert result == found[-1]
    assert any("tripled" in event.get("task", "") for event in events)
    assert result == json.loads(json.dumps(encoded(pairs.decoded(result, work.bench.catalogue))))


def test_an_interrupt_keeps_what_boards_have_sent(work, monkeypatch):
    first, second = tuning_groups_of(work, Device())
    (events, result), (later, _) = carried_out(work, first), carried_out(work, second)
    calls = []

    class Interrupted(Dispatcher):
        def run(self):
            self.work.done(BOARD, [first], result)
            raise KeyboardInterrupt

    def messages(seconds):
        calls.append("drain")
        work.event(BOARD, [second], next(one for one in later if "found" in one), BoardState("x"))
        return []

    monkeypatch.setattr(pairs, "Dispatcher", Interrupted)
    fleet = SimpleNamespace(messages=messages, stop=lambda: calls.append("stop"))
    found = tune_on(fleet, [BOARD], work, lambda _: None)
    assert ["drain", "stop"] == calls
    assert not found.complete and () == found.left
    assert [True, False] == [one.settled for one in found.decisions], "the second has no new times"
    assert events


def test_a_lost_job_is_tuned_anew_and_one_that_is_given_up_is_left_and_named(work):
    first, second = tuning_groups_of(work, Device())
    events, result = carried_out(work, first)
    work.event(BOARD, [first], next(one for one in events if "found" in one), BoardState("x"))
    assert [first] == work.lost(BOARD, [first])
    with pytest.raises(BackendUnavailable, match="nothing was tuned: no job has found anything"):
        work.result(complete=False)
    work.done(BOARD, [first], result)
    work.give_up(BOARD, second, "3 workers were lost")
    found = work.result(complete=True)
    assert (False, [second.tasks[0]]) == (found.complete, [case.task for case in found.left])
    assert [f"{second.tasks[0]}: 3 workers were lost"] == work.given_up


def test_the_seconds_of_a_group_follow_from_its_configurations(work):
    (one, _) = tuning_groups_of(work, Device())
    assert 5 * pairs.TRIAL_SECONDS + 2 * 4 * pairs.AGAIN_SECONDS == one.seconds
    work.plan = replace(work.plan, budget=2)
    assert tuning_groups_of(work, Device())[0].seconds < one.seconds
