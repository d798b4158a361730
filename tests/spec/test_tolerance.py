"""Each tolerance passes just inside its bound, fails just outside, and NaN and infinity never slip through."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism_bench import absolute, elementwise, exact, exact_except, normalising, normwise, product, reduction
from prism_bench.spec.tolerance import compare

NAN, INF = float("nan"), float("inf")
FLOATS = ("float16", "float32", "float64")


def passes(actual, expected, tolerance, dtype="float32", **evaluated):
    return compare(np.asarray(actual, dtype), np.asarray(expected), tolerance, np, **evaluated).passed


def one_ulp_above(value, steps, dtype):
    """`value` moved up by `steps` representable numbers of `dtype`."""
    kind = {"float16": np.uint16, "float32": np.uint32, "float64": np.uint64}[dtype]
    return (np.asarray(value, dtype).view(kind) + kind(steps)).view(dtype)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float32"])
def test_what_is_exact_except_in_places_may_differ_there_alone(dtype):
    tolerance = exact_except(lambda x: x > 0)
    evaluated = {"terms": tolerance.terms, "magnitude": np.array([False, True, False])}
    assert passes([1, 3, 2], [1, 2, 2], tolerance, dtype, **evaluated)
    assert not passes([1, 2, 3], [1, 2, 2], tolerance, dtype, **evaluated)
    assert not passes([0, 3, 2], [1, 2, 2], tolerance, dtype, **evaluated)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("value", [1.5, 3.0, 100.25])
def test_elementwise_allows_its_ulps_and_not_one_more(dtype, value):
    tolerance = elementwise(ulps=4, floor=0)
    assert passes([one_ulp_above(value, 4, dtype)], [value], tolerance, dtype)
    assert not passes([one_ulp_above(value, 5, dtype)], [value], tolerance, dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("value", [1.0, 2.0, 0.25])
def test_an_ulp_at_a_power_of_two_is_the_gap_above_it(dtype, value):
    tolerance = elementwise(ulps=1, floor=0)
    assert passes([one_ulp_above(value, 1, dtype)], [value], tolerance, dtype)
    assert not passes([one_ulp_above(value, 2, dtype)], [value], tolerance, dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_an_ulp_of_a_subnormal_is_the_smallest_subnormal(dtype):
    smallest = float(np.finfo(dtype).smallest_subnormal)
    tolerance = elementwise(ulps=2, floor=0)
    assert passes([np.asarray(5 * smallest, dtype)], [3 * smallest], tolerance, dtype)
    assert not passes([np.asarray(6 * smallest, dtype)], [3 * smallest], tolerance, dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_an_ulp_of_zero_is_the_smallest_subnormal(dtype):
    smallest = float(np.finfo(dtype).smallest_subnormal)
    tolerance = elementwise(ulps=4, floor=0)
    assert passes([np.asarray(4 * smallest, dtype)], [0.0], tolerance, dtype)
    assert not passes([np.asarray(5 * smallest, dtype)], [0.0], tolerance, dtype)


def test_elementwise_allows_its_floor_near_zero():
    tolerance = elementwise(ulps=4, floor=1e-7)
    assert passes([0.99e-7], [0.0], tolerance)
    assert not passes([1.01e-7], [0.0], tolerance)


def test_absolute_allows_its_limit_everywhere():
    assert passes([1000.0 + 0.9e-5], [1000.0], absolute(1e-5), "float64")
    assert not passes([1000.0 + 1.1e-5], [1000.0], absolute(1e-5), "float64")


def test_normalising_allows_a_share_of_each_element_and_a_floor_of_the_peak():
    expected = [1.0, 1e-9]
    assert passes([1 + 0.9e-5, 1e-9], expected, normalising(), "float64")
    assert not passes([1 + 1.1e-5, 1e-9], expected, normalising(), "float64")
    assert passes([1.0, 1e-9 + 0.9e-6], expected, normalising(), "float64")
    assert not passes([1.0, 1e-9 + 1.1e-6], expected, normalising(), "float64")


def test_reduction_allows_a_share_of_the_terms_even_where_they_cancel():
    tolerance = reduction(magnitude=lambda x: abs(x).sum())
    assert passes([0.9e-3], [0.0], tolerance, "float64", terms=1e-6, magnitude=1000.0)
    assert not passes([1.1e-3], [0.0], tolerance, "float64", terms=1e-6, magnitude=1000.0)


def test_product_allows_gamma_per_component_from_the_depth_by_name():
    tolerance = product(magnitude=lambda a, b: a @ b, depth=lambda k: k)
    ku = 1024 * 2.0**-24
    assert ku / (1 - ku) == tolerance.terms(k=1024)
    terms = tolerance.terms(k=1024)
    assert passes([1e6, 0.99 * terms], [1e6, 0.0], tolerance, "float64", terms=terms, magnitude=1.0)
    assert not passes([1e6, 1.01 * terms], [1e6, 0.0], tolerance, "float64", terms=terms, magnitude=1.0)


def test_product_bounds_the_whole_output_besides():
    tolerance = product(magnitude=lambda a, b: a @ b, depth=lambda k: k)
    found = compare(np.full(100, 1 + 2e-5), np.ones(100), tolerance, np, terms=1e-3, magnitude=1.0)
    assert 0 == found.differing
    assert not found.passed


def test_normwise_looks_at_the_whole_output():
    expected = np.full(100, 1.0)
    one_off = expected.copy()
    one_off[7] += 0.9e-2  # over the norm of 10: 0.9e-3
    assert passes(one_off, expected, normwise(1e-3), "float64")
    one_off[7] += 0.2e-2
    assert not passes(one_off, expected, normwise(1e-3), "float64")


@pytest.mark.parametrize("dtype", FLOATS)
def test_exact_allows_the_rounding_to_the_outputs_type_and_nothing_more(dtype):
    third = np.asarray([1 / 3], dtype)
    assert passes(third, [1 / 3], exact(), dtype)
    assert not passes(one_ulp_above(third, 1, dtype), [1 / 3], exact(), dtype)


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint32", "int64", "uint64"])
def test_exact_holds_integers_to_the_last_bit(dtype):
    top = np.iinfo(dtype).max
    actual = np.asarray([top], dtype)
    assert compare(actual, np.asarray([top], dtype), exact(), np).passed
    assert not compare(actual, np.asarray([top - 1], dtype), exact(), np).passed


def test_unsigned_integers_do_not_wrap_around():
    found = compare(np.asarray([0], "uint32"), np.asarray([1], "uint32"), exact(), np)
    assert (1.0, False) == (found.max_error, found.passed)


def test_an_overflow_of_the_type_is_the_rounded_reference():
    assert passes([INF], [6e38], exact())
    assert not passes([3e38], [6e38], exact())


@pytest.mark.parametrize(
    "tolerance", [elementwise(ulps=0, floor=0), reduction(lambda x: x), normalising(), absolute(0)]
)
def test_what_underflows_may_be_zero(tolerance):
    assert passes([0.0], [1e-46], tolerance, terms=1e-6, magnitude=1e-46)
    assert not passes([3e-45], [1e-46], tolerance, terms=1e-6, magnitude=1e-46)


ALL = {
    "exact": (exact(), {}),
    "elementwise": (elementwise(), {}),
    "normalising": (normalising(), {}),
    "reduction": (reduction(magnitude=lambda x: x), {"terms": 1e-6, "magnitude": 10.0}),
    "reduction of infinite terms": (reduction(magnitude=lambda x: x), {"terms": 1e-6, "magnitude": INF}),
    "reduction of NaN": (reduction(magnitude=lambda x: x), {"terms": 1e-6, "magnitude": NAN}),
    "product": (product(lambda a: a, lambda k: k), {"terms": 1e-6, "magnitude": 10.0}),
    "normwise": (normwise(1e-3), {}),
    "absolute": (absolute(1e-5), {}),
}


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_the_same_special_value_on_both_sides_is_right(name, value):
    tolerance, evaluated = ALL[name]
    assert passes([value, 1.0], [value, 1.0], tolerance, **evaluated)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    ("actual", "expected"),
    [(NAN, 1.0), (1.0, NAN), (INF, 1.0), (1.0, INF), (INF, -INF), (-INF, INF), (NAN, INF), (INF, NAN), (NAN, 0.0)],
)
def test_a_special_value_on_one_side_is_wrong(name, actual, expected):
    tolerance, evaluated = ALL[name]
    assert not passes([actual, 1.0], [expected, 1.0], tolerance, **evaluated)
    assert not passes([actual], [expected], tolerance, **evaluated)


@pytest.mark.parametrize("name", ALL)
def test_an_empty_output_is_right_and_nothing_was_compared(name):
    tolerance, evaluated = ALL[name]
    found = compare(np.empty((0, 3), "float32"), np.empty((0, 3)), tolerance, np, **evaluated)
    assert (True, 0, ()) == (found.passed, found.compared, found.place)


def test_the_worst_place_is_the_one_furthest_beyond_its_allowance():
    expected = np.asarray([[1e6, 1.0], [1.0, 1.0]])
    actual = expected + [[1e-3, 0.0], [0.0, 1e-4]]
    found = compare(actual, expected, elementwise(ulps=0, floor=1e-5), np)
    assert (0, 0) == found.place
    assert 2 == found.differing
    assert 1e-3 == pytest.approx(found.max_error)


def test_the_worst_place_of_a_relative_tolerance_is_not_the_largest_number():
    expected = np.asarray([[1e3, 1.0], [2.0, 1e3]])
    actual = expected * [[1 + 1e-6, 1.0], [1 + 1e-2, 1.0]]
    found = compare(actual, expected, normalising(), np)
    assert (1, 0) == found.place
    assert (2.02, 2.0) == pytest.approx((found.actual, found.expected))
    assert 1e-2 == pytest.approx(found.max_relative)


@pytest.mark.parametrize("name", ALL)
def test_a_nan_among_numbers_is_the_worst_place(name):
    tolerance, evaluated = ALL[name]
    actual = np.asarray([1.0, 2.0, NAN, 4.0])
    found = compare(actual, np.asarray([1.0, 2.0, 3.0, 4.0]), tolerance, np, **evaluated)
    assert (2,) == found.place


def test_a_loosened_tolerance_is_another_one():
    strict = elementwise(ulps=4)
    assert 8 == strict.loosened(ulps=8).ulps
    assert 4 == strict.ulps


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.floats(width=32, allow_nan=True, allow_infinity=True), max_size=20))
def test_whatever_it_holds_an_output_equals_itself(values):
    array = np.asarray(values, "float32")
    for tolerance, evaluated in ALL.values():
        assert compare(array, array.astype("float64"), tolerance, np, **evaluated).passed


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.floats(width=32, min_value=-(2.0**100), max_value=2.0**100), min_size=1, max_size=20), st.data())
def test_one_element_off_by_half_its_size_is_always_found_and_placed(values, data):
    expected = np.asarray(values, "float64")
    place = data.draw(st.integers(0, len(values) - 1))
    actual = expected.copy()
    actual[place] += 1 + abs(actual[place]) / 2
    found = compare(actual, expected, elementwise(), np)
    assert (False, 1, (place,)) == (found.passed, found.differing, found.place)


@pytest.mark.parametrize("tolerance", [elementwise(), normalising(), exact(), normwise(1e-3), reduction(None)])
def test_pieces_find_what_the_whole_does(tolerance, monkeypatch):
    rng = np.random.default_rng(1)
    expected = rng.normal(size=(7, 11))
    actual = expected.astype("float32")
    actual[3, 5] += 0.25
    actual[6, 1] = NAN
    magnitude = np.abs(expected).sum(axis=1, keepdims=True)
    compared = lambda: compare(actual, expected, tolerance, np, terms=1e-6, magnitude=magnitude)  # noqa: E731
    whole = compared()
    monkeypatch.setattr("prism_bench.spec.tolerance.HOST_PIECE", 10)
    pieces = compared()
    assert not whole.passed and not pieces.passed
    assert (whole.differing, whole.place) == (pieces.differing, pieces.place)
    np.testing.assert_array_equal(vars(whole)["max_error"], pieces.max_error)
    assert whole.norm_error == pytest.approx(pieces.norm_error, nan_ok=True)


def outcome(actual, expected, tolerance, dtype="float32", **more):
    return compare(np.array(actual, dtype), np.array(expected, "float64"), tolerance, np, **more).passed


def test_a_reference_beyond_the_type_is_the_infinity_that_it_is_rounded_to():
    assert outcome([np.inf, -np.inf], [1e39, -1e60], elementwise())
    assert outcome([3.4028235e38], [3.4028236e38], elementwise())
    assert not outcome([np.inf], [1e38], elementwise())
    assert not outcome([np.nan], [1e39], elementwise())
    assert not outcome([-np.inf], [1e39], elementwise())
    assert not outcome([3.4028235e38], [np.inf], elementwise()), "infinite in the reference itself"
    assert outcome([np.inf], [70000], normwise(1e-3), "float16")
    assert outcome([np.inf, 1e30], [1e40, 1e30], normwise(1e-3))
    assert not outcome([np.inf, 1e30], [1e30, 1e30], normwise(1e-3))


def test_what_underflows_is_no_error_of_the_norm():
    assert outcome([0, 0], [1e-60, -1e-50], normwise(1e-3))
    assert not outcome([0, 0], [1e-40, 1e-40], normwise(1e-3)), "which a float can hold"


def test_an_angle_may_be_off_by_a_whole_turn():
    turn = 2 * np.pi
    circular = absolute(1e-6).loosened(period=turn)
    assert outcome([0, turn, 1], [turn, 0, 1], circular)
    assert not outcome([0, 0.1], [turn, turn], circular)
    assert not outcome([np.nan], [turn], circular)
    assert not outcome([np.inf], [0], circular)


@pytest.mark.parametrize(("apart", "passed", "differing"), [(0, True, 0), (2, True, 0), (3, False, 3)])
def test_a_share_bounds_how_many_elements_differ_at_all(apart, passed, differing):
    actual, expected = np.zeros(32, "int8"), np.zeros(32)
    actual[:apart] = 1
    found = compare(actual, expected, absolute(1, share=1 / 16), np)
    assert (passed, differing) == (found.passed, found.differing)


def test_a_share_lets_one_element_of_few_differ_within_the_limit():
    tolerance = absolute(1, share=1 / 16)
    assert [True, False] == [compare(np.array([n, 0], "int8"), np.zeros(2), tolerance, np).passed for n in (1, 2)]
