"""A workload is an immutable value for every axis."""

import pytest

from prism_bench import Edge, Workload, constant
from prism_bench.errors import SpecError


def test_it_reads_as_a_mapping_in_the_order_written():
    assert [("rows", 3), ("cols", 5)] == list(Workload(rows=3, cols=5).items())


def test_its_text_names_every_axis():
    assert "rows=3,cols=5" == str(Workload(rows=3, cols=5))
    assert "Workload(rows=3, cols=5)" == repr(Workload(rows=3, cols=5))


def test_equal_axes_make_equal_workloads():
    assert Workload(n=3) == Workload(n=3)
    assert hash(Workload(n=3)) == hash(Workload(n=3))
    assert Workload(n=3) != Workload(n=4)
    assert Workload(n=3) != {"n": 3}


def test_workloads_equal_in_another_order_share_a_hash():
    one, other = Workload(rows=1, cols=2), Workload(cols=2, rows=1)
    assert one == other
    assert hash(one) == hash(other)


def test_it_does_not_change():
    with pytest.raises(AttributeError, match="does not change"):
        Workload(n=3).n = 4


def test_what_was_handed_in_cannot_change_it():
    axes = {"n": 3}
    workload = Workload(**axes)
    axes["n"] = 4
    assert 3 == workload["n"]


def test_an_edge_has_fills_of_its_own_and_a_name_that_can_be_told_from_axes():
    edge = Edge("all in one", Workload(n=3), {"x": constant(1)})
    assert ("all in one", Workload(n=3), False) == (edge.name, edge.workload, edge.regime)
    for name in ("", "n=3", "one, two", "a:b", "[x]", "x@y"):
        with pytest.raises(SpecError, match="its name is words without any of"):
            Edge(name, Workload(n=3), {})
