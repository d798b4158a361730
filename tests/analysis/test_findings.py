"""What a run has to say, and what a command ends with for it."""

from dataclasses import replace

from prism_bench.analysis.gate.budgets import BudgetVerdict
from prism_bench.analysis.run_analysis import exit_code, findings
from prism_bench.spec.metric import Budget, value_text
from tests.report.synthetic import case_result, gpu_record, measurement, record_of


def test_a_clean_run_has_nothing_to_say():
    assert findings(record_of(case_result("k", times={"cold_time": 1e-5}))) == []
    assert exit_code([]) == 0


def test_the_gravest_comes_first():
    gravities = [finding.gravity for finding in findings(gpu_record(complete=False))]
    assert gravities == sorted(gravities, key=("bad", "untrusted", "note").index)


def test_every_mishap_is_told_with_its_reason():
    told = {(finding.kind, finding.case) for finding in findings(gpu_record())}
    assert {kind for kind, _ in told} == {"crashed", "wrong", "invalid", "skipped", "throttled"}
    assert all(finding.message for finding in findings(gpu_record()))


def test_an_incomplete_run_says_so():
    (finding,) = findings(record_of(complete=False))
    assert (finding.kind, finding.case) == ("incomplete", None)


def test_choices_that_did_not_count_are_told_and_are_no_fault():
    record = replace(record_of(case_result("a")), tuning={"asked": "tuned", "stale": {"a[n=1]": "the source changed"}})
    (found,) = findings(record)
    assert ("note", "stale", "a[n=1]") == (found.gravity, found.kind, found.case)
    assert "launched by default, its choice is stale: the source changed" == found.message
    (unused,) = findings(replace(record, tuning={"asked": "tuned", "unused": "of another device"}))
    assert ("untuned", "of another device", 0) == (unused.kind, unused.message, exit_code([unused, found]))


def test_a_missed_budget_names_value_and_promise():
    verdict = BudgetVerdict("k[n=1]", Budget("bandwidth_share", at_least=0.85), 0.5, "missed")
    (finding,) = findings(record_of(), [verdict])
    assert finding.message == "bandwidth share is 50 %; the budget is at least 85 %"


def test_exit_codes_follow_gravity():
    wrong = record_of(case_result("k", status="wrong", reason="differs"))
    refused = record_of(case_result("k", measurements=(measurement("cold_time", 1e-6, valid=False, reason="no"),)))
    skipped = record_of(case_result("k", status="skipped", reason="too large"))
    assert [exit_code(findings(record)) for record in (wrong, refused, skipped)] == [1, 3, 0]


def test_values_are_told_in_their_unit():
    assert value_text("cold_time", 2e-6) == "2.00 us"
    assert value_text("registers", 64.0) == "64"
    assert value_text("bandwidth", 4e12) == "4.00 TB/s"
    assert value_text("peer_ratio", 1.25) == "1.25x"
    assert value_text("cold_time", None) == "-"
