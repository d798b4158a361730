"""Budgets of the specs."""

from dataclasses import replace
from types import SimpleNamespace

from prism_bench.analysis.gate.budgets import budget_verdicts
from prism_bench.analysis.summary import summary_rows
from prism_bench.record.measurement import Energy
from prism_bench.spec.kernel import Variant
from prism_bench.spec.metric import Budget
from tests.report.synthetic import case_result, measurement, record_of


def catalogue(*budgets, **variants):
    """As much of a catalogue as budgets are looked up in."""
    return SimpleNamespace(kernels={"softmax": SimpleNamespace(budgets=budgets, variants=variants)})


def verdicts(case, catalogue):
    return [one.verdict for one in budget_verdicts(summary_rows(record_of(case)), catalogue)]


def test_a_budget_is_met_missed_or_unmeasured():
    case = case_result("softmax", times={"cold_time": 2e-6}, code={"registers": 70})
    budgets = (
        Budget("cold_time", at_most=3e-6),
        Budget("registers", at_most=64),
        Budget("bandwidth_share", at_least=0.8),
    )
    assert verdicts(case, catalogue(*budgets)) == ["met", "missed", "unmeasured"]


def test_a_metric_that_nobody_knows_is_unmeasured():
    assert verdicts(case_result("softmax"), catalogue(Budget("joy", at_least=1))) == ["unmeasured"]


def test_a_budget_of_another_label_does_not_apply():
    case = case_result("softmax", label="S0", times={"cold_time": 2e-6})
    assert verdicts(case, catalogue(Budget("cold_time", at_most=1, label="S1"))) == []


def test_a_kernel_outside_the_catalogue_has_no_budgets():
    assert verdicts(case_result("stranger"), catalogue(Budget("cold_time", at_most=1))) == []


def test_a_variant_is_held_to_its_own_budgets_only():
    plain, held = Variant("slow on purpose"), Variant("fast", budgets=(Budget("cold_time", at_most=1e-6),))
    book = catalogue(Budget("cold_time", at_most=1e-9), naive=plain, fast=held)
    times = {"cold_time": 2e-6}
    assert verdicts(case_result("softmax", variant="naive", times=times), book) == []
    assert verdicts(case_result("softmax", variant="fast", times=times), book) == ["missed"]
    assert verdicts(case_result("softmax", variant="gone", times=times), book) == []


def test_the_energy_of_a_launch_is_held_to_its_budget():
    hot = replace(measurement("hot_time", 1e-3), energy=Energy(joules=0.4))
    cases = case_result("softmax", measurements=(hot,)), case_result("softmax", times={"hot_time": 1e-3})
    book = catalogue(Budget("energy", at_most=0.3))
    assert [["missed"], ["unmeasured"]] == [verdicts(case, book) for case in cases]


def test_the_spills_of_a_record_are_held_to_their_budget():
    case = case_result("softmax", code={"spill_bytes": 8, "code_bytes": 4096, "compile_seconds": 0.5})
    assert verdicts(case, catalogue(Budget("spill_bytes", at_most=0))) == ["missed"]
    sizes = catalogue(Budget("code_bytes", at_most=4096), Budget("compile_seconds", at_most=0.4))
    assert verdicts(case, sizes) == ["met", "missed"]
