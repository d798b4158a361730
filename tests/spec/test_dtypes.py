"""Types of elements: rounding to each precision and back, against definitions that share nothing with the tables."""

import numpy as np
import pytest

from prism_bench.errors import SpecError
from prism_bench.spec.arguments import In, Out, Scalar, Struct
from prism_bench.spec.dtypes import (
    DTYPES,
    PRECISIONS,
    precision_of,
    storage_of,
    stored,
    unpacked,
    values_of,
    values_shape,
    widened,
)
from prism_bench.spec.inputs import draw, input_of, integers, normal
from prism_bench.spec.tolerance import compare, elementwise, exact

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
    assert [64, 32, 32, 32, 16, 16, 8, 8, 8] == [precision.bits for precision in PRECISIONS.values()]


@pytest.mark.parametrize(("name", "fraction"), [("float8_e4m3fn", 3), ("float8_e5m2", 2), ("bfloat16", 7)])
def test_a_narrow_type_rounds_to_the_nearest_number(name, fraction):
    precision = PRECISIONS[name]
    values = VALUES.astype("float32").astype("float64")
    expected = nearest(values, fraction, 2.0**precision.smallest)
    if not precision.has_infinity:
        expected = np.clip(expected, -precision.largest, precision.largest)
    assert np.array_equal(expected, values_of(stored(values, name), name))


def test_e5m2_overflows_to_infinity_and_has_its_patterns():
    assert [57344, np.inf, -np.inf, 2**-16, 0] == values_of(
        stored(np.array([61439, 61440, -np.inf, 2**-16, 2**-17]), "float8_e5m2"), "float8_e5m2"
    ).tolist()
    patterns = np.delete(np.arange(256, dtype="uint8"), [125, 126, 127, 253, 254, 255])
    assert patterns.tolist() == stored(values_of(patterns, "float8_e5m2"), "float8_e5m2").tolist()


