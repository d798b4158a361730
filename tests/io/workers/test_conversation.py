"""A process that answers task after task: replaced where it is lost between two of them, not where it was ended."""

from pathlib import Path

import pytest

from prism_bench.catalogue import discover
from prism_bench.io.workers import Conversation, WorkerDied
from prism_bench.run.pool import HERE
from prism_bench.run.settings import Settings
from prism_bench.workflows.tuning_session import Bench

TOYS = discover(Path(__file__).parents[2] / "toys")
TASK = "double[n=1000]"


@pytest.fixture
def talk():
    """A conversation with a process on the null backend that has answered once."""
    with Conversation(Bench("null", TOYS).order(Settings(), verifies=True), HERE) as talk:
        assert ["ok"] == [one["status"] for one in talk.ask(TASK, 20.0)]
        yield talk


def test_a_process_that_is_lost_between_two_tasks_is_replaced(talk):
    talk._process.kill()
    talk._process.wait()
    assert ["ok"] == [one["status"] for one in talk.ask(TASK, 20.0)]


def test_one_that_was_ended_on_purpose_is_not(talk):
    talk.interrupt()
    with pytest.raises(WorkerDied) as died:
        talk.ask(TASK, 20.0)
    assert None is died.value.task


def test_one_that_is_ended_before_it_starts_answers_nothing():
    with Conversation(Bench("null", TOYS).order(Settings(), verifies=True), HERE) as talk:
        talk.interrupt()
        with pytest.raises(WorkerDied):
            talk.ask(TASK, 20.0)


def test_a_peer_that_ended_the_worker_is_avoided_once(talk):
    death = WorkerDied(TASK, "crashed", "the process ended")
    assert not talk.avoid(death)
    death.peer = "torch"
    assert [True, False] == [talk.avoid(death), talk.avoid(death)]
    assert {TASK: {"torch": "it crashed: the process ended"}} == talk._order["avoid"]
