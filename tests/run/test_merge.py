"""Parts that several GPUs measured become one record; what no two parts of one run may have is refused by name."""

import json
from dataclasses import replace

import pytest

from prism_bench.errors import ResultsError, UsageError
from prism_bench.record.run_record import decode, encode
from prism_bench.run import merge
from prism_bench.run.settings import record_order
from tests.report.synthetic import MACHINE, PROTOCOL, SOFTWARE, case_result, record_of

FIRST, SECOND = "GPU-aaaa", "GPU-bbbb"
TUNING = {"asked": "tuned", "store": "reports/tuning/x.json", "choices": {}, "stale": {}}
RULER = {"ceiling": "launch", "family": "machine"}


def ruler(seconds, **changes):
    return case_result("null", times={"cold_time": seconds}, **RULER, **changes)


def ruler_edge(**changes):
    return case_result("null", "edge", workload={"n": 1}, **RULER, **changes)


def part(uuid, *kernels, floor=1e-6, **changes):
    """A part of the GPU with those kernels, each at a workload and an edge, beside the ceiling."""
    own = [case_result(kernel, times={"cold_time": 1e-5}) for kernel in kernels]
    edges = [case_result(kernel, "edge", workload={"n": 1}) for kernel in kernels]
    cases = sorted([ruler(floor), ruler_edge(), *own, *edges], key=record_order)
    return record_of(*cases, **{"machine": {**MACHINE, "uuid": uuid}, **changes})


def merged(*records):
    return merge([(f"part{number}.json", record) for number, record in enumerate(records, 1)])


@pytest.fixture
def one():
    return part(FIRST, "softmax", "aardvark", created="2026-11-20T22:14:09", duration=61.5, monitor=({"beats": 1},))


@pytest.fixture
def other():
    return part(SECOND, "matmul", floor=3e-6, created="2026-11-20T22:14:05", duration=70.2, monitor=({"beats": 2},))


def test_the_cases_of_all_parts_stand_in_the_order_of_any_run(one, other):
    names = [case.name for case in merged(one, other).cases]
    whole = part(FIRST, "softmax", "aardvark", "matmul")
    assert [case.name for case in whole.cases] == names
    assert names == [case.name for case in merged(other, one).cases]


def test_a_case_of_one_part_stays_as_it_is(one, other):
    found = merged(one, other)
    for own, name, board in ((one, "softmax[n=100]", FIRST), (other, "matmul[n=100]", SECOND)):
        assert replace(own.case(name), board=board) == found.case(name)
        assert board == found.board_of(found.case(name))


def test_a_ceiling_of_several_boards_has_the_board_of_each_process(one, other):
    found = merged(one, other)
    null = found.case("null[n=100]")
    cold = null.measurement("cold_time")
    count = len(one.case("null[n=100]").measurement("cold_time").processes)
    assert (None, (FIRST,) * count + (SECOND,) * count) == (null.board, cold.boards)
    assert cold.boards == decode(encode(found), "merged").case("null[n=100]").measurement("cold_time").boards
    third = merged(found, part("GPU-cccc", "copy2"))
    assert (*cold.boards, *("GPU-cccc",) * count) == third.case("null[n=100]").measurement("cold_time").boards


def test_parts_of_one_board_say_nothing_of_boards(one, other):
    found = merged(one, part(FIRST, "matmul"))
    assert {None} == {case.board for case in found.cases}
    assert () == found.case("null[n=100]").measurement("cold_time").boards


def test_the_boards_of_all_parts_are_listed(one, other):
    boards = [{"uuid": uuid, "vbios": "96.00", "power_limit": 700.0, "host": "ab"} for uuid in (SECOND, FIRST)]
    found = merged(*(replace(record, boards=(board,)) for record, board in zip((other, one), boards, strict=True)))
    assert tuple(reversed(boards)) == found.boards
    assert found.boards == decode(encode(found), "merged").boards


def test_what_a_parts_own_run_called_impossible_stays_impossible(one, other):
    cold = replace(one.case("softmax[n=100]").measurements[0], valid=False, reason="below the floor")
    cases = [replace(c, measurements=(cold,)) if c.name == "softmax[n=100]" else c for c in one.cases]
    assert cold == merged(replace(one, cases=tuple(cases)), other).case("softmax[n=100]").measurements[0]


