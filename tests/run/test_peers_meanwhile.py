"""Peers are compiled while edges are verified: the run waits for them, and an error ends them."""

from contextlib import nullcontext
from importlib import import_module
from threading import Event

import pytest

from prism_bench.catalogue import discover
from prism_bench.run import Settings
from tests.run.conftest import TOYS

module = import_module("prism_bench.run.job")
WAIT = 20.0  # seconds, which nothing here needs


@pytest.fixture
def compiling(monkeypatch):
    """A function that returns a run whose peers are `made` while its edges are verified, and its progress."""
    monkeypatch.setattr(module, "ahead_tasks", lambda cases: [case.name for case in cases])

    def prepared(made):
        monkeypatch.setattr("prism_bench.run.precompile.compile_peers", lambda order, tasks: made(tasks))
        seen, catalogue = [], discover(TOYS)
        return module.Run(catalogue, "null", Settings(), seen.append), catalogue.cases(["triple"], ("S0",)), seen

    return prepared


def test_the_run_waits_for_peers_that_take_longer_than_the_edges(compiling):
    begun, edges_done, compiled = Event(), Event(), []

    def made(tasks):
        begun.set()
        yield "the first"
        assert edges_done.wait(WAIT)
        compiled.extend(tasks)

    run, cases, seen = compiling(made)
    with run._peers_compiling(cases):
        assert begun.wait(WAIT)
        assert not compiled
        edges_done.set()
    assert ["triple[n=1000]"] == compiled
    assert {"compiling"} == run._spent.keys()
    assert {"compiling the first (0 of 1)"} >= {event.task for event in seen}


def test_an_error_ends_the_compilation(compiling):
    ended, failed = Event(), Event()

    def made(tasks):
        try:
            yield "the first"
            assert failed.wait(WAIT)
            yield "the second"
        finally:
            ended.set()

    run, cases, _ = compiling(made)
    with pytest.raises(KeyboardInterrupt), run._peers_compiling(cases):
        raise KeyboardInterrupt
    failed.set()
    assert ended.wait(WAIT)


def test_without_peers_nothing_is_started(compiling):
    run, _, seen = compiling(lambda tasks: pytest.fail("it was started"))
    with run._peers_compiling([]):
        pass
    assert not seen


@pytest.mark.parametrize(
    ("lanes", "checked"),
    [
        (4, [("edges", []), ("S0", []), ("S1", "all"), ("timed", ["S0"]), ("timed", "later")]),
        (1, [("edges", []), ("timed", "all"), ("timed", "later")]),
    ],
)
def test_each_compiled_peer_is_checked_once_and_after_it_was_compiled(monkeypatch, lanes, checked):
    seen = []

    class Planned(module.Run):
        def _compile_ahead(self, tasks):
            return nullcontext()

        def go_through(self, tasks, process, *, timed=True, verifies=None):
            order = self._order_for(process, tasks, timed, verifies is not False)
            labels = {self._catalogue.anywhere(task).label for task in tasks if not task.startswith("edges:")}
            what = "timed" if timed else "edges" if not labels else "".join(labels)
            seen.append((what, order.get("check_compiled", "later" if process else "all")))

    monkeypatch.setattr(module, "ahead_tasks", lambda cases: [])
    catalogue = discover(TOYS)
    cases = catalogue.cases(["double"], ("S0", "S1"))
    Planned(catalogue, "cuda", Settings(processes=2, lanes=lanes)).measure(cases)
    assert checked == seen
