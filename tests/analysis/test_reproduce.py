"""The command that shows a finding again."""

import shlex

from prism_bench.analysis.checks import Check
from prism_bench.analysis.reproduce import command
from tests.report.synthetic import case_result, record_of

CASES = (case_result("softmax"), case_result("softmax", "edge", workload={"n": 1}))


def shown(check, **record):
    return command(record_of(*CASES, **record), check)


def test_a_slow_case_is_measured_at_its_commit():
    said = shown(Check("softmax[n=100]", "cold_time", "missed", "bad"))
    checkout, measure = said.split(" && ")
    assert "git checkout 7471611d0c9b" == checkout
    assert "prism-bench run --backend cuda --label S0 --filter softmax[n=100]" == " ".join(shlex.split(measure))


def test_a_wrong_edge_is_verified_by_its_kernel():
    said = shown(Check("softmax[n=1]", None, "wrong", "bad"), commit=None)
    assert "prism-bench verify --backend cuda --filter softmax" == said


def test_what_compares_is_compared_again():
    said = shown(Check("softmax[n=100]", "cold_time", "slower", "bad", against="b" * 40))
    assert "prism-bench compare bbbbbbbbbbbb 7471611d0c9b --backend cuda --label S0 --filter 'softmax[n=100]'" == said


def test_another_catalogue_is_named():
    said = shown(Check("softmax[n=100]", None, "missed", "bad"), catalogue="/my kernels")
    assert "--catalogue '/my kernels'" in said


def test_few_cases_are_named_and_many_are_not():
    few = Check(None, "cold_time", "step", "bad", cases=("softmax[n=100]",))
    many = Check(None, "cold_time", "step", "bad", cases=("softmax[n=100]",) * 40)
    assert "--filter" in shown(few) and "--filter" not in shown(many)


def test_a_case_that_the_record_lacks_is_no_filter():
    assert "--filter" not in shown(Check("gone[n=1]", None, "missing", "bad"))