def test_a_ceilings_samples_are_further_processes(one, other):
    cold = merged(one, other).case("null[n=100]").measurement("cold_time")
    both = [record.case("null[n=100]").measurement("cold_time").processes for record in (one, other)]
    assert both[0] + both[1] == cold.processes
    assert 2e-6 == pytest.approx(cold.median)


def test_a_ceilings_edge_stands_there_once(one, other):
    assert 1 == [case.name for case in merged(one, other).cases].count("null[n=1]")


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(
    ("statuses", "worst"),
    [(("ok", "wrong"), "wrong"), (("ok", "skipped"), "skipped"), (("skipped", "crashed"), "crashed")],
)
def test_the_worst_part_tells_how_a_ceiling_ended(statuses, worst, order):
    parts = [
        record_of(ruler_edge(status=status, reason=status), machine={**MACHINE, "uuid": uuid})
        for status, uuid in zip(statuses, (FIRST, SECOND), strict=True)
    ][::order]
    (case,) = merged(*parts).cases
    assert (worst, worst) == (case.status, case.reason)


def test_time_and_monitor_are_of_all_parts(one, other):
    found = merged(one, other)
    assert ("2026-11-20T22:14:05", 70.2) == (found.created, found.duration)
    assert ({"beats": 1}, {"beats": 2}) == found.monitor


def test_each_part_is_told_with_its_kernels_and_without_the_ceilings(one, other):
    assert (
        {"uuid": FIRST, "created": one.created, "duration": 61.5, "kernels": ["aardvark", "softmax"]},
        {"uuid": SECOND, "created": other.created, "duration": 70.2, "kernels": ["matmul"]},
    ) == merged(one, other).parts


def test_parts_of_several_devices_leave_no_uuid_those_of_one_keep_it(one, other):
    several = merged(one, other)
    assert {key: value for key, value in MACHINE.items() if key != "uuid"} == several.machine
    assert (FIRST, SECOND) == several.uuids
    same = merged(one, replace(other, machine=one.machine))
    assert (one.machine, (FIRST,)) == (same.machine, same.uuids)


def test_a_kernels_unit_is_known_and_a_ceiling_has_none(one, other):
    found = merged(one, other)
    assert [FIRST, SECOND, None] == [found.unit_of(name) for name in ("softmax", "matmul", "null")]
    assert FIRST == one.unit_of("null")


def test_a_merged_record_may_be_a_part(one, other):
    third = part("GPU-cccc", "lstm_cell")
    found, at_once = merged(merged(one, other), third), merged(one, other, third)
    assert encode(at_once) == encode(found)


def test_choices_are_united(one, other):
    one = replace(one, tuning={**TUNING, "choices": {"softmax[n=100]": {"by": "same"}}})
    other = replace(other, tuning={**TUNING, "stale": {"matmul[n=100]": "the source changed"}})
    told = {"choices": {"softmax[n=100]": {"by": "same"}}, "stale": {"matmul[n=100]": "the source changed"}}
    assert TUNING | told == merged(one, other).tuning
    nobody_asked = merged(replace(one, tuning={}), replace(other, tuning={}))
    assert {} == nobody_asked.tuning


def test_a_part_that_was_cut_short_makes_the_whole_incomplete(one, other):
    assert merged(one, other).complete
    assert not merged(one, replace(other, complete=False)).complete


def test_a_merged_record_survives_json(one, other):
    found = merged(one, other)
    assert encode(found) == encode(decode(json.loads(json.dumps(encode(found))), "here"))


