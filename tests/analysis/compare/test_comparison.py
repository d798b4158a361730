"""Two records side by side: verdicts, controls, what cannot be compared and why."""

import re
from dataclasses import replace

import pytest

from prism_bench.analysis.compare.comparison import by_workload, compare, comparison_findings
from prism_bench.analysis.compare.estimate import Spread
from prism_bench.analysis.compare.noise import Noise
from prism_bench.analysis.compare.verdict import VerdictRules
from prism_bench.analysis.run_analysis import exit_code
from prism_bench.errors import ResultsError
from prism_bench.report.plain import comparison_json
from tests.analysis.measured_pairs import case, measured, records
from tests.report.synthetic import MACHINE, case_result, record_of


def verdicts(comparison):
    return {one.case.partition("[")[0]: one.verdict for one in comparison.cases}


def test_each_case_has_its_verdict_and_slower_is_bad():
    found = compare(*records([1.0, 1.05, 0.9]))
    assert {"k0": "same", "k1": "slower", "k2": "faster"} == verdicts(found)
    assert {"slower": 1, "faster": 1, "same": 1, "inconclusive": 0, "not compared": 0} == found.counts()
    assert 1 == exit_code(comparison_findings(found))


def test_what_is_not_slower_ends_well():
    assert 0 == exit_code(comparison_findings(compare(*records([1.0, 0.8]))))


def test_a_finding_says_both_times_the_ratio_and_the_floor():
    (finding,) = comparison_findings(compare(*records([1.1]), names=("old", "new")))
    assert ("bad", "slower", "k0[n=100]", "cold_time") == (finding.gravity, finding.kind, finding.case, finding.metric)
    assert finding.message.startswith("cold time 22.1 us in new, 20.1 us in old: +10.")
    assert finding.message.endswith("floor 1.0 %; its machine code changed")
    assert 1.1 == pytest.approx(finding.ratio, rel=0.01)


SAME_CODE = {"sass": ("aa", "aa")}


def test_identical_code_that_stands_out_in_an_identical_environment_is_told_as_the_machines():
    found = compare(*records([1.2, *[1.0] * 199], **SAME_CODE))
    assert ("inconclusive", "slower") == (found.cases[0].verdict, found.cases[0].judgement.verdict)
    assert found.cases[0].reason == (
        "identical machine code, and by its times alone slower: the machine changed, not the kernel"
    )
    assert {"same"} == {one.verdict for one in found.cases[1:]}
    (finding,) = comparison_findings(found)
    assert ("note", "control", "k0[n=100]", 0) == (finding.gravity, finding.kind, finding.case, found.exit_code)


def test_controls_that_differ_beyond_chance_make_the_comparison_untrusted():
    found = compare(*records([1.2] * 9 + [1.0] * 291, **SAME_CODE))
    assert (300, 9, True) == (found.control.cases, len(found.control.changed), found.control.excess)
    findings = comparison_findings(found)
    assert "untrusted" == findings[0].gravity
    assert 3 == exit_code(findings)


@pytest.mark.parametrize("count", [1, 3, 7])
def test_few_cases_of_identical_code_excuse_nothing(count):
    found = compare(*records([1.45] * count, **SAME_CODE))
    assert {"slower"} == set(verdicts(found).values())
    assert (count, False, 1) == (found.control.cases, found.control.used, found.exit_code)
    assert "identical machine code: the machine or its environment changed" == found.cases[0].reason


DRIVER = {"software": {**record_of().software, "driver": "600.1"}}


def test_a_driver_that_makes_some_cases_slower_is_found_and_named():
    ratios = [1.2] * 10 + [1.0] * 290
    found = compare(*records(ratios, **SAME_CODE, **DRIVER))
    assert 10 == found.counts()["slower"]
    assert "slower" == found.cases[0].verdict
    assert "driver" in found.cases[0].reason
    assert "-> 600.1" in comparison_findings(found)[0].message


def test_a_driver_that_makes_all_code_slower_is_bad():
    found = compare(*records([1.05] * 12, **SAME_CODE, **DRIVER))
    (finding,) = [one for one in comparison_findings(found) if one.kind == "shift"]
    assert ("bad", True) == (finding.gravity, "driver" in finding.message)


