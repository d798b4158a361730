"""One ratio with its error, and the smallest change that can be told."""

from math import inf, isnan, log, log1p

import pytest

from prism_bench.analysis.compare.estimate import Estimate, Medians, Spread, estimate, pooled, smallest_change


def side(*logs, within=0.0):
    return Medians(tuple(logs), (within,) * len(logs))


A, B = side(0.0, 0.01, -0.01), side(0.05, 0.06, 0.04)


def test_the_ratio_is_of_b_over_a_and_lies_in_its_interval():
    found = estimate(A, B)
    low, high = found.interval()
    assert 0.05 == pytest.approx(log(found.ratio))
    assert low < found.ratio < high


def test_the_error_is_students_for_processes_without_spread_of_their_own():
    """Two samples of three with variance 1e-4 each: t = 0.05 / sqrt(2e-4 / 3) with four degrees of freedom."""
    found = estimate(A, B)
    assert (0.00816, 4) == pytest.approx((found.error, found.freedom), rel=1e-3)
    assert 0.0036 == pytest.approx(found.p, rel=0.02)


def test_a_known_spread_steadies_what_few_processes_happen_to_show():
    agreeing, shifted = side(0.0, 0.0, 0.0), side(0.01, 0.01, 0.01)
    alone, steadied = estimate(agreeing, shifted), estimate(agreeing, shifted, Spread(1e-4, 9))
    assert 0.0 == alone.p
    assert steadied.p > 0.1
    assert 13 == steadied.freedom


def test_one_process_a_side_is_judged_by_the_known_spread_alone():
    assert isnan(estimate(side(0.0), side(0.1)).error)
    assert 9 == estimate(side(0.0), side(0.1), Spread(1e-4, 9)).freedom


def test_an_unknown_error_allows_everything():
    unknown = Estimate(0.1, float("nan"), 0)
    assert (1.0, (0.0, inf)) == (unknown.p, unknown.interval())


def test_no_difference_and_no_error_is_no_evidence():
    assert (1.0, 0.0) == (Estimate(0.0, 0.0, 4).p, Estimate(0.1, 0.0, 4).p)


def test_widening_multiplies_the_error():
    assert estimate(A, B).p < estimate(A, B).widened(2).p


def test_the_pooled_spread_is_around_each_sides_own_centre():
    spread = pooled(A, B)
    assert (1e-4, 4) == pytest.approx((spread.variance, spread.freedom))
    assert isnan(pooled(side(0.0)).variance)


def test_between_is_what_the_samples_do_not_explain():
    assert 7e-5 == pytest.approx(Spread(1e-4, 4, 3e-5).between)
    assert 0.0 == Spread(1e-4, 4, 2e-4).between


def test_more_processes_see_smaller_changes():
    found = [smallest_change(Spread(1e-4, 8), count, count) for count in (2, 5, 20)]
    assert sorted(found, reverse=True) == found
    assert log1p(found[1]) == pytest.approx((3.355 + 1.860) * (2e-4 / 5) ** 0.5, rel=1e-3)


def test_without_a_spread_no_change_is_large_enough():
    assert inf == smallest_change(Spread(float("nan"), 0), 5, 5)
