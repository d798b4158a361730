"""Parameters by card: structures as C lays them out, facts of arrays and of the launch, what is none refused."""

from types import SimpleNamespace

import numpy as np
import pytest

from prism_bench.backends.cuda.runnable import card_values, launch_facts
from prism_bench.errors import SpecError
from prism_bench.spec.launch import CardParameter, LaunchCard

STRUCTURE = (
    CardParameter("uint32", "launch.grid.0"),
    CardParameter("uint64", "launch.threads", joined=True),
    CardParameter("pointer", "x", joined=True),
    CardParameter("uint16", "x.axes", joined=True),
    CardParameter("uint64", "1", joined=True),
    CardParameter("int8"),
    CardParameter("float32", "factor"),
)


class OnDevice(np.ndarray):
    data = SimpleNamespace(ptr=4096)


ARGUMENTS = {"x": np.zeros((3, 5), np.float32).view(OnDevice), "factor": 2.5}


def values(*parameters):
    card = LaunchCard("f", "90", parameters)
    return card, card_values(card, ARGUMENTS.__getitem__, None, launch_facts((4, 2, 1), (32, 1, 1)))


def test_joined_parameters_are_one_structure_passed_by_value():
    card, (structure, nothing, factor) = values(*STRUCTURE)
    assert ((0, 40), (40, 1), (44, 4)) == card.extents
    assert [(4, 256, 4096, 2, 1)] == structure.tolist()
    assert [size for _, size in card.extents] == [structure.nbytes, nothing.nbytes, factor.nbytes]


def test_a_structure_ends_at_a_multiple_of_its_alignment():
    short = (
        CardParameter("pointer", "x"),
        CardParameter("uint16", "x.axes", joined=True),
        CardParameter("int32", "x.size"),
    )
    card, (structure, size) = values(*short)
    assert ((0, 16), (16, 4)) == card.extents
    assert (16, 15) == (structure.nbytes, size)


def test_what_is_no_fact_of_an_array_is_refused():
    with pytest.raises(SpecError, match=r"'x\.colour' is no fact of an array; there are shape"):
        values(CardParameter("int32", "x.colour"))
