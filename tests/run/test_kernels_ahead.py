"""Kernels are compiled while edges are verified: the run waits for them, and an error ends the compiler."""

from importlib import import_module
from threading import Event

import pytest

from prism_bench.io import workers

module = import_module("prism_bench.run.precompile")
WAIT = 20.0  # seconds, which nothing here needs


@pytest.fixture
def compiling(play, monkeypatch):
    """A function that plays a run in several lanes whose kernels are `compiled` meanwhile, and what started."""
    monkeypatch.setattr("prism_bench.run.pool.WORTH_A_START", 1)
    started = []

    def played(compiled, **more):
        def work(order, timeout, place, worker):
            started.append(worker)
            yield from compiled(order["ahead"])

        monkeypatch.setattr(module, "work", work)
        return play(lanes=2, filters=["double", "triple"], **more)

    return played, started


def test_edges_are_verified_while_kernels_are_compiled_and_the_run_waits_for_the_rest(compiling):
    verified, timed, ahead = Event(), Event(), []

    def compiled(tasks):
        assert verified.wait(WAIT)
        yield {"compiled": 1}
        assert not timed.wait(0.2), "nothing is timed next to a compiler"
        ahead.extend(tasks)

    def report(event):
        verified.set()
        if event.done >= 6:
            timed.set()

    played, _ = compiling
    record = played(compiled, report=report)
    assert record.complete and timed.is_set()
    assert {"edges:double", "edges:triple", "double[n=1000]"} <= set(ahead)
    assert {"compiling", "untimed", "timed"} == record.spent.keys()


def test_a_compiler_that_dies_leaves_the_code_to_who_needs_it(compiling):
    def compiled(tasks):
        raise workers.WorkerDied(None, "crashed", "no memory for so many compilers")
        yield

    played, _ = compiling
    assert played(compiled).complete


def test_ctrl_c_ends_the_compiler(compiling):
    begun = Event()

    def compiled(tasks):
        begun.set()
        while started[0].is_alive():
            yield {"compiled": 1}

    def report(event):
        assert begun.wait(WAIT)
        raise KeyboardInterrupt

    played, started = compiling
    assert not played(compiled, report=report).complete
    assert not started[0].is_alive()
