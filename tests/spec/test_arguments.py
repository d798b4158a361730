"""Arguments: buffers with shapes in axes, scalars that must fit their type."""

import numpy as np
import pytest

from prism_bench import In, InOut, Out, Scalar, Scratch, Size
from prism_bench.errors import SpecError


def test_a_shape_names_axes_and_numbers():
    assert (3, 5, 2) == In("x", "rows cols 2").extents({"rows": 3, "cols": 5})


def test_a_shape_that_names_no_axis_says_which():
    with pytest.raises(SpecError, match="x: shape 'rows colls' names 'colls', which is no axis"):
        In("x", "rows colls").extents({"rows": 3, "cols": 5})


@pytest.mark.parametrize(
    ("kind", "reads", "writes", "scratch"),
    [(In, True, False, False), (Out, False, True, False), (InOut, True, True, False), (Scratch, False, False, True)],
)
def test_each_kind_of_buffer_says_what_happens_to_it(kind, reads, writes, scratch):
    array = kind("x", "n")
    assert (reads, writes, scratch) == (array.reads, array.writes, array.scratch)


def test_a_size_is_a_32_bit_integer_unless_told_otherwise():
    assert np.int32 is type(Size("n").value({"n": 5}))
    assert np.int64 is type(Size("n", "int64").value({"n": 1 << 40}))


@pytest.mark.parametrize(
    ("scalar", "value"),
    [(Size("n"), 1 << 31), (Size("n"), -(1 << 31) - 1), (Scalar("n", "uint8"), -1), (Size("n"), float("nan"))],
)
def test_an_integer_out_of_range_is_refused(scalar, value):
    with pytest.raises(SpecError, match="does not fit"):
        scalar.value({"n": value})


def test_a_fraction_is_no_integer():
    with pytest.raises(SpecError, match="n=2.5 does not fit int32"):
        Size("n").value({"n": 2.5})


def test_a_float_beyond_the_range_of_its_type_is_refused():
    with pytest.raises(SpecError, match=r"alpha=1e\+60 does not fit float32"):
        Scalar("alpha").value({"alpha": 1e60})


def test_an_infinite_float_is_passed_as_it_is():
    assert float("inf") == Scalar("alpha").value({"alpha": float("inf")})


def test_a_scalar_that_is_no_axis_says_so():
    with pytest.raises(SpecError, match="scalar 'alpha' is neither axis nor parameter"):
        Scalar("alpha").value({"n": 5})
