"""The command that shows a finding again."""

import shlex

from prism_bench.analysis.gate.checks import GateCheck, command
from tests.report.synthetic import case_result, record_of

CASES = (case_result("softmax"), case_result("softmax", "edge", workload={"n": 1}))


def shown(check, **record):
    return command(record_of(*CASES, **record), check)


def test_a_slow_case_is_measured_at_its_commit():
    said = shown(GateCheck("softmax[n=100]", "cold_time", "missed", "bad"))
    checkout, measure = said.split(" && ")
    assert "git checkout 7471611d0c9b" == checkout
    assert "prism-bench run --backend cuda --label S0 --filter softmax[n=100]" == " ".join(shlex.split(measure))


def test_a_wrong_edge_is_verified_by_its_kernel():
    said = shown(GateCheck("softmax[n=1]", None, "wrong", "bad"), commit=None)
    assert "prism-bench verify --backend cuda --filter softmax" == said


def test_what_compares_is_compared_again():
    said = shown(GateCheck("softmax[n=100]", "cold_time", "slower", "bad", against="b" * 40))
    assert "prism-bench compare bbbbbbbbbbbb 7471611d0c9b --backend cuda --label S0 --filter 'softmax[n=100]'" == said


def test_another_catalogue_is_named():
    said = shown(GateCheck("softmax[n=100]", None, "missed", "bad"), catalogue="/my kernels")
    assert "--catalogue '/my kernels'" in said


def test_few_cases_are_named_many_by_their_kernels_and_most_not_at_all():
    def said(kernels, sizes):
        cases = [case_result(f"k{k}", workload={"n": n}) for k in range(kernels) for n in range(sizes)]
        check = GateCheck(None, "cold_time", "step", "bad", cases=tuple(case.name for case in cases))
        return command(record_of(*cases), check)

    assert said(2, 4).count("--filter") == 8 and "'k1[n=3]'" in said(2, 4)
    assert said(2, 20).endswith("--label S0 --filter k0 --filter k1")
    assert said(9, 1).endswith("--label S0")


def test_a_case_that_the_record_lacks_is_no_filter():
    assert "--filter" not in shown(GateCheck("gone[n=1]", None, "missing", "bad"))
