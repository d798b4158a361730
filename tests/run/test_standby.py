"""Workers on standby: they import before they have an order, and end with the run where nobody took them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from prism_bench.backends.null import SCRIPT
from prism_bench.catalogue import discover
from prism_bench.io.workers import EventWorker, WorkerDied, work
from prism_bench.run.job import Run
from prism_bench.run.pool import HERE, Lanes, Standby, libraries_of
from prism_bench.run.settings import Settings
from prism_bench.spec.case import Case
from prism_bench.workflows.tuning_session import Bench
from tests.run.conftest import TOYS

CATALOGUE = discover(TOYS)
TASK = "double[n=1000]"


@pytest.fixture
def order(monkeypatch: pytest.MonkeyPatch) -> Mapping[str, object]:
    monkeypatch.delenv(SCRIPT, raising=False)
    return {**Bench("null", CATALOGUE).order(Settings(), verifies=True), "tasks": [TASK], "open": False}


def test_a_worker_imports_what_it_can_and_then_takes_its_order(order: Mapping[str, object]) -> None:
    with Standby([["torch", "cuvs", "no library"]]) as standby:
        standby.settle()
        worker = standby.take()
        assert worker and None is standby.take()
        events = list(work(order, 60.0, HERE, worker))
    assert ["ok"] == [result["status"] for event in events for result in event.get("results", ())]
    assert not worker.is_alive()


def test_workers_that_nobody_took_end_and_dead_ones_are_passed_over() -> None:
    with Standby([[], [], []]) as standby:
        first, second, third = started = list(standby._workers)
        first.kill()
        first.wait()
        assert second is standby.take()
        second.end()
    assert not any(worker.is_alive() for worker in (*started, third))


def test_one_that_dies_while_it_imports_is_not_waited_for() -> None:
    with Standby([["torch"], ["torch"]]) as standby:
        first, second = standby._workers
        first.kill()
        standby.settle()
        assert second is standby.take()
        second.end()


def test_the_libraries_of_peers_are_named_array_packages_first() -> None:
    asking = (lambda quack: None, lambda torch: None, lambda jax: None, lambda cupy: None, lambda torch, m: None)
    peers = {f"peer_{number}": call for number, call in enumerate(asking)}
    case = CATALOGUE.anywhere(TASK)
    cases = [Case(replace(case.spec, peers=peers), case.workload, "S0"), case]
    assert ["cupy", "torch", "jax", "quack"] == libraries_of(cases)


def test_processes_that_time_on_a_gpu_stand_by_without_peers_too() -> None:
    def standing_by(backend: str) -> Sequence[Sequence[str]]:
        return Run(CATALOGUE, backend, Settings(lanes=2))._standing_by([], 3)._libraries

    assert [["cupy"]] * 3 == standing_by("cuda")
    assert [] == standing_by("null")


def test_lanes_stay_for_the_next_tasks_and_follow_their_order(
    order: Mapping[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    really = EventWorker.send
    monkeypatch.setattr(EventWorker, "send", lambda self, line: (sent.append(line[:1]), really(self, line))[1])

    def statuses(lanes: Lanes, order: Mapping[str, object]) -> list[str]:
        events = [event for event in lanes.work(order, [TASK], 1, 60.0) if not isinstance(event, WorkerDied)]
        return [result["status"] for event in events for result in event.get("results", [])]

    with Lanes() as lanes:
        others = {**order, "avoid": {TASK: {"torch": "it leaks"}}}
        assert [["ok"]] * 3 == [statuses(lanes, one) for one in (order, order, others)]
        (worker,) = lanes._workers
        process = worker._process
        assert process and process.is_alive()
    assert not process.is_alive()
    assert ["{", "d", "d", "{", "d"] == sent
