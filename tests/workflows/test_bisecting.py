"""Bisection: history folded by code, culprits named with what was measured, interrupted searches that go on."""

import json
from math import log

import numpy as np
import pytest

from prism_bench.analysis.compare.estimate import OUTGROWN, Spread
from prism_bench.errors import ResultsError, UsageError
from prism_bench.workflows.bisecting import MeasuredNode, SearchLimits, bisected, folded, observations
from prism_bench.workflows.case_code import CaseCode

LIMITS = SearchLimits()


def history(*codes):
    commits = [f"commit{number}" for number in range(len(codes))]
    return folded(commits, lambda commit: codes[commits.index(commit)] and CaseCode(codes[commits.index(commit)]))


class Clock:
    """A machine on which node k takes `seconds[k]`, every process 1 % off; the nodes `wrong` are not timed."""

    def __init__(self, seconds, seed=1, wrong=()):
        self.seconds, self.rng, self.asked, self.wrong = seconds, np.random.default_rng(seed), [], wrong

    def __call__(self, node):
        self.asked.append(node)
        if node in self.wrong:
            raise ResultsError(f"node {node} is wrong")
        return self._processes(0), self._processes(node)

    def _processes(self, node):
        return tuple(float(log(self.seconds[node]) + 0.01 * off) for off in self.rng.standard_normal(2))


def test_neighbours_of_the_same_code_are_one_node():
    nodes = history("a", "a", "b", "b", "a")
    assert [("commit0", "commit1"), ("commit2", "commit3"), ("commit4",)] == [node.commits for node in nodes]
    assert ["commit0", "commit2", "commit4"] == [node.measured for node in nodes]


def test_a_commit_that_does_not_build_may_be_the_culprit_of_the_next():
    nodes = history("a", None, "b", None, "b")
    assert [("commit0",), ("commit1", "commit2", "commit3", "commit4")] == [node.commits for node in nodes]
    assert "commit2" == nodes[1].measured


@pytest.mark.parametrize("codes", [(None, "a"), ("a", None)])
def test_the_ends_have_to_build(codes):
    with pytest.raises(UsageError, match="does not build the case: begin and end with commits that do"):
        history(*codes)


def test_a_planted_commit_is_named():
    nodes = history(*map(str, range(16)))
    found = bisected("case", nodes, Clock([1e-5] * 11 + [1.06e-5] * 5), LIMITS)
    assert ("commit11",) == found.culprits[0].commits
    assert found.slower
    assert 0.06 == pytest.approx(found.size(15), abs=0.02)


def test_faster_is_named_and_is_no_slowdown():
    found = bisected("case", history(*"abcdefgh"), Clock([1e-5] * 3 + [0.9e-5] * 5), LIMITS)
    assert ["commit3"] == [node.measured for node in found.culprits]
    assert not found.slower


def test_nothing_is_named_where_nothing_changed():
    found = bisected("case", history(*"abcdefgh"), Clock([1e-5] * 8), LIMITS)
    assert ((), "decided") == (found.culprits, found.ended)


def test_one_code_is_an_answer_without_a_measurement():
    clock = Clock([1e-5])
    assert () == bisected("case", history("a", "a", "a"), clock, LIMITS).culprits
    assert [] == clock.asked


def test_an_interrupted_search_goes_on(tmp_path):
    nodes, seconds, state = history(*map(str, range(16))), [1e-5] * 5 + [1.06e-5] * 11, tmp_path / "state.json"
    first = bisected("case", nodes, Clock(seconds), SearchLimits(most=3), state=state)
    assert ("most measurements", 3) == (first.ended, len(first.measured))
    clock = Clock(seconds, seed=2)
    found = bisected("case", nodes, clock, LIMITS, state=state)
    assert "commit5" == found.culprits[0].measured
    assert first.measured == found.measured[:3]
    assert len(found.measured) == 3 + len(clock.asked)


def test_no_time_is_no_measurement():
    found = bisected("case", history("a", "b"), Clock([1, 2]), SearchLimits(seconds=0))
    assert ("time limit", ()) == (found.ended, found.measured)


def test_a_state_of_something_else_is_refused(tmp_path):
    state = tmp_path / "state.json"
    bisected("case", history("a", "b"), Clock([1e-5, 1e-5]), SearchLimits(most=1), state=state)
    with pytest.raises(UsageError, match="of another case or history"):
        bisected("case", history("a", "c"), Clock([1e-5, 1e-5]), LIMITS, state=state)
    state.write_text("{}")
    with pytest.raises(ResultsError, match="prism-bench bisect --state FILE"):
        bisected("case", history("a", "b"), Clock([1e-5, 1e-5]), LIMITS, state=state)


