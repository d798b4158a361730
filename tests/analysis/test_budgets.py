"""Budgets of the specs and of the profiling guide."""

from types import SimpleNamespace

import pytest

from prism_bench.analysis.budgets import budget_verdicts
from prism_bench.analysis.published import published, published_verdicts
from prism_bench.analysis.summary import summary
from prism_bench.budget import Budget
from prism_bench.kernel import Variant
from tests.report.synthetic import case_result, cpu_record, record_of


def catalogue(*budgets, **variants):
    """As much of a catalogue as budgets are looked up in."""
    return SimpleNamespace(kernels={"softmax": SimpleNamespace(budgets=budgets, variants=variants)})


def verdicts(case, catalogue):
    return [one.verdict for one in budget_verdicts(summary(record_of(case)), catalogue)]


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


def test_the_published_table_holds_the_guides_nine_kernels():
    table = published()
    assert len(table) == 9
    assert table["lstm_cell"].budget == pytest.approx(3e-3)
    assert table["vector_add"].budget is None
    assert (table["pixel_entropy"].low, table["pixel_entropy"].high) == pytest.approx((3e-3, 8e-3))
    assert all(entry.source and entry.low < entry.high for entry in table.values())


@pytest.mark.parametrize(("end_to_end", "verdict"), [(4e-4, "met"), (6e-4, "missed")])
def test_the_published_budget_is_held_against_the_end_to_end_time(end_to_end, verdict):
    times = {"cold_time": 4e-6, "end_to_end_time": end_to_end}
    (one,) = published_verdicts(summary(record_of(case_result("ar_forecast", times=times))))
    assert one.verdict == verdict
    assert (one.cold, one.end_to_end) == pytest.approx((4e-6, end_to_end))


def test_only_the_published_workload_of_the_plain_kernel_is_compared():
    times = {"end_to_end_time": 1e-6}
    others = (
        case_result("ar_forecast", label="S1", times=times),
        case_result("ar_forecast", variant="naive", times=times),
        case_result("softmax", times=times),
    )
    assert published_verdicts(summary(record_of(*others))) == []


def test_without_an_end_to_end_time_the_published_budget_is_unmeasured():
    found = {one.published.kernel: one.verdict for one in published_verdicts(summary(cpu_record()))}
    assert found["matmul"] == "unmeasured"
    assert found["vector_add"] is None
