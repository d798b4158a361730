"""Which allocator a program should use: planted records, where the answer is known."""

from dataclasses import replace

import pytest

from prism_bench.extensions.memory.replay import contest
from tests.extensions.planted_programs import program, record, trace


def side(allocation=1e-6, steady=1e-4, **values):
    return record(trace(allocation=allocation, **values), program(steady=steady, latency=2 * steady))


def against_cupy(**ours):
    return contest({"cupy": side(), "size_class": side(**ours)}, {})


@pytest.mark.parametrize(
    ("steady", "verdict", "default"),
    [(1e-4, "same", "cupy"), (1.2e-4, "slower", "cupy"), (0.8e-4, "faster", "size_class")],
)
def test_a_program_decides(steady, verdict, default):
    found = against_cupy(steady=steady)
    assert (verdict, default) == (found.verdict("size_class"), found.default)


def test_quicker_allocations_that_no_program_notices_change_nothing():
    found = against_cupy(allocation=0.5e-6)
    ours = next(row for row in found.traces if row.allocator == "size_class")
    assert "faster" == ours.compared.verdict
    assert ("same", "cupy") == (found.verdict("size_class"), found.default)


def test_faster_here_and_slower_there_is_mixed():
    base = record(program("image"), program("time_series"))
    ours = record(program("image", steady=0.8e-4), program("time_series", steady=1.2e-4))
    found = contest({"cupy": base, "size_class": ours}, {})
    assert ("mixed", "cupy") == (found.verdict("size_class"), found.default)


def test_what_cannot_be_told_is_not_the_same():
    one = contest({"cupy": side(), "size_class": side(steady=1.004e-4)}, {})
    unknown = replace(one.programs[0].compared, verdict="inconclusive")
    found = replace(one, programs=(*one.programs, replace(one.programs[0], compared=unknown)))
    assert ("inconclusive", "cupy") == (found.verdict("size_class"), found.default)


def test_of_two_that_are_faster_the_faster_one():
    found = contest({"cupy": side(), "size_class": side(steady=0.9e-4), "async": side(steady=0.7e-4)}, {})
    assert "async" == found.default


def test_without_cupys_pool_there_are_values_and_no_verdict():
    found = contest({"size_class": side(peak_held=4096)}, {"cupy": "crashed"})
    assert ("unmeasured", "cupy", {"cupy": "crashed"}) == (found.verdict("size_class"), found.default, found.missing)
    assert 4096 == found.traces[0].values["peak_held"]


def test_rows_stand_by_trace_and_then_as_allocators_are_listed():
    found = contest({"none": side(), "cupy": side(), "size_class": side()}, {})
    assert ["cupy", "size_class", "none"] == [row.allocator for row in found.traces]
    assert found.traces[0].compared is None
