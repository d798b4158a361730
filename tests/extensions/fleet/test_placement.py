"""Which board measures which kernel."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from prism_bench.catalogue import discover
from prism_bench.errors import UsageError
from prism_bench.extensions.fleet.catalogue_run import SECONDS, block_seconds
from prism_bench.extensions.fleet.dispatch import (
    JOB_SECONDS,
    PEER_SECONDS,
    CaseGroup,
    JobOverhead,
    Schedule,
    ceiling_groups,
    costed_groups,
    grouped,
    job_overhead,
    job_seconds,
    last_boards,
    level,
)
from prism_bench.run.forecast import CaseCosts

TOYS = discover(Path(__file__).parents[2] / "toys")


def group(name, seconds):
    return CaseGroup((name,), (f"{name}[n=1]",), seconds)


def names(groups):
    return [one.kernels[0] for one in groups]


def test_a_kernel_is_one_group_with_its_variants():
    cases = TOYS.cases(labels=("S0",))
    found = grouped(cases, {case.name: 2.0 for case in cases})
    assert {case.spec.name for case in cases} == {kernel for one in found for kernel in one.kernels}
    (double,) = [one for one in found if one.kernels == ("double",)]
    assert {"double[n=1000]", "double:by_adding[n=1000]"} == set(double.tasks)
    assert 4.0 == double.seconds


def test_a_form_goes_where_the_one_goes_that_replaces_it():
    def case(kernel, before=None):
        return SimpleNamespace(spec=SimpleNamespace(name=kernel, before=before), name=f"{kernel}[]", task=f"{kernel}[]")

    found = grouped([case("old", "new:fast"), case("other"), case("older", "old"), case("new")], {})
    assert [("old", "older", "new"), ("other",)] == [one.kernels for one in found]


def test_a_kernel_goes_to_the_board_that_measured_it_last():
    parts = ({"uuid": "x", "kernels": ["softmax"]}, {"uuid": None, "kernels": ["sum"]})
    newest = SimpleNamespace(machine={}, parts=parts, cases=())
    older = SimpleNamespace(
        machine={"uuid": "y"}, parts=(), cases=[SimpleNamespace(kernel=k) for k in ("softmax", "sum")]
    )
    last = last_boards([newest, older], ["softmax", "sum", "fill"])
    assert {"softmax": "x", "sum": "y"} == last
    schedule = Schedule([group("softmax", 1), group("sum", 2), group("fill", 9)], ["x", "y"], last)
    assert ["softmax"] == names(schedule.take("x", 1.0, {"y": 0.0}))
    assert ["sum"] == names(schedule.take("y", 2.0, {"x": 0.0}))
    assert ["fill"] == names(schedule.take("y", 2.0, {"x": 0.0}))
    assert not schedule


def test_a_case_takes_its_share_of_what_was_compiled():
    cases = TOYS.cases(labels=("S0",))
    costs = CaseCosts({}, {}, {case.name: 2.0 for case in cases}, {case.name: "S0" for case in cases})
    share = replace(costs, compiling=2 * JOB_SECONDS + 0.5 * len(cases), jobs=2)
    plain, shared = (costed_groups(cases[1:], cases[:1], one, 3) for one in (costs, share))
    assert plain[0].early and (6.0, 6.5) == (plain[0].seconds, shared[0].seconds)
    assert [one.seconds + 0.5 * len(one.tasks) for one in plain] == [one.seconds for one in shared]


def test_a_case_takes_nothing_of_what_each_job_verified_anew():
    cases = TOYS.cases(labels=("S0",))
    untimed = {case.name: 10.0 for case in cases}
    costs = CaseCosts({}, untimed, {}, {case.name: "S0" for case in cases}, jobs=2, shared=0.5)
    anew = 2 * job_seconds(peers=False)
    several = replace(costs, shared=0.5 + anew / (10.0 * len(cases)))
    one, other = (costed_groups(cases, [], each, 3) for each in (replace(costs, jobs=0), several))
    assert [group.seconds for group in other] == pytest.approx([group.seconds for group in one])
    assert [0.0] * len(one) == [group.seconds for group in costed_groups(cases, [], replace(costs, jobs=99), 3)]


def test_a_job_with_peers_costs_more_to_start_so_that_there_are_fewer(monkeypatch):
    monkeypatch.delenv(SECONDS, raising=False)
    costs = CaseCosts({}, {}, {}, {}, start=1.0)
    bare, raced = (job_overhead(costs, [], 3, peers=peers).start for peers in (False, True))
    assert (JOB_SECONDS + 3.0, PEER_SECONDS) == (bare, raced - bare)
    assert (2, 1) == tuple(round(400.0 / block_seconds(4 * 400.0, 4, start)) for start in (bare, raced))


def test_no_record_is_read_after_all_kernels_are_found():
    def records():
        yield SimpleNamespace(machine={}, parts=({"uuid": "x", "kernels": ["softmax", "other"]},), cases=())
        raise AssertionError("each record takes a second to read, while all boards wait")

    assert "x" == last_boards(records(), {"softmax"})["softmax"]


@pytest.mark.parametrize("boards", [1, 2, 5, 8])
def test_everything_is_taken_once_and_boards_end_together(boards):
    groups = [group(f"k{n}", 10 + 10 * (n % 7)) for n in range(80)]
    schedule, ends = Schedule(groups, [str(n) for n in range(boards)], {}), dict.fromkeys(map(str, range(boards)), 0.0)
    taken, waiting = [], set(ends)
    while waiting:
        board = min(waiting, key=lambda one: ends[one])
        left = {other: max(0.0, end - ends[board]) for other, end in ends.items() if other != board}
        block = schedule.take(board, 200.0, left)
        waiting -= set() if block else {board}
        taken += names(block)
        ends[board] += sum(one.seconds for one in block)
    assert sorted(names(groups)) == sorted(taken)
    assert max(ends.values()) - min(ends.values()) <= 40


def test_what_a_lost_board_had_goes_to_any_other():
    schedule = Schedule([group("a", 3), group("b", 1)], ["x", "y"], {"a": "x", "b": "x"})
    assert [] == schedule.take("y", 10.0, {"x": 0.0})
    block = schedule.take("x", 3.0, {"y": 0.0})
    schedule.drop("x")
    schedule.add(block)
    assert {"a", "b"} == {*names(schedule.take("y", 10.0, {}))}
    assert [] == schedule.take("x", 10.0, {})


def test_no_seconds_make_each_group_a_job():
    schedule = Schedule([group("a", 1), group("b", 1)], ["x"], {})
    assert ["a"] == names(schedule.take("x", 0.0, {}))


def test_a_job_is_not_so_short_that_it_mostly_starts_processes():
    schedule = Schedule([group(f"k{n}", 1) for n in range(30)], ["x", "y"], {})
    assert [20, 10, 0] == [len(schedule.take(board, 90.0, {other: 0.0})) for board, other in ("xy", "yx", "xy")]


def test_what_is_left_is_divided_by_when_the_others_are_free():
    schedule = Schedule([group(f"k{n:02}", 10) for n in range(12)], ["x", "y"], {})
    assert 10 == len(schedule.take("x", 200.0, {"y": 80.0})), "x works for 100 s, y for 80 and 20 more"
    assert 2 == len(schedule.take("y", 200.0, {"x": 100.0}))


def test_a_part_that_is_longer_than_a_job_is_divided_into_equal_jobs():
    schedule = Schedule([group(f"k{n:02}", 10) for n in range(20)], ["x"], {})
    assert [6, 7, 7] == sorted(len(schedule.take("x", 60.0, {})) for _ in range(3))


def test_one_more_group_is_taken_where_that_ends_nearer_to_the_goal():
    schedule = Schedule([group("a", 50), group("b", 50), group("c", 5)], ["x", "y"], {})
    assert ["a", "c"] == names(schedule.take("x", 100.0, {"y": 2.0})), "53.5 s would be its part: 55 is nearer than 50"
    assert ["b"] == names(schedule.take("y", 100.0, {"x": 53.0}))


def test_early_groups_come_first_and_only_once():
    ceilings = CaseGroup(("copy",), ("copy[n=1]",), 5.0, early=True)
    schedule = Schedule([group("a", 50), group("b", 50), ceilings], ["x", "y"], {"a": "x"}, JobOverhead(1.0, 3.0))
    assert ["copy", "a"] == names(schedule.take("x", 90.0, {"y": 0.0}))
    assert ["b"] == names(schedule.take("y", 90.0, {"x": 56.0}))
    assert {"x": 56.0, "y": 54.0} == schedule.expected, "x has the ceilings, y the anchors"


@pytest.mark.parametrize(("loads", "end"), [([0, 0], 5), ([0, 20], 10), ([4, 6, 100], 10), ([0, 1, 2, 3], 4)])
def test_level(loads, end):
    assert end == level(10.0, loads)


def test_ceilings_are_one_early_group():
    cases = TOYS.cases(labels=("S0",))[:2]
    (found,) = ceiling_groups(cases, {cases[0].name: 2.0, cases[1].name: 1.0})
    assert (True, 3.0, {case.task for case in cases}) == (found.early, found.seconds, set(found.tasks))
    assert [] == ceiling_groups([], {})


def test_jobs_are_long_where_they_cost_much_and_not_short(monkeypatch):
    monkeypatch.delenv(SECONDS, raising=False)
    assert [268, 190, 134, 90] == [round(block_seconds(1440.0, boards)) for boards in (2, 4, 8, 32)]
    assert block_seconds(1440.0, 2, 28.0) == pytest.approx(2**0.5 * block_seconds(1440.0, 2))
    monkeypatch.setenv(SECONDS, "7")
    assert 7.0 == block_seconds(1440.0, 2)
    monkeypatch.setenv(SECONDS, "-1")
    with pytest.raises(UsageError, match="PRISM_BENCH_FLEET_SECONDS=-1: it is a number of seconds"):
        block_seconds(1440.0, 2)
