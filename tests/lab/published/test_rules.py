"""The profiling guide's rules of thumb on our samples, and the rules that a device sets."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from lab.published.rules import published_rules, remarks, rule_verdicts, rules_for

from prism_bench.analysis.gate.budgets import Baseline, promises_for, slowdowns
from prism_bench.analysis.run_analysis import findings
from prism_bench.catalogue import discover
from prism_bench.record.measurement import Measurement
from tests.report.synthetic import case_result, record_of

RULES = published_rules()


def whole_calls(*seconds, metric="end_to_end_time", **facts):
    """A record of one case whose whole calls took that long."""
    return record_of(case_result("k", measurements=(Measurement(metric, "kernel", (tuple(seconds),), **facts),)))


def kept(record, rules=RULES):
    """The rules of thumb alone, without the baseline."""
    return {one.rule: one.kept for one in rule_verdicts(record, rules)}


def degraded(record, baseline=None):
    return {(one.case, one.metric): one.kept for one in slowdowns(record, baseline=baseline)}


def test_the_rules_are_those_that_the_guide_printed():
    assert ("end_to_end_time", "S0") == (RULES.metric, RULES.label)
    assert (5e-3, 0.2, 2, 1.5) == (RULES.slow, RULES.high_variance, RULES.outlier, RULES.degraded)
    assert (1e-3, 0.1, 100) == pytest.approx((RULES.target_mean, RULES.target_cv, RULES.target_rate))


def test_a_quick_and_steady_call_keeps_every_rule():
    assert {True} == set(kept(whole_calls(1e-4, 1.01e-4, 1e-4)).values())


@pytest.mark.parametrize(
    ("seconds", "broken"),
    [
        ((6e-3, 6e-3), {"slow", "target mean"}),
        ((2e-3, 2e-3), {"target mean"}),
        ((20e-3, 20e-3), {"slow", "target mean", "target rate"}),
        ((1e-4, 1.4e-4, 1e-4), {"high variance", "target variance"}),
        ((1e-4, 1.2e-4, 1e-4), {"target variance"}),
        ((1e-4, 1e-4, 1e-4, 1e-4, 1e-3), {"high variance", "target variance", "outlier"}),
    ],
)
def test_each_rule_sees_what_it_is_about(seconds, broken):
    assert broken == {rule for rule, well in kept(whole_calls(*seconds)).items() if not well}


def test_without_a_valid_time_every_rule_is_unmeasured():
    assert {None} == set(kept(record_of(case_result("k"))).values())
    assert {None} == set(kept(whole_calls(1e-4, valid=False, reason="no")).values())


def test_other_labels_and_the_machines_own_kernels_are_not_asked():
    assert {} == kept(record_of(case_result("k", "S1"), case_result("null", ceiling="launch")))


def test_other_rules_can_be_set():
    rules = replace(RULES, metric="cold_time", label="S1", slow=1e-6)
    record = record_of(case_result("k", "S1", times={"cold_time": 2e-6}))
    assert kept(record, rules)["slow"] is False


def baseline(seconds, metric="cold_time"):
    return Baseline("NVIDIA H200", "cuda", 1, "r.json.gz", "2026-11-20T22:14:05", "", {("k[n=100]", metric): seconds})


@pytest.mark.parametrize(("seconds", "well"), [(1.4e-5, True), (1.6e-5, False)])
def test_what_takes_half_as_long_again_as_the_baseline_is_degraded(seconds, well):
    record = record_of(case_result("k", "S2", times={"cold_time": seconds}))
    assert {("k[n=100]", "cold_time"): well} == degraded(record, baseline(1e-5))


def test_a_case_of_the_baseline_without_a_time_is_unmeasured():
    assert {("k[n=100]", "cold_time"): None} == degraded(record_of(case_result("k", "S2")), baseline(1e-5))


def test_a_case_without_a_baseline_is_unmeasured():
    record = record_of(case_result("k", times={"cold_time": 1e-5}), case_result("new", times={"cold_time": 1e-5}))
    assert {("k[n=100]", "cold_time"): True, ("new[n=100]", "cold_time"): None} == degraded(record, baseline(1e-5))
    assert {None} == set(degraded(record).values())


def test_edges_are_asked_nothing():
    assert {} == degraded(record_of(case_result("k", "edge")))


def test_degraded_is_bad_what_the_guide_calls_odd_a_note_and_a_missed_aim_no_finding():
    record = record_of(case_result("k", times={"cold_time": 2e-5, "end_to_end_time": 6e-3}))
    found = [*findings(record, (), slowdowns(record, RULES.degraded, baseline(1e-5)))]
    found += remarks(rule_verdicts(record, RULES))
    assert [("bad", "degraded"), ("note", "slow")] == [(one.gravity, one.kind) for one in found]
    assert "cold time: median over the baseline's 2, the rule is at most 1.5" == found[0].message
    assert "end to end time: mean in seconds 6.00 ms, the rule is at most 5.00 ms" == found[1].message


TOYS = Path(__file__).parents[2] / "toys"
HEAD = 'device = "NVIDIA H200"\nbackend = "cuda"\nprotocol = 1\n'


@pytest.fixture
def promised(tmp_path):
    """A function that writes the H200's file of budgets and reads it for a record."""

    def read(text):
        catalogue = discover(shutil.copytree(TOYS, tmp_path / "mine", ignore=shutil.ignore_patterns("__pycache__")))
        path = catalogue.folder / "budgets" / "nvidia-h200.toml"
        path.parent.mkdir()
        path.write_text(HEAD + text)
        return path, promises_for(record_of(case_result("k")), catalogue)

    return read


def test_a_device_without_a_file_keeps_the_rules_as_printed(promised):
    assert published_rules() == rules_for(promised("")[1])


def test_the_factor_from_which_a_case_is_degraded_is_the_devices(promised):
    assert 1.2 == rules_for(promised("[rules]\ndegraded_over_baseline = 1.2\n")[1]).degraded
