"""Forms of the same work give the same results, and the ledger says what overlap hides."""

from contextlib import contextmanager

import numpy as np
import pytest

from prism_bench.backends.base import Flow
from prism_bench.backends.numpy_reference import NumpyBackend
from prism_bench.errors import UsageError, VerificationFailed
from prism_bench.extensions.fusion.overlap import Chunks, OverlapLedger, OverlapRow, SideBySide, account, on_lanes
from tests.built_in import CATALOGUE

ADD = CATALOGUE.anywhere("vector_add[n=1000]")


class SeenFlow(Flow):
    """Notes what is enqueued where."""

    def __init__(self):
        self.seen, self.points = [], 0

    @contextmanager
    def lane(self, number):
        self.seen.append(f"on {number}")
        yield

    def point(self):
        self.points += 1
        return self.points

    def reached(self, point, lane):
        self.seen.append(f"{point} reached by {lane}")

    def wait(self, lane, point):
        self.seen.append(f"{lane} waits for {point}")


def test_lanes_begin_after_what_came_before_and_end_before_what_follows():
    flow = SeenFlow()
    on_lanes(flow, [lambda: flow.seen.append("first"), lambda: flow.seen.append("second")])
    assert ["1 reached by 0", "1 waits for 1", "2 waits for 1"] == flow.seen[:3]
    assert ["on 1", "first", "on 2", "second"] == flow.seen[3:7]
    assert ["2 reached by 1", "0 waits for 2", "3 reached by 2", "0 waits for 3"] == flow.seen[7:]


def test_lanes_come_together_even_where_a_call_fails():
    """A capture that leaves a lane behind could not be ended."""
    flow = SeenFlow()
    with pytest.raises(ZeroDivisionError):
        on_lanes(flow, [lambda: None, lambda: 1 / 0])
    assert ["2 reached by 1", "0 waits for 2", "3 reached by 2", "0 waits for 3"] == flow.seen[-4:]


def test_what_a_graph_holds_was_launched_before(monkeypatch):
    """So that nothing is loaded into it."""
    launched, held = [], []
    with SideBySide(NumpyBackend(), [ADD, CATALOGUE.anywhere("relu[n=100]")], rounds=2) as work:
        work._in_graphs = True
        work._runnables = [Telling(launched, one) for one in work._runnables]
        monkeypatch.setattr(work._flow, "captured", lambda call: held.append(len(launched)) or call, raising=False)
        work.forms()
    assert [2, 4, 8, 12] == held


class Telling:
    """A runnable that tells of its launches."""

    def __init__(self, launched, runnable):
        self._launched, self._runnable = launched, runnable

    def __call__(self):
        self._launched.append(self._runnable)
        self._runnable()

    def __getattr__(self, name):
        return getattr(self._runnable, name)


def test_the_ledger_of_chunks():
    with Chunks(NumpyBackend(), ADD, chunks=5, lanes=2) as work:
        found = account(work, timed=False)
        results = work.results()
    rows = {row.name: (row.launches, row.copied_in, row.copied_out) for row in found.rows}
    assert {"copies in": (0, 40_000, 0), "kernels": (5, 0, 0), "copies out": (0, 0, 20_000)}.items() <= rows.items()
    assert rows["one lane"] == rows["2 lanes"] == (5, 40_000, 20_000)
    for chunk, result in enumerate(results):
        inputs = ADD.inputs(chunk)
        assert np.array_equal(inputs["a"].on(np) + inputs["b"].on(np), result)


def test_a_form_that_differs_has_no_time():
    with Chunks(NumpyBackend(), ADD, chunks=3, lanes=2) as work:
        work._lanes[1] = work._lanes[0].__class__(ADD, ADD.inputs(7), np)
        work._lanes[1].put = lambda name, values: None
        with pytest.raises(VerificationFailed, match="'2 lanes' gives other results than 'one lane'"):
            account(work, timed=False)


def test_cases_beside_one_another():
    with SideBySide(NumpyBackend(), [ADD, CATALOGUE.anywhere("relu[n=100]")], rounds=3) as work:
        found = account(work, timed=True)
    assert ["vector_add", "relu", "one lane", "2 lanes"] == [row.name for row in found.rows]
    assert [3, 3, 6, 6] == [row.launches for row in found.rows]
    assert all(len(row.seconds) == 15 for row in found.rows)


def test_what_overlap_hides():
    def row(name, seconds, part=False):
        return OverlapRow(name, 1, 0, 0, part, (seconds, seconds, seconds))

    parts = (row("in", 4.0, True), row("kernel", 1.0, True), row("out", 3.0, True))
    found = OverlapLedger("", (*parts, row("one lane", 8.0), row("3 lanes", 5.0)))
    assert 4.0 == found.longest_part
    assert 1.6 == found.speedup(found.rows[-1])
    assert 0.75 == found.hidden(found.rows[-1])
    untimed = OverlapLedger("", (OverlapRow("one lane", 1, 0, 0, False, ()),))
    assert (None, None, None) == (untimed.longest_part, untimed.speedup(untimed.serial), untimed.hidden(untimed.serial))


def test_more_lanes_than_chunks_are_refused():
    with pytest.raises(UsageError, match="2 chunks on 3 lanes: at least one lane, and no more than chunks"):
        Chunks(NumpyBackend(), ADD, chunks=2, lanes=3)
