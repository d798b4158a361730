"""Shares of a night: whole kernels, every one in one share, the same every time, as even as whole kernels allow."""

import pytest

from prism_bench.errors import UsageError
from prism_bench.run import share
from tests.built_in import CATALOGUE

CASES = CATALOGUE.cases()


def kernels(cases):
    return {case.spec.name for case in cases}


@pytest.mark.parametrize("count", [1, 2, 4, 8])
def test_every_case_is_in_one_share_and_every_kernel_whole(count):
    shares = [share(CASES, f"{number}/{count}") for number in range(1, count + 1)]
    assert sorted(case.name for case in CASES) == sorted(case.name for one in shares for case in one)
    assert len(CATALOGUE.kernels) == sum(len(kernels(one)) for one in shares)


def test_shares_differ_by_less_than_the_largest_kernel():
    sizes = [len(share(CASES, f"{number}/4")) for number in range(1, 5)]
    largest = max(sum(case.spec.name == kernel for case in CASES) for kernel in kernels(CASES))
    assert max(sizes) - min(sizes) <= largest


def test_the_kernel_with_most_cases_goes_first_then_the_names_decide():
    cases = CATALOGUE.cases(["vector_add", "dot_product", "softmax"], ["S0"])
    largest, *rest = sorted(kernels(cases), key=lambda name: (-sum(c.spec.name == name for c in cases), name))
    assert {largest} == kernels(share(cases, "1/3"))
    assert [{name} for name in rest] == [kernels(share(cases, f"{number}/3")) for number in (2, 3)]


def test_the_order_of_the_cases_neither_matters_nor_changes():
    assert share(CASES, "2/4") == share(CASES[::-1], "2/4")[::-1]


def test_the_whole_is_the_only_share_of_one():
    assert CASES == share(CASES, "1/1")


@pytest.mark.parametrize("part", ["0/4", "5/4", "1/0", "4", "1/2/3", "-1/4", "a/b", "", "1/4 ", "1.0/4"])
def test_what_is_no_part_is_refused_with_what_is(part):
    with pytest.raises(UsageError, match="I/N with I from 1 to N, such as 1/4"):
        share(CASES, part)


@pytest.mark.parametrize("part", ["3/3", "999999999/999999999"])
def test_a_part_without_a_kernel_tells_how_many_there_are(part):
    with pytest.raises(UsageError, match=f"--part {part}: no kernel is left for it; 2 chosen kernels"):
        share(CATALOGUE.cases(["softmax", "vector_add"]), part)
