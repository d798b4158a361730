"""What a difference between two groups of processes proves, however processes differ."""

import pytest

from prism_bench.analysis.compare.estimate import Medians, level_floor, supported


def side(*logs):
    return Medians(logs, (0.0,) * len(logs))


@pytest.mark.parametrize(("a", "b", "expected"), [(3, 3, False), (5, 5, False), (10, 10, False), (13, 13, True),
                                                  (15, 15, True), (1, 15, False), (0, 9, False)])  # fmt: skip
def test_thirteen_processes_a_side_exclude_that_they_were_dealt_by_chance(a, b, expected):
    assert expected == supported(a, b)


def test_the_level_is_the_largest_difference_between_processes_of_one_side():
    quiet = side(0.0, 0.01, 0.0), side(0.5, 0.5, 0.51)
    assert 0.01 == pytest.approx(level_floor([quiet]))
    assert 0.06 == pytest.approx(level_floor([quiet, (side(0.0, 0.06, 0.0), side(0.0, 0.0, 0.0))]))


def test_of_many_cases_with_enough_processes_one_in_a_hundred_may_stray():
    quiet = [(side(*[0.0] * 5), side(*[0.01, 0.0, 0.0, 0.0, 0.0]))] * 200
    strays = [(side(0.3, 0.0, 0.0, 0.0, 0.0), side(*[0.0] * 5))]
    assert 0.01 == pytest.approx(level_floor([*quiet, *strays * 2]))
    assert 0.3 == pytest.approx(level_floor([*quiet, *strays * 3]))


def test_no_cases_show_no_level():
    assert 0.0 == level_floor([])
