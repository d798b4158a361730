"""Budgets are never silently met."""

from datetime import date

import pytest

from prism_bench import Budget
from prism_bench.errors import SpecError


@pytest.mark.parametrize(
    ("budget", "value", "verdict"),
    [
        (Budget("registers", at_most=64), 64, "met"),
        (Budget("registers", at_most=64), 65, "missed"),
        (Budget("bandwidth_share", at_least=0.85), 0.85, "met"),
        (Budget("bandwidth_share", at_least=0.85), 0.8499, "missed"),
        (Budget("registers", at_most=64), None, "unmeasured"),
        (Budget("registers", at_most=64), float("nan"), "unmeasured"),
        (Budget("spill_bytes", at_most=0), 0, "met"),
    ],
)
def test_a_verdict_follows_from_the_value(budget, value, verdict):
    assert verdict == budget.verdict(value)


def test_an_expired_budget_is_neither_met_nor_missed():
    budget = Budget("registers", at_most=64, owner="us", reason="measured", expires=date(2026, 6, 30))
    assert ["met", "expired"] == [budget.verdict(64, date(2026, 6, day)) for day in (29, 30)]
    assert "expired" == budget.verdict(65, date(2026, 7, 1))


@pytest.mark.parametrize("limit", [-1, -0.5, float("nan")])
@pytest.mark.parametrize("bound", ["at_most", "at_least"])
def test_a_budget_is_a_number_from_0_upwards(bound, limit):
    with pytest.raises(SpecError, match="cannot be kept; a budget is a number from 0 upwards"):
        Budget("registers", **{bound: limit})


@pytest.mark.parametrize("bounds", [{}, {"at_most": 1, "at_least": 0}])
def test_a_budget_has_exactly_one_bound(bounds):
    with pytest.raises(SpecError, match=r"Budget\('registers'\): give exactly one of at_most and at_least"):
        Budget("registers", **bounds)
