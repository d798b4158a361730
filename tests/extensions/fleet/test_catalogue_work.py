"""What a board of a fleet is asked to measure, and what stays of a job that was lost."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from prism_bench.catalogue import discover
from prism_bench.extensions.fleet import catalogue_run
from prism_bench.extensions.fleet.catalogue_run import CatalogueWork
from prism_bench.extensions.fleet.dispatch import BoardRefused, BoardState, CaseGroup, ceiling_groups
from prism_bench.extensions.fleet.fleet import JobChannel
from prism_bench.io.files import CACHE_REFUSED
from prism_bench.record.run_record import encode_case
from prism_bench.run import Settings
from prism_bench.run.session import result_of
from tests.extensions.fleet.test_fleet import TOYS
from tests.report.synthetic import measurement

CATALOGUE = discover(TOYS)
ANCHOR, CEILING, CASE = map(CATALOGUE.anywhere, ("triple[n=1000]", "nothing[blocks=1]", "double[n=1000]"))
(CEILINGS,) = ceiling_groups([ANCHOR, CEILING], {})
GROUP = CaseGroup(("double",), (CASE.task,), 1.0)
CLAIM = SimpleNamespace(cores=(0,))


def board(name):
    return SimpleNamespace(key=name, title=name, claim=CLAIM, versions={}, facts={"uuid": name}, host={}, software={})


@pytest.fixture
def work():
    return CatalogueWork(CATALOGUE, "null", Settings(processes=2), [CASE], anchors=[ANCHOR])


def measured(case, processes=2):
    result = result_of(case, "ok", None, measurements=[measurement("cold_time", 1e-6)])
    return [encode_case(replace(result, ceiling="bandwidth" if case is not CASE else None))] * processes


def arrive(work, where, groups, *results):
    work.order(where, groups)
    event = {"results": [one for own in results for one in own], "facts": {"uuid": where.key}}
    work.event(where, groups, event, BoardState(where.title))
    return sum(map(len, results))


def ended(work, where, groups, *results):
    count = arrive(work, where, groups, *results)
    work.done(
        where, groups, {"results": count, "facts": {"uuid": where.key}, "protocol": {}, "monitor": [], "spent": {}}
    )


def test_every_board_measures_the_anchors_in_its_first_job_alone(work):
    first, second = board("a"), board("b")
    assert [ANCHOR.task] == work.order(first, [GROUP])["anchors"] == work.order(second, [CEILINGS])["anchors"]
    ended(work, first, [GROUP], measured(ANCHOR), measured(CASE))
    assert [] == work.order(first, [CEILINGS])["anchors"]
    assert list(CEILINGS.tasks) == work.order(first, [CEILINGS])["tasks"], "who has the group measures all of it"
    assert [ANCHOR.task] == work.order(second, [GROUP])["anchors"]


def test_of_a_lost_job_anchors_stay_and_an_incomplete_group_of_ceilings_does_not(work):
    lost, other = board("a"), board("b")
    arrive(work, lost, [CEILINGS, GROUP], measured(ANCHOR), measured(CEILING, 1), measured(CASE))
    assert [CEILINGS] == work.lost(lost, [CEILINGS, GROUP])
    ended(work, other, [CEILINGS], measured(ANCHOR), measured(CEILING))
    record = work.record(complete=True)
    own = {case.name: case for case in record.cases}
    assert {ANCHOR.name, CEILING.name, CASE.name} == set(own)
    assert (None, "b", "a") == tuple(own[case.name].board for case in (ANCHOR, CEILING, CASE))
    assert {"a", "b"} == set(own[ANCHOR.name].measurement("cold_time").boards)


def test_a_board_moves_with_every_task_of_its_job_and_not_only_with_whole_cases(work):
    state = BoardState("a")
    work.event(board("a"), [GROUP], {"task": CASE.task, "done": 3, "total": 12}, state)
    assert (CASE.task, 3, 12, 0) == (state.line, state.done, state.total, work.finished())
    work.event(board("a"), [GROUP], {"results": [], "facts": {}}, state)
    assert (3, 12) == (state.done, state.total)
    state.change("waits")
    assert ("waits", 0) == (state.line, state.total)


def test_a_board_whose_disk_is_full_is_refused_with_what_its_cases_say(work):
    full = result_of(CASE, "skipped", f"{CACHE_REFUSED} /cache: No space left on device; set PRISM_BENCH_CACHE")
    with pytest.raises(BoardRefused, match="/cache: No space left on device"):
        ended(work, board("a"), [GROUP], [encode_case(full)])
    assert 0 == work.finished() and not work.has_results, "another board measures them"


def test_a_job_whose_results_did_not_all_arrive_is_not_kept(work):
    count = arrive(work, board("a"), [GROUP], measured(CASE))
    more = {"results": count + 1, "facts": {}, "protocol": {}, "monitor": [], "spent": {}}
    with pytest.raises(BoardRefused, match="2 of 3 results arrived"):
        work.done(board("a"), [GROUP], more)


def test_a_job_verifies_the_tasks_first_that_took_longest(monkeypatch):
    seconds = {CASE.task: 2.0, "edges:double": 3.0}
    work = CatalogueWork(CATALOGUE, "null", Settings(processes=1, known_seconds=seconds), [CASE], lanes=2)
    monkeypatch.setattr("prism_bench.run.pool.WORTH_A_START", 1)
    known = []

    def in_order(tasks, seconds, lanes):
        known.append(seconds)
        return list(tasks)

    monkeypatch.setattr("prism_bench.run.job.longest_first", in_order)
    order = json.loads(json.dumps(work.order(board("a"), [GROUP, CEILINGS])))
    result = catalogue_run.measure(order, JobChannel({"run": "r", "number": 1}, lambda *_: None))
    assert result["results"] > 3
    assert [seconds, seconds] == known, "edges, then cases"
