"""The gate: what it asks, what opens it, what it tells."""

from dataclasses import replace
from datetime import date
from pathlib import Path
from types import SimpleNamespace

import pytest

from prism_bench.analysis.gate.budgets import Promises
from prism_bench.analysis.gate.checks import (
    MANY,
    GateCheck,
    GatePart,
    alerts,
    checks_states,
    gate,
    occasion,
    of_budgets,
    of_run,
)
from prism_bench.analysis.run_analysis import read
from prism_bench.extensions.ci.alerts import Ledger
from prism_bench.spec.metric import Budget
from tests.report.synthetic import case_result, gpu_record, measurement, record_of

PATH = Path("one.json.gz")
FAST, SLOW = case_result("softmax", times={"cold_time": 5e-6}), case_result("softmax", times={"cold_time": 9e-6})


def catalogue(*budgets):
    """As much of a catalogue as budgets are looked up in."""
    kernels = {"softmax": SimpleNamespace(budgets=budgets, variants={})}
    return SimpleNamespace(kernels=kernels, folder=Path("nowhere"), budgets=None)


def gated(*cases, budgets=(), more=(), **record):
    return gate(read(record_of(*cases, **record), catalogue(*budgets)), PATH, more)


SKIPPED = case_result("softmax", status="skipped", reason="no memory")
NULL = case_result("null", times={"cold_time": 2e-6}, ceiling="launch")
QUICK = Budget("cold_time", at_most=6e-6)


def test_a_kept_promise_opens_it():
    passed = gated(FAST, budgets=[QUICK])
    assert (0, [], ["ok", "met"]) == (passed.exit_code, passed.concerns, [check.answer for check in passed.checks])


def test_a_broken_promise_shuts_it():
    passed = gated(SLOW, budgets=[QUICK])
    (check,) = passed.concerns
    assert (1, "missed", "cold_time", pytest.approx(1.5)) == (
        passed.exit_code, check.answer, check.metric, check.severity,
    )  # fmt: skip


def test_what_was_not_measured_is_not_met():
    passed = gated(FAST, budgets=[Budget("hot_time", at_most=1e-6)])
    assert ["ok", "unmeasured"] == [check.answer for check in passed.checks]
    assert not passed.parts[1].answered


def test_a_promise_on_a_case_that_did_not_run_is_unmeasured():
    reading = replace(read(record_of(FAST)), promises=Promises(budgets={"gone[n=1]": (QUICK,)}))
    (check,) = gate(reading, PATH).parts[1].checks
    assert ("gone[n=1]", "unmeasured", False) == (check.case, check.answer, check.answered)


def test_an_expired_promise_binds_nobody_and_is_not_met():
    passed = gated(SLOW, budgets=[replace(QUICK, expires=date(2020, 1, 1), owner="Ada")])
    (check,) = passed.parts[1].checks
    assert (0, "expired", "note", False) == (passed.exit_code, check.answer, check.gravity, check.answered)


def test_an_empty_record_passes_nothing():
    assert 2 == gated().exit_code
    assert 2 == gated(case_result("softmax", status="skipped", reason="no memory")).exit_code


def test_a_wrong_kernel_is_bad_and_a_doubtful_one_worse():
    wrong = case_result("softmax", status="wrong", reason="y[0] is 2, the reference says 1")
    assert 1 == gated(wrong).exit_code
    doubtful = replace(FAST, measurements=(measurement("cold_time", 1e-9, valid=False, reason="below the floor"),))
    assert 3 == gated(wrong, doubtful).exit_code


def test_every_mishap_of_a_run_is_asked_once():
    asked = of_run(read(gpu_record()))
    assert len(gpu_record().cases) == sum(check.metric is None and check.answer in ("ok", "wrong", "skipped", "crashed")
                                          for check in asked)  # fmt: skip
    assert {"wrong", "crashed", "invalid", "throttled", "skipped"} <= {check.answer for check in asked}


def test_without_a_catalogue_no_budget_is_met():
    part = gate(read(record_of(FAST)), PATH).parts[1]
    assert ((), "no budget applies to a case of this record") == (part.checks, part.silent)
    assert [] == of_budgets(read(record_of(FAST)))


def test_other_parts_count_as_much():
    step = GatePart(
        "trend", (GateCheck(None, "cold_time", "step", "bad", "12 cases became slower", 1.08, ("softmax[n=100]",)),)
    )
    assert 1 == gated(FAST, more=[step]).exit_code


def test_the_state_of_the_world_is_code_and_driver():
    software = {"driver": "580.1", "nvrtc": "13.0", "numpy": "2.0"}
    found = checks_states(record_of(replace(FAST, code={"sass": "abc"}), software=software))
    assert {
        "softmax[n=100]": "code abc, driver 580.1, nvrtc 13.0",
        None: "commit 7471611d, driver 580.1, nvrtc 13.0",
    } == found
    assert "commit 7471611d" == checks_states(record_of(FAST, software={}))["softmax[n=100]"]
    assert "commit unknown" == checks_states(record_of(FAST, software={}, commit=None))["softmax[n=100]"]


