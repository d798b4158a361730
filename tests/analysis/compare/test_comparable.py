"""What a pair of records has to say of the units that they were measured on."""

from dataclasses import replace

import pytest

from prism_bench.analysis.compare.comparable import require_comparable
from prism_bench.analysis.compare.comparison import compare
from tests.report.synthetic import MACHINE, case_result, record_of

SHARED = {key: value for key, value in MACHINE.items() if key != "uuid"}


def alone(uuid):
    cases = [case_result(kernel, times={"cold_time": 1e-5}) for kernel in ("a", "b", "null")]
    return record_of(*cases, machine=SHARED | ({"uuid": uuid} if uuid else {}))


def merged(**kernels):
    parts = tuple({"uuid": uuid, "kernels": names} for uuid, names in kernels.items())
    return record_of(*alone(None).cases, machine=SHARED, parts=parts)


SOME = "1 of 2 kernels was measured on different units of one device"
ALL = "2 of 2 kernels were measured on different units of one device"


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (alone("x"), alone("x"), []),
        (alone("x"), alone("y"), ["the records come from two units of one device"]),
        (alone("x"), alone(None), []),
        (merged(x=["a"], y=["b"]), merged(x=["a"], y=["b"]), []),
        (merged(x=["a"], y=["b"]), merged(x=["b"], y=["a"]), [ALL]),
        (merged(x=["a"], y=["b"]), merged(x=["a", "b"], z=[]), [SOME]),
        (merged(x=["a"], y=["b"]), alone("x"), [SOME]),
        (alone("y"), merged(x=["a"], y=["b"]), [SOME]),
        (merged(x=["a"], y=["b"]), alone(None), []),
    ],
)
def test_units_are_told_kernel_by_kernel(a, b, expected):
    assert expected == require_comparable(a, b, ("a", "b"))


HOSTS = [({"host": "a"}, {"host": "a"}, True), ({"host": "a"}, {"host": "b"}, False), ({}, {"host": "a"}, False),
         ({}, {}, True)]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "expected"), HOSTS)
@pytest.mark.parametrize("metric", ["end_to_end_time", "launch_time", "first_call_time", "cold_time"])
def test_times_of_the_hosts_clock_compare_only_within_one_host(before, after, expected, metric):
    """Two boards of one kind may be in two hosts; without a host, the board itself shows that it is the same one."""
    sides = [record_of(case_result("k", times={metric: 1e-3}), boards=({"uuid": MACHINE["uuid"], **facts},))
             for facts in (before, after)]  # fmt: skip
    (found,) = compare(*sides, metric=metric).cases
    reason = f"the host's clock read the {metric.replace('_', ' ')}, and A and B are not known to be of one host"
    compared = expected or metric == "cold_time"
    assert (("same", None) if compared else ("not compared", reason)) == (
        found.verdict if found.verdict == "not compared" else "same", None if compared else found.reason)  # fmt: skip


CRITERIA = {"cold_time": {"max_samples": 60, "precision": 0.004}, "hot_time": {"max_samples": 24}}
MOST = {name: {"max_samples": 12, "min_samples": 3, "precision": 0.1} for name in CRITERIA}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"protocol": {"criteria": {**CRITERIA, "cold_time": {"max_samples": 12, "precision": 0.004}}}},
         "criteria cold_time max_samples 60 -> 12"),
        ({"protocol": {"processes": 5, "seed": 1}}, "processes 3 -> 5, seed 0 -> 1"),
        ({"protocol": {"criteria": MOST}},
         "criteria cold_time max_samples 60 -> 12, criteria cold_time precision 0.004 -> 0.1, "
         "criteria hot_time max_samples 24 -> 12, criteria cold_time min_samples unknown -> 3, 2 more"),
        ({"tuning": {"asked": "tuned"}}, "launches untuned -> tuned"),
        ({"boards": ({"uuid": MACHINE["uuid"], "power_limit": 500.0, "application_sm_clock": 1.2e9},)},
         "power_limit 700 -> 500, application_sm_clock 1.98e+09 -> 1.2e+09"),
    ],
)  # fmt: skip
def test_settings_that_do_not_keep_records_from_being_compared_are_named(changes, words):
    """Another `max_samples`, number of processes, power limit or tuning than the baseline's was passed over."""
    protocol = {"version": 1, "processes": 3, "seed": 0, "criteria": CRITERIA}
    board = {"uuid": MACHINE["uuid"], "power_limit": 700.0, "application_sm_clock": 1.98e9}
    a = record_of(case_result("k", times={"cold_time": 1e-5}), protocol=protocol, boards=(board,))
    b = replace(a, **{**changes, "protocol": {**protocol, **changes.get("protocol", {})}})
    assert [f"settings differ: {words}"] == require_comparable(a, b, ("a", "b"))
    assert [] == require_comparable(a, a, ("a", "b"))
    assert [] == require_comparable(a, replace(b, tuning={}, protocol={"version": 1}, boards=()), ("a", "b"))
