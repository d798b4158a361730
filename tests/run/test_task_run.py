"""Sides measured in turn: the order of processes, what is merged, and what becomes of a side or a task that dies."""

import pytest

from prism_bench.errors import BackendUnavailable
from prism_bench.io.workers import WorkerDied, WorkerEnvironment
from prism_bench.record.measurement import Measurement
from prism_bench.record.run_record import CaseResult, encode_case
from prism_bench.run import pool
from prism_bench.run.pool import timing
from prism_bench.run.task_run import ComparisonSide, TaskPlan, measure_sides
from tests.built_in import CATALOGUE
from tests.run.conftest import scripted

PLACE = WorkerEnvironment("a_worker")
TASKS = ("image:graph", "image:streams")


def result(task, process):
    times = (Measurement("steady_time", "kernel", ((1.0 + process,),)),) if process else ()
    name, _, form = task.partition(":")
    return CaseResult(f"{task}[]", name, "pipelines", "S0", {}, 0, None, "ok", variant=form, measurements=times)


class Workers:
    """Processes that answer at once; `dies` says what kills whom."""

    def __init__(self, dies=lambda order, task: None):
        self.orders, self._dies = [], dies

    def __call__(self, order, place):
        assert place == (timing(PLACE) if order.get("timed") else PLACE)
        self.orders.append((order["allocator"], order["process"], tuple(order["tasks"])))
        if self._dies(order, None):
            raise WorkerDied(None, "crashed", "RMM is not installed here")
        yield {"facts": {"device": "toy"}}
        for task in order["tasks"]:
            yield {"begin": task}
            if self._dies(order, task):
                raise WorkerDied(task, "timed out", "no answer within 300 s")
            yield {"results": [encode_case(result(task, order["process"]))]}
        yield {"end": True, "allocator": {"hits": order["process"]}}


@pytest.fixture
def workers(monkeypatch):
    def make(*given):
        found = Workers(*given)
        monkeypatch.setattr(pool, "EventWorker", scripted(found))
        return found

    return make


def plan(**changes):
    return TaskPlan(
        **{"catalogue": CATALOGUE, "backend": "cuda", "tasks": TASKS, "place": PLACE, "processes": 2} | changes
    )


def sides(*names):
    return [ComparisonSide(name, name) for name in names]


def test_sides_take_turns_and_the_second_begins_the_next_round(workers):
    found = workers()
    records = measure_sides(plan(), sides("a", "b"))
    assert [("a", 0), ("b", 0), ("b", 1), ("a", 1), ("a", 2), ("b", 2)] == [order[:2] for order in found.orders]
    assert ["a", "b"] == list(records)
    case = records["a"].cases[0]
    assert ((2.0,), (3.0,)) == case.measurement("steady_time").processes
    assert {"version": 1, "of": "pipelines", "processes": 2} == records["a"].protocol


def test_verified_alone_takes_one_process(workers):
    found = workers()
    measure_sides(plan(timed=False), sides("a"))
    assert [("a", 0)] == [order[:2] for order in found.orders]


def test_a_side_that_cannot_begin_keeps_its_reason(workers):
    workers(lambda order, task: order["allocator"] == "rmm")
    rmm, other = sides("rmm", "cupy")
    records = measure_sides(plan(), [rmm, other])
    assert ["cupy"] == list(records)
    assert "RMM is not installed here" in rmm.missing


def test_where_no_side_can_begin_that_is_an_error(workers):
    workers(lambda order, task: True)
    with pytest.raises(BackendUnavailable, match="RMM is not installed here"):
        measure_sides(plan(), sides("rmm"))


def test_a_task_that_hangs_costs_itself_alone(workers):
    found = workers(lambda order, task: task == "image:graph")
    record = measure_sides(plan(), sides("a"))["a"]
    assert {"image:graph": "timed out", "image:streams": "ok"} == {
        f"{case.kernel}:{case.variant}": case.status for case in record.cases
    }
    assert ("a", 0, ("image:streams",)) == found.orders[1]
    assert ("a", 1, ("image:streams",)) == found.orders[2]


def test_an_interrupted_run_is_kept_as_incomplete(workers):
    def interrupt(order, task):
        if order["process"] == 1 and task:
            raise KeyboardInterrupt

    workers(interrupt)
    record = measure_sides(plan(), sides("a"))["a"]
    assert (False, 2) == (record.complete, len(record.cases))


def test_no_round_begins_that_would_end_too_late(workers):
    found = workers()
    measure_sides(plan(limit=0.0), sides("a"))
    assert 1 == len(found.orders)


def test_progress_counts_all_sides(workers):
    workers()
    seen = []
    measure_sides(plan(), sides("a", "b"), seen.append)
    assert (12, 12, 11) == (len(seen), seen[0].total, seen[-1].done)


def test_what_the_allocator_told_stays_with_its_side(workers):
    workers()
    (one,) = chosen = sides("a")
    measure_sides(plan(), chosen)
    assert {"hits": 2} == one.allocator_facts
