"""Rounding to each precision and back, against definitions that share nothing with the tables."""

import numpy as np
import pytest

from prism_bench.spec.tolerance import PRECISIONS, widened

VALUES = np.random.default_rng(0).normal(size=4000) * np.exp2(np.random.default_rng(1).integers(-12, 8, 4000))


def as_values(name, values):
    return widened(PRECISIONS[name].narrowed(values), np).astype("float64")


def nearest(values, fraction, smallest):
    """Values with so many bits of fraction, none finer than `smallest`, by exact arithmetic; ties to even."""
    _, exponent = np.frexp(values)
    step = np.maximum(np.exp2(exponent - 1.0 - fraction), smallest)
    return np.rint(values / step) * step


@pytest.mark.parametrize(
    ("name", "fraction", "smallest"), [("tf32", 10, 0), ("bfloat16", 7, 0), ("float16", 10, 2**-24)]
)
def test_the_nearest_number(name, fraction, smallest):
    values = VALUES.astype("float32").astype("float64")
    assert np.array_equal(nearest(values, fraction, smallest), as_values(name, values))


def test_e4m3_rounds_to_the_nearest_and_stops_at_its_largest():
    expected = np.clip(nearest(VALUES, 3, 2**-9), -448, 448)
    assert np.array_equal(expected, as_values("float8", VALUES))
    assert [448, -448, 0, -0.0] == as_values("float8", [1e9, -np.inf, 2**-11, -0.0]).tolist()
    assert np.isnan(as_values("float8", [np.nan])).all()


def test_every_pattern_of_e4m3_goes_there_and_back():
    patterns = np.delete(np.arange(256, dtype="uint8"), [127, 255])
    assert patterns.tolist() == PRECISIONS["float8"].narrowed(widened(patterns, np)).tolist()
    assert np.isnan(widened(np.array([127, 255], "uint8"), np)).all()
    assert [2**-9, 2**-6, 1.0, 448.0] == widened(np.array([1, 8, 56, 126], "uint8"), np).tolist()


@pytest.mark.parametrize("name", ["tf32", "bfloat16", "float16"])
def test_what_is_not_finite_stays(name):
    found = as_values(name, np.array([np.inf, -np.inf, np.nan]))
    assert [np.inf, -np.inf] == found[:2].tolist()
    assert np.isnan(found[2])


def test_bits_in_memory():
    assert [64, 32, 32, 32, 16, 16, 8] == [one.bits for one in PRECISIONS.values()]