def test_two_processes_that_agree_by_luck_are_not_believed():
    found = bisected("case", history("a", "b"), lambda node: ((0.0, 0.0), (0.004, 0.004)), SearchLimits(most=1))
    (one,) = observations(found.measured)
    assert one.variance > 0.005**2
    assert () == found.culprits


def test_a_wrong_node_is_left_out_and_the_search_goes_on(tmp_path):
    nodes, state = history(*map(str, range(16))), tmp_path / "state.json"
    clock = Clock([1e-5] * 11 + [1.06e-5] * 5, wrong=(3, 7, 8))
    found = bisected("case", nodes, clock, LIMITS, state=state)
    assert ("decided", ["commit11"]) == (found.ended, [node.measured for node in found.culprits])
    assert () == found.suspects_before(found.culprits[0])
    failed = [one.node for one in found.failed]
    assert {*failed} == {3, 7, 8} & {*clock.asked}
    assert failed
    assert all(clock.asked.count(node) == 1 for node in failed)
    assert f"node {failed[0]} is wrong" == found.problem(failed[0])


def test_a_wrong_node_before_the_culprit_may_be_the_culprit():
    nodes = history(*map(str, range(16)))
    found = bisected("case", nodes, Clock([1e-5] * 9 + [1.06e-5] * 7, wrong=(9, 10)), LIMITS)
    assert ("decided", ["commit11"]) == (found.ended, [node.measured for node in found.culprits])
    assert ("commit9", "commit10") == found.suspects_before(found.culprits[0])
    assert {"commit9", "commit10"}.isdisjoint(node.measured for node in found.measurable)


def test_a_search_goes_on_without_what_could_not_be_measured(tmp_path):
    nodes, seconds, state = history(*"abcdefgh"), [1e-5] * 4 + [1.06e-5] * 4, tmp_path / "state.json"
    wrong = tuple(range(1, 7))
    first = bisected("case", nodes, Clock(seconds, wrong=wrong), SearchLimits(most=6), state=state)
    assert first.failed
    clock = Clock(seconds, seed=2, wrong=wrong)
    found = bisected("case", nodes, clock, LIMITS, state=state)
    assert not {one.node for one in first.failed} & {*clock.asked}
    assert first.failed == found.failed[: len(first.failed)]
    assert ["commit7"] == [node.measured for node in found.culprits]


def test_a_state_of_before_has_no_failed_nodes(tmp_path):
    nodes, state = history("a", "b"), tmp_path / "state.json"
    bisected("case", nodes, Clock([1e-5, 1e-5]), SearchLimits(most=1), state=state)
    plain = json.loads(state.read_text())
    del plain["failed"]
    state.write_text(json.dumps(plain))
    found = bisected("case", nodes, Clock([1e-5, 1e-5]), SearchLimits(most=1), state=state)
    assert (1, ()) == (len(found.measured), found.failed)


def test_the_last_node_has_to_be_measured(tmp_path):
    state = tmp_path / "state.json"
    with pytest.raises(ResultsError, match="node 3 is wrong"):
        bisected("case", history(*"abcd"), Clock([1e-5] * 4, wrong=(3,)), LIMITS, state=state)
    assert not state.exists()


def test_a_stored_noise_floor_is_weighed_in_by_its_degrees():
    seen = [MeasuredNode(1, (0.0, 0.002), (0.05, 0.052))]  # processes 0.14 % apart
    plain, calm, loud = (
        observations(seen, floor)[0].variance for floor in (None, Spread(0.002**2, 40), Spread(0.03**2, 10))
    )
    assert 0.002**2 < calm < plain < loud
    assert 0.03**2 == pytest.approx(loud, rel=1e-9), "agreement by luck takes nothing off the noise floor"
    assert plain == observations(seen, Spread(0.002**2, 0))[0].variance


def test_a_noise_floor_that_was_outgrown_does_not_count():
    seen = [MeasuredNode(1, (0.0, 0.04), (0.05, 0.09))]
    stored = Spread(0.9 * 0.0008 / OUTGROWN, 40)
    assert observations(seen)[0].variance == observations(seen, stored)[0].variance


def test_a_loud_noise_floor_makes_a_search_measure_more():
    nodes, seconds = history(*map(str, range(16))), [1e-5] * 5 + [1.06e-5] * 11
    plain, loud = (
        bisected("case", nodes, Clock(seconds), LIMITS, floor=floor) for floor in (None, Spread(0.02**2, 10))
    )
    assert len(loud.measured) > len(plain.measured)
    assert plain.culprits == loud.culprits
