"""Products and sums of random terms are judged by what their terms may be off by, not by how much a draw cancels."""

import numpy as np
import pytest

from prism_bench import normwise, product
from prism_bench.spec.tolerance import compare
from tests.spec.test_tolerance import INF, NAN, passes


def test_a_product_that_cancels_is_held_to_what_its_terms_are_off_by():
    """Four thousand terms of size 1 with random signs: the norm is 64; this draw has left 1e-3 of it."""
    tolerance, terms = product(magnitude=lambda a, b: a @ b, depth=lambda k: k), {"terms": 1e-3, "magnitude": 4096.0}
    assert not passes([1e-3 + 6e-4], [1e-3], tolerance, "float64", **terms), "without a depth"
    assert passes([1e-3 + 6e-4], [1e-3], tolerance, "float64", **terms, depth=4096)
    assert not passes([1e-3 + 7e-4], [1e-3], tolerance, "float64", **terms, depth=4096)


@pytest.mark.parametrize("magnitude", [4096.0, np.full((3, 5), 4096.0), np.full((3, 1), 4096.0)])
def test_a_depth_counts_the_magnitude_of_every_element(magnitude):
    expected = np.zeros((3, 5))
    found = compare(expected + 1e-3, expected, normwise(1e-3), np, magnitude=magnitude, depth=4096)
    assert found.norm_error == pytest.approx(1e-3 / 64)


def test_a_large_norm_is_its_own_divisor():
    found = compare(np.full(4, 101.0), np.full(4, 100.0), normwise(1e-3), np, magnitude=4096.0, depth=4096)
    assert found.norm_error == pytest.approx(1e-2)


@pytest.mark.parametrize("magnitude", [NAN, INF, np.array([NAN, INF])])
def test_a_magnitude_that_is_not_finite_widens_nothing(magnitude):
    assert not passes([1e-3, 0.0], [1e-4, 0.0], normwise(1e-3), "float64", magnitude=magnitude, depth=4096)


@pytest.mark.parametrize("seed", range(200))
def test_a_float32_product_of_one_element_is_right_whatever_was_drawn(seed):
    """The sum in one order; divided by the result alone, one draw in thirty is off by more than 1e-5."""
    rng, k = np.random.default_rng(seed), 4097
    a, b = rng.normal(size=(2, k)).astype("float32")
    actual = np.add.accumulate(a * b)[-1:]
    wide = a.astype("float64"), b.astype("float64")
    evaluated = {"terms": 1e-3, "magnitude": float(abs(wide[0]) @ abs(wide[1])), "depth": float(k)}
    tolerance = product(magnitude=lambda a, b: a @ b, depth=lambda k: k)
    assert passes(actual, [wide[0] @ wide[1]], tolerance, **evaluated)
