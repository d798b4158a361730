"""The plan's table: quoted once, and ours beside it."""

import pytest

from prism_bench.extensions.fusion.benefit import compared
from prism_bench.extensions.fusion.benefit.saving import PassRule, pass_rule, published_rows, source
from tests.extensions.fusion.benefit.toy_chain import AFTER_TIMES, BEFORE_TIMES, record, result, toy_ledger


def row_of(quantity, *ledgers):
    return next(one for one in compared(ledgers) if one.published.quantity == quantity)


def test_the_published_figures_are_those_that_were_printed():
    printed = {one.name: (*one.stages.values(), one.target) for one in published_rows()}
    assert pytest.approx((520e-6, 300e-6, 150e-6, 200e-6)) == printed["Active inference"]
    assert pytest.approx((1800e-6, 900e-6, 250e-6, 400e-6)) == printed["Transfer entropy"]
    assert pytest.approx((400e-6, 150e-6, 50e-6, 100e-6)) == printed["Linear algebra"]
    assert (170, 50, 3, 10) == printed["Kernel launches"]
    assert pytest.approx((0.92, 0.65, 0.45, 0.6)) == printed["Memory bandwidth use"]
    assert pytest.approx((0, 0.2, 0.45, 0.4)) == printed["Tensor-core use"]
    assert "no problem size" in source()


def test_the_pass_rule_is_the_plans():
    assert PassRule(error_below=1e-4, speedup_at_least=2.0) == pass_rule()
    assert [True, False, False, None] == [pass_rule().verdict(*one) for one in ((0, 2), (0, 1.9), (1e-4, 3), (0, None))]


def test_a_target_may_be_a_bound_from_below():
    by_name = {one.name: one for one in published_rows()}
    assert [True, False, None] == [by_name["Tensor-core use"].met(value) for value in (0.5, 0.4, None)]
    assert [True, False] == [by_name["Kernel launches"].met(value) for value in (3, 10)]


def test_our_cold_times_stand_beside_the_published_ones_and_are_held_to_the_target():
    found = row_of("time", toy_ledger(), toy_ledger(label="S1"))
    assert "Transfer entropy" == found.published.name
    assert ["transfer_entropy S0"] == [one.what for one in found.ours]
    stages = found.ours[0].stages
    assert pytest.approx((12e-6, 4e-6)) == (stages["baseline"].value, stages["full"].value)
    assert "transfer_entropy has no stage 'partial' at S0" == stages["partial"].reason
    assert found.ours[0].met is True


def test_a_missed_target_is_told():
    slow = record(result(times=BEFORE_TIMES), result("full", times={**AFTER_TIMES, "cold_time": 5e-4}))
    assert row_of("time", toy_ledger(slow)).ours[0].met is False


def test_launches_are_added_up_and_judged_only_when_no_chain_is_missing():
    found = row_of("launches", toy_ledger(), toy_ledger(label="S1"))
    assert (2, 1) == (found.ours[0].stages["baseline"].value, found.ours[0].stages["full"].value)
    assert "not every chain has a stage 'partial'" == found.ours[0].stages["partial"].reason
    assert ("transfer_entropy, S0", None) == (found.ours[0].what, found.ours[0].met)


def test_shares_that_nobody_counted_are_one_row_with_the_reason():
    found = row_of("dram_share", toy_ledger(), toy_ledger(label="S1"))
    assert 1 == len(found.ours)
    assert "prism-bench profile" in found.ours[0].stages["full"].reason


def test_counted_shares_are_held_to_the_target():
    profile = {"tool": "ncu", "values": {"dram_share": {"value": 0.7, "unit": "1"}}}
    read = record(result(times=BEFORE_TIMES), result("full", times=AFTER_TIMES, profile=profile))
    found = row_of("dram_share", toy_ledger(read)).ours[0]
    assert (0.7, False) == (found.stages["full"].value, found.met)


def test_chains_that_nobody_published_have_no_table():
    from tests.extensions.fusion.benefit.toy_chain import APART

    assert () == compared([toy_ledger(chain=APART)])
