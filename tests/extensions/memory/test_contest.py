"""The recommended allocator, from planted records with a known answer."""

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
    compared = against_cupy(steady=steady)
    assert (verdict, default) == (compared.verdict("size_class"), compared.default)


def test_faster_allocations_without_faster_programs_keep_the_default():
    compared = against_cupy(allocation=0.5e-6)
    ours = next(row for row in compared.traces if row.allocator == "size_class")
    assert "faster" == ours.compared.verdict
    assert ("same", "cupy") == (compared.verdict("size_class"), compared.default)


def test_faster_here_and_slower_there_is_mixed():
    base = record(program("image"), program("time_series"))
    ours = record(program("image", steady=0.8e-4), program("time_series", steady=1.2e-4))
    compared = contest({"cupy": base, "size_class": ours}, {})
    assert ("mixed", "cupy") == (compared.verdict("size_class"), compared.default)


def test_inconclusive_program_makes_the_verdict_inconclusive():
    compared = contest({"cupy": side(), "size_class": side(steady=1.004e-4)}, {})
    first, *_ = compared.programs
    unknown = replace(first, compared=replace(first.compared, verdict="inconclusive"))
    compared = replace(compared, programs=(*compared.programs, unknown))
    assert ("inconclusive", "cupy") == (compared.verdict("size_class"), compared.default)


def test_fastest_allocator_becomes_the_default():
    compared = contest({"cupy": side(), "size_class": side(steady=0.9e-4), "async": side(steady=0.7e-4)}, {})
    assert "async" == compared.default


def test_without_cupys_pool_there_are_values_and_no_verdict():
    compared = contest({"size_class": side(peak_held=4096)}, {"cupy": "crashed"})
    assert ("unmeasured", "cupy", {"cupy": "crashed"}) == (
        compared.verdict("size_class"),
        compared.default,
        compared.missing,
    )
    assert 4096 == compared.traces[0].values["peak_held"]


def test_rows_are_sorted_by_trace_and_allocator():
    compared = contest({"none": side(), "cupy": side(), "size_class": side()}, {})
    assert ["cupy", "size_class", "none"] == [row.allocator for row in compared.traces]
    assert compared.traces[0].compared is None