@pytest.mark.parametrize("name", ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_the_ends_of_each_format_are_numbers_of_it(name):
    precision = precision_of(name)
    ends = np.array([precision.largest, 2.0**precision.smallest, -precision.largest])
    assert ends.tolist() == values_of(stored(ends, name), name).tolist()
    assert 0 == values_of(stored(np.array([2.0**precision.smallest * 0.49]), name), name)[0]


def test_an_unknown_type_is_refused_with_the_known_ones():
    with pytest.raises(SpecError, match="'x': unknown dtype 'bfloat'; did you mean bfloat16.*float8_e5m2, int4x2"):
        In("x", "n", "bfloat")
    with pytest.raises(SpecError, match="argument 'y': unknown dtype 'datetime64'"):
        Out("y", "n", "datetime64")


@pytest.mark.parametrize(
    ("written", "right"),
    [("size_t", "uint64"), ("half", "float16"), ("__nv_bfloat16", "bfloat16"), ("float8_e4m3", "float8_e4m3fn"),
     ("unsigned char", "uint8"), ("uint32_t", "uint32"), ("char", "int8")],
)  # fmt: skip
def test_a_type_of_cpp_is_refused_with_its_name_here(written, right):
    with pytest.raises(SpecError, match=f"argument 'n': dtype '{written}': write '{right}'"):
        Scalar("n", written)


def test_every_type_has_its_bytes():
    assert {"bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1, "int4x2": 1, "uint4x2": 1} == {
        name: storage_of(name).itemsize for name in DTYPES[-5:]
    }
    assert np.dtype("float32") == In("x", "n").storage


def test_drawn_inputs_are_bits_of_the_drawn_values():
    rng, again = np.random.default_rng(3), np.random.default_rng(3)
    drawn = draw(normal(), (100,), "bfloat16", rng, {})
    values = normal().draw(again, 100, {})
    assert np.dtype("uint16") == drawn.dtype
    assert np.allclose(values, values_of(drawn.on(np), "bfloat16"), rtol=2**-8, atol=0)


def test_pairs_are_drawn_two_by_two():
    drawn = draw(integers(-8, 8), (30, 5), "int4x2", np.random.default_rng(0), {})
    values = unpacked(drawn.on(np).reshape(30, 5))
    assert ((30, 5), (30, 10)) == (drawn.shape, values.shape)
    assert list(range(-8, 8)) == sorted(set(values.reshape(-1).tolist()))
    assert (30, 10) == values_shape((30, 5), "int4x2")
    with pytest.raises(SpecError, match=r"fill=integers\(-8, 8\) draws such"):
        draw(normal(), (4,), "int4x2", np.random.default_rng(0), {})


def test_known_inputs_are_rounded_to_the_type():
    assert [0x3F80, 0xC000] == input_of([1.001, -2], "bfloat16").on(np).tolist()
    assert [0xFE, 0x87] == input_of([-2, -1, 7, -8], "int4x2").on(np).tolist()


@pytest.mark.parametrize(("name", "ulp"), [("bfloat16", 2**-7), ("float8_e4m3fn", 2**-3), ("float8_e5m2", 2**-2)])
def test_an_ulp_is_the_types(name, ulp):
    expected = np.full(4, 1.25)
    for off, passes in ((0, True), (1, True), (2, False)):
        actual = stored(np.array([1.25, 1.25 + off * ulp, 1.25, 1.25]), name)
        result = compare(actual, expected, elementwise(1), np, dtype=name)
        assert passes == result.passed
        assert (off * ulp, 4) == (result.max_error, result.compared)


def test_the_exact_number_of_a_narrow_type_is_the_rounded_reference():
    expected = np.array([1.03, -0.07, 300.0, 500.0, np.inf, np.nan])
    bits = stored(expected, "float8_e4m3fn")
    assert compare(bits, expected, exact(), np, dtype="float8_e4m3fn").passed
    bits[1] ^= 1
    assert (1,) == compare(bits, expected, exact(), np, dtype="float8_e4m3fn").place


@pytest.mark.parametrize("saturated", [True, False])
def test_what_overflows_in_e5m2_may_saturate_or_be_infinite(saturated):
    expected = np.array([1.0, 1e6, -np.inf])
    actual = stored(np.clip(expected, -57344, 57344) if saturated else expected, "float8_e5m2")
    assert compare(actual, expected, elementwise(1), np, dtype="float8_e5m2").passed
    assert not compare(actual, -expected, elementwise(1), np, dtype="float8_e5m2").passed


# Structures.

FIELDS = [("scale", "float32"), ("count", "int64"), ("halves", "bfloat16", 2)]


def test_a_structure_is_laid_out_as_cpp_does():
    record = Struct("p", FIELDS).value({"scale": 0.5, "count": 7, "halves": (1, -2)})
    assert (24, [0, 8, 16]) == (record.nbytes, [field[1] for field in record.dtype.fields.values()])
    assert 16 == Struct("p", FIELDS, packed=True).value({"p": (0.5, 7, (1, -2))}).nbytes
    assert bytes(1) == Struct("functor").value({}).tobytes()


def test_a_structure_is_seen_as_it_is_passed():
    struct = Struct("p", [*FIELDS, ("inner", [("x", "float64")])])
    seen = struct.seen({"p": {"scale": 0.1, "count": 7, "halves": (1.001, 3), "inner": (2,)}})
    expected = {"scale": float(np.float32(0.1)), "count": 7, "halves": [1.0, 3.0], "inner": {"x": 2.0}}
    assert expected == seen


def test_a_structure_may_be_numpys_type():
    kind = np.dtype({"names": ["a", "b"], "formats": ["u1", "f4"], "offsets": [0, 12], "itemsize": 16})
    struct = Struct("p", kind)
    assert ({"a": 3, "b": 0.5}, 16) == (struct.seen({"a": 3, "b": 0.5}), struct.value({"p": (3, 0.5)}).nbytes)


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"scale": 1.0}, "structure 'p' has the fields scale, count, halves.*there is scale"),
        ({"p": (1, 2)}, r"structure 'p' has the fields .*there is \(1, 2\)"),
        ({"p": (1, 2**70, (1, 2))}, "p.count=1180591620717411303424 does not fit int64"),
        ({"p": (1, 2, (1, 2, 3))}, r"p.halves has the shape \(3,\), not \(2,\)"),
    ],
)
def test_a_structure_without_its_fields_is_refused(axes, message):
    with pytest.raises(SpecError, match=message):
        Struct("p", FIELDS).value(axes)


@pytest.mark.parametrize("fields", [[("a", "flt")], ["a"], [("a", "float32"), ("a", "int32")], [("a", "O")]])
def test_fields_that_are_none_are_refused(fields):
    with pytest.raises(SpecError, match=r"structure 'p': .*\[\('scale', 'float32'\)\]"):
        Struct("p", fields)