def test_numpy_of_another_version_does_not_stand_between_code_and_its_time():
    changes = {"software": {**record_of().software, "numpy": "9"}}
    assert "inconclusive" == compare(*records([1.2, *[1.0] * 99], **SAME_CODE, **changes)).cases[0].verdict


def test_another_unit_is_named_where_identical_code_stands_out():
    changes = {"machine": {**MACHINE, "uuid": "GPU-2"}}
    found = compare(*records([1.2, *[1.0] * 99], **SAME_CODE, **changes)).cases[0]
    assert ("inconclusive", "another unit of the device") == (found.verdict, found.reason.rpartition(": ")[2])


def told(record, **code):
    """The record, its only case with that code."""
    return replace(record, cases=(replace(record.cases[0], code=code),))


def test_the_same_code_in_other_launches_is_not_the_same():
    a, b = records([1.2])
    found = compare(told(a, sass="aa", plan=["1 of 256, 0 B"]), told(b, sass="aa", plan=["2 of 128, 0 B"]))
    assert ({"k0": "slower"}, 0) == (verdicts(found), found.control.cases)


def test_launches_that_an_older_record_does_not_tell_speak_against_nothing():
    a, b = records([1.0])
    assert 1 == compare(told(a, sass="aa"), told(b, sass="aa", plan=["2 of 128, 0 B"])).control.cases


def test_a_new_compiler_is_named_in_the_verdict_and_counted_in_a_note():
    a, b = records([1.2])
    old = {"sass": "aa", "language": "triton", "compiler": "Triton 3.6.0", "source": "s"}
    found = compare(told(a, **old), told(b, **{**old, "sass": "bb", "compiler": "Triton 3.9.0"}))
    words = "same source, other machine code: Triton 3.6.0 -> 3.9.0"
    assert f"1 case: {words}" in found.notes
    assert comparison_findings(found)[0].message.endswith(f"; {words}")
    assert words == comparison_json(found)["cases"][0]["build_change"]
    assert compare(told(a, **old), told(b, **{**old, "compiler": "Triton 3.9.0"})).cases[0].build_change is None


def test_without_a_control_the_times_alone_decide():
    found = compare(*records([1.2], sass=("aa", "aa")), rules=VerdictRules(control=False))
    assert {"k0": "slower"} == verdicts(found)
    assert 0 == found.control.cases


def test_code_that_nobody_knows_is_not_identical():
    assert {"k0": "slower"} == verdicts(compare(*records([1.2], sass=(None, None))))


def test_host_times_do_not_follow_from_machine_code():
    a, b = (record_of(case("k", ratio, metric="end_to_end_time")) for ratio in (1.0, 1.2))
    assert {"k": "slower"} == verdicts(compare(a, b, metric="end_to_end_time"))


def with_changed_code(ratios, **changes):
    """Records of cases of identical code but for the last."""
    a, b = records(ratios, sass=("aa", "aa"), **changes)
    return a, replace(b, cases=(*b.cases[:-1], replace(b.cases[-1], code={"sass": "bb"})))


def test_a_shift_of_the_whole_machine_is_divided_out_and_told():
    """Ten controls take 2 % longer; what takes 3 % longer is no slower for its code."""
    found = compare(*with_changed_code([1.02] * 10 + [1.025]))
    assert (1.02, "same") == (pytest.approx(found.control.shift, abs=0.003), found.cases[-1].verdict)
    assert 1.005 == pytest.approx(found.cases[-1].judgement.estimate.ratio, abs=0.005)
    (finding,) = [one for one in comparison_findings(found) if one.kind == "shift"]
    assert "10 cases of identical machine code have in common +" in finding.message
    assert "slower" == compare(*with_changed_code([1.02] * 10 + [1.08])).cases[-1].verdict


def test_a_machine_that_moved_kernels_unequally_makes_every_change_doubtful():
    """Ten controls moved by up to 4 % either way, which their own spread does not explain."""
    moved = [0.96, 1.04, 0.97, 1.03, 0.96, 1.03, 1.04, 0.98, 1.02, 0.97]
    a, b = with_changed_code([*moved, 1.04])
    found = compare(a, b)
    assert found.control.widening > 2
    assert "inconclusive" == found.cases[-1].verdict
    assert "slower" == compare(a, replace(b, cases=b.cases[-1:])).cases[-1].verdict


