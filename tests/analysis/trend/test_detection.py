"""Planted steps are found where they are; noise, drift, outliers, clock states and quantised times are no steps."""

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism_bench.analysis.trend.detection import level_changes
from prism_bench.analysis.trend.series import SeriesRuns

FLOOR = 0.02


def normal(count, seed=0, noise=0.01):
    return numpy.random.default_rng(seed).normal(0, noise, count)


def test_a_flat_series_has_no_step():
    assert [[]] * 30 == [level_changes(normal(120, seed), FLOOR) for seed in range(30)]


@pytest.mark.parametrize("change", [0.1, -0.1])
def test_a_step_is_found_at_its_first_night(change):
    assert [60] == level_changes(normal(120) + change * (numpy.arange(120) >= 60), FLOOR)


@pytest.mark.parametrize(("lasted", "found"), [(1, []), (2, []), (3, [117]), (10, [110])])
def test_a_step_is_confirmed_by_its_third_night(lasted, found):
    values = normal(120, noise=0.004) + 0.06 * (numpy.arange(120) >= 120 - lasted)
    assert found == level_changes(values, FLOOR)


def test_up_and_down_are_two_steps():
    inside = (numpy.arange(120) >= 40) & (numpy.arange(120) < 80)
    assert [40, 80] == level_changes(normal(120, noise=0.003) + 0.06 * inside, FLOOR)


@pytest.mark.parametrize("apart", [3, 4, 5, 7])
@pytest.mark.parametrize("second", [0.05, -0.05], ids=["up, up", "up, down"])
def test_two_steps_close_to_each_other_are_both_found(apart, second):
    """The first piece of eight runs could not be left: of two steps four runs apart one was lost or misplaced."""
    for seed in range(10):
        at = 20 + 8 * seed
        values = normal(120, seed, 0.007)
        values[at:] += 0.05
        values[at + apart :] += second
        found = level_changes(values, FLOOR)
        assert 2 == len(found) and abs(found[0] - at) <= 1 and abs(found[1] - at - apart) <= 1, (seed, at, found)


def test_three_steps_close_to_each_other_are_all_found():
    values = normal(120, noise=0.005)
    for at in (60, 64, 69):
        values[at:] += 0.05
    assert [60, 64, 69] == level_changes(values, FLOOR)


def test_outliers_near_them_hide_no_close_steps():
    values = normal(120, noise=0.006)
    values[[11, 37, 56, 67, 80, 102]] += 0.4
    values[60:] += 0.05
    values[64:] += 0.05
    assert [60, 64] == level_changes(values, FLOOR)


def test_an_outlier_of_another_size_explains_no_level():
    values = normal(120)
    values[[7, 19, 33, 48, 61, 90]] += 0.4
    values[-3:] += 0.06
    assert [117] == level_changes(values, FLOOR)


def test_a_step_below_the_floor_is_not_told():
    values = normal(200, noise=0.001) + 0.015 * (numpy.arange(200) >= 100)
    assert ([], [100]) == (level_changes(values, 0.02), level_changes(values, 0.01))


def test_lonely_nights_are_no_steps_and_hide_none():
    values = normal(120)
    values[[20, 21, 50, 90]] += 0.4
    assert [] == level_changes(values, FLOOR)
    values[70:] += 0.08
    assert [70] == level_changes(values, FLOOR)


def test_a_level_that_was_often_visited_is_no_news():
    """Two clock states: three nights in the slow one say nothing where one night in six is slow anyway."""
    slow = (numpy.arange(120) % 6 == 0) | (numpy.arange(120) >= 117)
    assert [] == level_changes(normal(120) + 0.08 * slow, FLOOR)


def test_three_slow_nights_are_news_where_there_were_none():
    values = normal(120)
    values[-3:] += 0.08
    assert [117] == level_changes(values, FLOOR)


def test_neighbours_that_drift_together_count_for_less():
    white, value, drift = normal(120, 1), 0.0, []
    for shock in white:
        value = 0.8 * value + shock
        drift.append(value)
    assert [] == level_changes(drift, FLOOR)
    assert SeriesRuns.of(drift, FLOOR).scatter([0, 120]).memory > 0.6
    assert SeriesRuns.of(white, FLOOR).scatter([0, 120]).memory < 0.2


def test_what_was_learned_from_few_nights_is_doubted():
    values = normal(200)
    scatters = [SeriesRuns.of(values[:count], FLOOR).scatter([0, count]) for count in (20, 200)]
    assert scatters[0].doubt > 1.2 > 1.05 > scatters[1].doubt > 1


def test_quantised_times_are_no_steps():
    assert [] == level_changes(numpy.round((normal(120) + 0.025) / 0.05) * 0.05, FLOOR)


@pytest.mark.parametrize("count", range(11))
def test_a_young_series_has_no_step(count):
    assert [] == level_changes([0.0] * (count // 2) + [1.0] * (count - count // 2), FLOOR)


def test_a_series_without_noise_is_no_trouble():
    assert [] == level_changes([1.0] * 50, FLOOR)
    assert [30] == level_changes([1.0] * 30 + [1.1] * 20, FLOOR)
    assert [10] == level_changes([1.0] * 10 + [1.2] * 4, FLOOR)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-20, 20), min_size=0, max_size=80))
def test_any_series_gets_an_answer(values):
    found = level_changes(values, FLOOR)
    assert sorted(set(found)) == found
    assert all(0 < position < len(values) for position in found)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.floats(-5, 5), st.integers(20, 100))
def test_the_unit_does_not_matter(seed, shift, position):
    values = normal(120, seed, 0.004) + 0.05 * (numpy.arange(120) >= position)
    assert level_changes(values, FLOOR) == level_changes(values + shift, FLOOR)
