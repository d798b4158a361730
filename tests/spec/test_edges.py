"""Edges: their names choose them, and they may have fills of their own."""

from prism_bench.catalogue import discover
from tests.catalogue.test_catalogue import SPEC, TOYS, folder, names, plant

__all__ = ["folder"]


def test_an_edges_name_is_a_filter_that_leaves_this_edge():
    found, edge = discover(TOYS), "double:by_adding[n=1]"
    assert [edge] == names(found.edges([edge]))
    assert [edge] == found.edges_by_task([edge])
    assert [edge] == names(found.edges_of(edge))
    assert [] == found.cases([edge])
    assert ["double", "double:by_adding", "triple[n=1]"] == found.edges_by_task(["double", "triple[n=1]"])


def test_an_edge_may_have_fills_of_its_own(folder):
    edge = 'edges=(Edge("all in one", Workload(n=2), {"x": constant(5)}), Workload(n=2)),\n)'
    words = "from prism_bench import Edge, constant\n"
    plant(folder, words + SPEC + edge)
    found = discover(folder)
    assert [] == list(found.problems)
    filled, usual = found.edges_of("planted")[:2]
    assert ["planted[all in one: n=2]", "planted[n=2]"] == [filled.name, usual.name]
    assert "edge" == filled.label
    assert [5, 5] == filled.inputs()["x"].block.tolist() != usual.inputs()["x"].block.tolist()
    assert [filled] == found.edges(["planted[all in one: n=2]"])
