"""How far the queue's sums may lie from their reference: the roundings of one addition an item, all the same way."""

import numpy as np
import pytest
import scipy.special

from prism_bench.spec.tolerance import compare
from tests.built_in import CATALOGUE


def compared(x, z, lost=0.0):
    """The sums of one item after another in FP32, compared; `lost` more is missing from the last element."""
    case = CATALOGUE.anywhere("persistent_queue[items=63,n=1]")
    given = np.array([x, 0, z], "float32")
    doubled = 2 * given[0]
    for _ in range(31):
        z = np.float32(z) + doubled
    served = np.array([[given[0]], [doubled], [np.float32(z - lost)]], "float32")
    wide = given.astype("float64")
    _, expected = case.spec.reference(workspace=wide, items=63, n=1, slots=64, xp=np)
    allowance = case.correctness.allowance("workspace", {"workspace": given}, np, scipy.special)
    return compare(served, expected, allowance.tolerance, np, terms=allowance.terms, magnitude=allowance.magnitude)


@pytest.mark.parametrize(("x", "z"), [(-0.00019338602, -1.001901), (0.7, -1.3), (1e-9, 1.0), (3.0, 0.0)])
def test_sums_in_single_precision_are_right(x, z):
    assert compared(x, z).passed


def test_an_item_that_was_not_served_is_wrong():
    assert not compared(-0.00019338602, -1.001901, lost=2 * -0.00019338602).passed