DIFFERENCES = {
    "backend": ({"backend": "null"}, "its backend is 'null', that of part1.json is 'cuda'"),
    "catalogue": ({"catalogue": "mine"}, "its catalogue is 'mine', that of part1.json is 'built-in'"),
    "commit": ({"commit": None}, "its commit is None"),
    "dirty": ({"dirty": True}, "its dirty is True, that of part1.json is False"),
    "machine": ({"machine": {**MACHINE, "id": "b"}}, "its machine.id is 'b', that of part1.json is 'nvidia-h200'"),
    "device": ({"machine": {**MACHINE, "device": "H100"}}, "its machine.device is 'H100'"),
    "multiprocessors": ({"machine": {**MACHINE, "sm_count": 114}}, "its machine.sm_count is 114"),
    "memory": ({"machine": {**MACHINE, "memory_bytes": 8}}, "its machine.memory_bytes is 8"),
    "host": ({"machine": {**MACHINE, "host": {**MACHINE["host"], "cores": 2}}}, "its machine.host.cores is 2"),
    "software": ({"software": {**SOFTWARE, "numpy": "1"}}, "its software.numpy is '1'"),
    "package": ({"software": {**SOFTWARE, "jax": "1"}}, "its software.jax is '1', that of part1.json is absent"),
    "version": ({"protocol": {**PROTOCOL, "version": 2}}, "its protocol.version is 2, that of part1.json is 1"),
    "processes": ({"protocol": {**PROTOCOL, "processes": 1}}, "its protocol.processes is 1"),
    "tuning": ({"tuning": {"asked": "untuned"}}, "its tuning.asked is 'untuned', that of part1.json is 'tuned'"),
}


@pytest.mark.parametrize("what", DIFFERENCES)
def test_parts_of_different_circumstances_are_refused(what):
    changes, words = DIFFERENCES[what]
    tuned = {"tuning": {"asked": "tuned"}}
    with pytest.raises(ResultsError) as caught:
        merged(part(FIRST, "softmax", **tuned), part(SECOND, "matmul", **{**tuned, **changes}))
    assert str(caught.value).startswith(f"part2.json: {words}")
    assert "part1.json" in str(caught.value)


def test_every_pair_of_parts_is_looked_at(one, other):
    with pytest.raises(ResultsError, match=r"part3.json: case 'softmax\[n=100\]' is in part1.json too"):
        merged(one, other, part("GPU-cccc", "softmax"))


def test_a_kernel_in_two_parts_is_refused_at_other_sizes_too(one):
    variant = case_result("softmax", workload={"n": 7}, variant="fast", name="softmax:fast[n=7]")
    with pytest.raises(ResultsError, match=r"part2.json: kernel 'softmax' is in part1.json too; .* in one part"):
        merged(one, record_of(variant, machine={**MACHINE, "uuid": SECOND}))


def test_a_ceiling_that_was_launched_in_two_ways_is_refused():
    parts = [record_of(ruler(1e-6, configuration={"block": size}), duration=size) for size in (128, 256)]
    with pytest.raises(ResultsError, match=r"its ceiling 'null\[n=100\]' was launched with \{'block': 256\}"):
        merged(*parts)


def test_one_record_is_no_two_parts(one):
    with pytest.raises(ResultsError, match=r"part2.json: it is the same record as part1.json"):
        merged(one, replace(one))


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_parts_are_nothing_to_merge(one, count):
    with pytest.raises(UsageError, match="name two or more"):
        merged(*[one][:count])


def test_what_filtered_runs_have_in_common_is_joined(play):
    first, second = (play(filters=[kernel, "nothing"], labels=("S0", "S1"), seed=seed, processes=1)
                     for seed, kernel in enumerate(("double", "triple")))  # fmt: skip
    second = replace(second, protocol=first.protocol, duration=second.duration + 1)
    twice = {case.name for case in first.cases} & {case.name for case in second.cases}
    assert {"nothing[blocks=1]"} == twice
    whole = play(labels=("S0", "S1"))
    assert [case.name for case in whole.cases] == [case.name for case in merged(first, second).cases]
    assert 2 == len(merged(first, second).case("nothing[blocks=1]").measurement("cold_time").processes)


def test_whatever_every_part_measures_is_known_as_a_ceiling():
    from prism_bench.run.session import result_of
    from prism_bench.run.settings import ceiling_cases
    from tests.built_in import CATALOGUE

    rulers = ceiling_cases(CATALOGUE)
    edges = [edge for case in rulers for edge in CATALOGUE.edges_of(case.kernel) or ()]
    assert edges
    assert all(result_of(case, "ok", None).ceiling for case in [*rulers, *edges])
