"""Bisection: history folded by code, culprits named with what was measured, interrupted searches that go on."""

from math import log

import numpy as np
import pytest

from prism_bench.errors import ResultsError, UsageError
from prism_bench.studies.bisecting import SearchLimits, bisected, observations
from prism_bench.studies.history_nodes import CaseCode, folded

LIMITS = SearchLimits()


def history(*codes):
    commits = [f"commit{number}" for number in range(len(codes))]
    return folded(commits, lambda commit: codes[commits.index(commit)] and CaseCode(codes[commits.index(commit)]))


class Clock:
    """A machine on which node k takes `seconds[k]`, every process 1 % off."""

    def __init__(self, seconds, seed=1):
        self.seconds, self.rng, self.asked = seconds, np.random.default_rng(seed), []

    def __call__(self, node):
        self.asked.append(node)
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
