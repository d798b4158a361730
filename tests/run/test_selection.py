"""Indices of selected elements are compared by what they select: equal elements may change places, nothing else may."""

import numpy as np
import pytest

from prism_bench.spec.correctness import selected
from prism_bench.spec.tolerance import compare, selection

VALUES = np.array([[5.0, 3.0, 3.0, 1.0, 3.0, np.nan], [2.0, 2.0, 2.0, 2.0, 2.0, 2.0]])
EXPECTED = np.array([[0, 1, 2], [0, 1, 2]], "int32")


def passes(actual, expected=EXPECTED, values=VALUES):
    got, want = selected(np.asarray(actual, "int32"), expected, values, np)
    return compare(got, want, selection(lambda x: x), np).passed


@pytest.mark.parametrize("actual", [EXPECTED, [[0, 2, 1], [5, 4, 3]], [[0, 4, 1], [0, 1, 2]]])
def test_equal_elements_may_change_places(actual):
    assert passes(actual)


@pytest.mark.parametrize(
    "row",
    [
        [1, 0, 2],  # out of order
        [1, 2, 4],  # the largest is missing
        [0, 1, 1],  # one twice
        [0, 1, 3],  # a smaller one
        [0, 1, 5],  # NaN counts as -inf
        [0, 1, 6],  # outside of the row
        [0, 1, -1],
    ],
)
def test_nothing_else_passes(row):
    assert not passes([row, [0, 1, 2]])


def test_one_index_a_row_may_be_none():
    expected = np.array([-1, 3], "int32")
    assert passes([-1, 0], expected)
    assert not passes([0, 3], expected)
    assert not passes([-1, -1], expected)


def test_a_row_of_nan_and_infinity_is_compared_as_minus_infinity():
    values = np.array([[-np.inf, np.nan, np.inf, -np.inf]])
    expected = np.array([[2, 0, 1]], "int32")
    assert passes([[2, 3, 1]], expected, values)
    assert not passes([[0, 2, 1]], expected, values)