def test_a_stored_noise_floor_withholds_what_is_below_it():
    a, b = records([1.05])
    noise = noise_of_machine(0.02)
    (one,) = compare(a, b, noise).cases
    assert "inconclusive" == one.verdict
    assert one.reason.startswith("withheld: ")


class Known(Noise):
    """The same spread for every case."""

    def spread(self, case, metric):
        return Spread(self.floors**2, 20)

    def spread_in_cycles(self, case, metric):
        return None


def noise_of_machine(spread, **changes):
    facts = {"machine": "nvidia-h200", "device": "NVIDIA H200", "backend": "cuda", "protocol": 1, "floors": spread}
    return Known(**{**facts, **changes})


@pytest.mark.parametrize(("what", "value"), [("device", "NVIDIA H100"), ("backend", "null"), ("protocol", 2)])
def test_noise_of_something_else_is_not_used_and_that_is_said(what, value):
    found = compare(*records([1.03]), noise_of_machine(0.02, **{what: value}))
    assert {"k0": "slower"} == verdicts(found)
    assert [f"the stored noise floor is of {what} {value}"] == [note.partition(",")[0] for note in found.notes]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"backend": "null"}, "backend is 'null', that of A is 'cuda'"),
        ({"machine": {**MACHINE, "device": "NVIDIA H100"}}, "device is 'NVIDIA H100', that of A is 'NVIDIA H200'"),
        ({"protocol": {"version": 2}}, "protocol's version is 2, that of A is 1"),
        ({"protocol": {**record_of().protocol, "precision": 0.5}}, "protocol's precision is 0.5, that of A is 0.01"),
    ],
)
def test_records_that_say_nothing_about_each_other_are_refused(changes, words):
    with pytest.raises(ResultsError, match="only records of one backend, device and protocol") as refused:
        compare(*records([1.0], **changes))
    assert str(refused.value).startswith(f"B: its {words}")


def test_how_often_and_in_which_order_may_differ():
    a, b = records([1.0], protocol={**record_of().protocol, "processes": 5, "seed": 9})
    assert {"k0": "same"} == verdicts(compare(a, b))


def test_other_software_another_unit_and_a_cut_are_told():
    changes = {"software": {"cuda": "13.1"}, "machine": {**MACHINE, "uuid": "GPU-2"}, "complete": False}
    notes = compare(*records([1.0], **changes)).notes
    assert "the records come from two units of one device" == notes[0]
    assert "cuda 13.0 -> 13.1" in notes[1]
    assert "B was cut short" == notes[2]


def test_cases_of_one_record_only_are_told_and_not_judged():
    a, b = records([1.0, 1.0, 1.0])
    found = compare(a, replace(b, cases=b.cases[:1]))
    assert {"k0": "same"} == verdicts(found)
    assert ("only A has 2 cases: k1[n=100], k2[n=100]",) == found.notes


def broken(status, reason=None):
    return case_result("k0", status=status, reason=reason)


@pytest.mark.parametrize(
    ("other", "gravity", "reason"),
    [
        (broken("wrong", "y[0] is 1"), "bad", "wrong in B: y[0] is 1"),
        (broken("crashed"), "bad", "crashed in B: the record gives no reason"),
        (broken("skipped", "too large"), "note", "skipped in B: too large"),
        (case_result("k0", measurements=(measured(metric="hot_time"),)), "note", "B has no cold time"),
        (case("k0", valid=False, reason="below the floor"), "untrusted",
         "B's cold time is not to be trusted: below the floor"),
    ],
)  # fmt: skip
def test_a_case_without_a_time_is_not_compared_and_says_why(other, gravity, reason):
    a, _ = records([1.0])
    found = compare(a, record_of(other))
    assert ("not compared", reason) == (found.cases[0].verdict, found.cases[0].reason)
    assert [gravity] == [finding.gravity for finding in comparison_findings(found)]