def test_an_alert_is_the_same_thing_on_another_commit_and_record():
    first, second = (gated(SLOW, budgets=[QUICK], commit=commit * 40, created=f"2026-11-2{day}T00:00:00")
                     for commit, day in (("a", 0), ("b", 1)))  # fmt: skip
    (one,), (other,) = alerts(first), alerts(second)
    assert one.fingerprint == other.fingerprint
    assert one.reproduce != other.reproduce
    assert ("bad", "missed", "softmax[n=100]", "nvidia-h200") == (one.gravity, one.kind, one.subject, one.machine)


def test_alerts_of_two_metrics_two_cases_two_machines_differ():
    budgets = [QUICK, Budget("hot_time", at_most=1e-9)]
    case = case_result("softmax", times={"cold_time": 9e-6, "hot_time": 9e-6})
    other = case_result("softmax", workload={"n": 7}, times={"cold_time": 9e-6, "hot_time": 9e-6})
    prints = [alert.fingerprint for alert in alerts(gated(case, other, budgets=budgets))]
    prints += [alert.fingerprint for alert in alerts(gated(case, budgets=budgets, machine={"id": "den"}))]
    assert 6 == len(set(prints))


def test_many_of_one_kind_are_one_alert():
    """A driver that slows sixty cases is one thing to know; a sixty-first is none, twenty more are."""

    def told(count, **record):
        cases = [case_result("softmax", workload={"n": n}, times={"cold_time": 9e-6}) for n in range(count)]
        return alerts(gated(*cases, budgets=[QUICK], **record))

    (many,) = told(60)
    assert (None, "missed", 60) == (many.subject, many.kind, len(many.facts["cases"]))
    assert many.message.startswith("60 cases (softmax[n=0], softmax[n=1], softmax[n=2] and 57 more); the farthest, ")
    assert many.reproduce.endswith("--label S0 --filter softmax")
    ledger = Ledger().with_sent([many], "json", "now")
    assert [] == ledger.news(told(61, commit="c" * 40), "json")
    assert 1 == len(ledger.news(told(80), "json"))
    assert 1 == len(ledger.news(told(60, software={"driver": "590"}), "json"))
    assert MANY == len(told(MANY))


def test_two_kernels_with_many_wrong_cases_are_two_alerts():
    sizes = [{"n": n} for n in range(MANY + 1)]
    cases = [
        case_result(kernel, "edge", workload=size, status="wrong", reason="y") for kernel in "ab" for size in sizes
    ]
    one, other = alerts(gated(*cases))
    assert one.fingerprint != other.fingerprint
    assert ["prism-bench verify --backend cuda --filter a", "prism-bench verify --backend cuda --filter b"] == [
        alert.reproduce.split(" && ")[1] for alert in (one, other)
    ]


def test_what_is_well_or_a_note_is_no_alert():
    passed = gated(FAST, budgets=[QUICK, Budget("hot_time", at_most=1.0)])
    assert [] == alerts(passed)
    assert "prism-bench check on nvidia-h200: No change." == occasion(passed, "No change.").heading


def test_a_machine_without_a_name_is_still_judged():
    assert "unnamed" == gated(FAST, machine={}).machine


def test_a_remark_is_no_answer():
    """A record that only says of itself that it was cut short has judged nothing."""
    for kind in ("incomplete", "evidence", "untuned", "left out", "records", "a kind that nobody has thought of yet"):
        assert not GateCheck(None, None, kind, "note", "a remark").answered
    assert GateCheck(None, None, "step", "note", "better").answered
    assert 2 == gated(complete=False).exit_code


def test_machine_kernels_alone_pass_nothing():
    alone = gated(NULL)
    assert (2, False) == (alone.exit_code, alone.parts[0].answered)
    assert "except the machine's own" in alone.parts[0].silent
    assert 0 == gated(NULL, FAST).exit_code
    assert 1 == gated(replace(NULL, status="crashed", measurements=())).exit_code


@pytest.mark.parametrize("cases", [[SKIPPED], [SKIPPED, NULL], [NULL]], ids=["skipped", "both", "machine"])
def test_silent_parts_open_no_gate(cases):
    """Every part that can be silent is: notes, a budget on nothing, no baseline, too short a past."""
    silent = (
        GatePart("baseline", silent="no baseline"),
        GatePart("trend", (GateCheck(None, None, "left out", "note", "x"),)),
    )
    gone = GatePart("last", (GateCheck("k[n=1]", "cold_time", "unmeasured", "note", "not in this record"),))
    found = gated(*cases, budgets=[Budget("hot_time", at_most=1.0)], more=[*silent, gone], complete=False)
    assert (2, []) == (found.exit_code, found.concerns)
