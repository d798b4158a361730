"""Functions of a spec get what they name, and nothing else."""

import pytest

from prism_bench.errors import SpecError
from prism_bench.spec import arguments

OFFERED = {"rows": 3, "cols": 5}


def test_a_function_gets_the_values_it_names():
    assert 8 == arguments.call(lambda cols, rows: rows + cols, OFFERED, "here")


def test_a_function_may_ask_for_nothing():
    assert 1 == arguments.call(lambda: 1, OFFERED, "here")


def test_an_offered_value_beats_a_default_and_a_default_beats_nothing():
    assert (3, 7) == arguments.call(lambda rows=1, depth=7: (rows, depth), OFFERED, "here")


def test_a_name_that_nobody_offers_is_named_with_those_that_are():
    with pytest.raises(SpecError, match="softmax: flops asks for 'row', which is none of: cols, rows"):
        arguments.call(lambda row: row, OFFERED, "softmax: flops")


def test_wanted_names_stand_in_order():
    assert ("torch", "x") == arguments.wanted(lambda torch, x: x)