def test_a_kernel_that_was_broken_before_is_not_bad_now():
    _, b = records([1.0])
    assert 0 == exit_code(comparison_findings(compare(record_of(broken("wrong", "y[0] is 1")), b)))


def test_a_kernel_and_its_variant_are_paired_by_workload():
    a = record_of(case("softmax"))
    variant = replace(case("softmax", 1.5, "bb", seed=1), name="softmax:naive[n=100]", variant="naive")
    assert {"softmax": "slower"} == verdicts(compare(a, record_of(variant), key=by_workload))


def test_a_slower_clock_is_not_a_slower_kernel():
    a = record_of(case("k"))
    b = record_of(case("k", 1.05, "bb", clock=1.98e9 / 1.05, seed=1))
    (one,) = compare(a, b).cases
    assert "inconclusive" == one.verdict
    assert re.fullmatch(r"5\.\d % slower in time and \+0\.\d % in cycles: the SM clock was 4\.8 % lower", one.reason)


def test_what_was_cut_short_does_not_end_well():
    found = compare(*records([1.0]))
    assert [0, 2] == [found.exit_code, replace(found, complete=False).exit_code]
    assert 1 == replace(compare(*records([1.1])), complete=False).exit_code


def test_where_nothing_could_be_judged_nothing_is_well():
    assert ((), 2) == (compare(record_of(), record_of()).cases, compare(record_of(), record_of()).exit_code)
    assert [2, 1, 0] == [compare(a, b).exit_code for a, b in (
        (record_of(case_result("k")), record_of(case_result("k"))), records([1.1]), records([1.0]))]  # fmt: skip


# Controls of a run, measured in one process: judged with the spread that the other side's processes show.


def with_controls(ratios, sass="aa", count=1):
    a, b = records(ratios, sass=("aa", sass))
    cases = tuple(
        replace(one, control="R", measurements=tuple(
            replace(time, processes=time.processes[:count], clocks=time.clocks[:count]) for time in one.measurements
        ))
        for one in b.cases
    )  # fmt: skip
    return a, replace(b, cases=cases)


def test_a_single_process_has_the_spread_of_the_other_side_and_no_more_processes():
    ratios = [1.0] * 30
    single, whole = (compare(*with_controls(ratios, count=count)) for count in (1, 5))
    error = [comparison.cases[0].judgement.estimate.error for comparison in (single, whole)]
    assert error[0] / error[1] == pytest.approx(((1 / 5 + 1) / (1 / 5 + 1 / 5)) ** 0.5, rel=0.35)
    assert {"same"} == {row.verdict for row in single.cases}


def test_one_process_that_is_no_control_is_judged_by_nothing():
    a, b = with_controls([1.0] * 3, sass="bb")
    plain = replace(b, cases=tuple(replace(one, control=None) for one in b.cases))
    assert {"inconclusive"} == {row.verdict for row in compare(a, plain).cases}


def test_controls_that_move_together_show_the_machine():
    found = compare(*with_controls([1.03] * 30))
    assert 1.03 == pytest.approx(found.control.fit.factor, abs=0.005)
    assert any(finding.kind == "control" or "machine" in finding.message for finding in comparison_findings(found))


def test_a_control_that_stands_out_is_told():
    found = compare(*with_controls([1.2, *[1.0] * 40]))
    assert ("inconclusive", "slower") == (found.cases[0].verdict, found.cases[0].judgement.verdict)


@pytest.mark.parametrize(("metric", "listed"), [("energy", {"k0", "copy"}), ("hot_time", {"k0", "copy", "null"})])
def test_a_metric_that_a_case_is_never_measured_in_does_not_list_it(metric, listed):
    """A GPU's comparison also runs the empty kernel, which nobody chose: it has no energy, and was "not compared"."""
    cases = [case("k0", metric=metric), replace(case("copy", metric=metric), ceiling="bandwidth")]
    null = replace(case("null", metric="hot_time"), ceiling="launch")
    comparison = compare(record_of(*cases, null), record_of(*cases, null), metric=metric)
    assert listed == set(verdicts(comparison)) and "not compared" not in verdicts(comparison).values()
