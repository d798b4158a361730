"""The base of every suite, without asv."""

import pytest

from suites.listing import listing
from suites.measured import Measured, measure_commit
from suites.times import Cold

CASE = "softmax[rows=32,cols=1000]"


def handed(**changes):
    return {"protocol": listing()["protocol"], "samples": {"cold_time": {CASE: [1.0, 2.0]}}, "faults": {}, **changes}


def ask(cache, case=CASE):
    suite = Cold()
    suite.setup(cache, case)
    return suite.track_cold_time(cache, case)


def test_hands_over_samples():
    assert ask(handed()) == {"samples": [1.0, 2.0], "number": 1}


def test_says_nothing_about_a_case_the_commit_does_not_have():
    with pytest.raises(NotImplementedError, match=r"softmax\[rows=1\] has no cold_time here"):
        ask(handed(), "softmax[rows=1]")


def test_says_nothing_where_the_metric_was_not_measured():
    with pytest.raises(NotImplementedError, match="has no cold_time"):
        ask(handed(samples={"wall_time": {CASE: [1.0]}}))


def test_says_nothing_where_another_protocol_measured():
    with pytest.raises(NotImplementedError, match="protocol 0"):
        ask(handed(protocol=0))


@pytest.mark.parametrize("metric", [None, "cold_time"])
def test_fails_with_the_reason_for_a_wrong_kernel_or_an_untrusted_time(metric):
    with pytest.raises(RuntimeError, match="y\\[0\\] is 2, reference 1"):
        ask(handed(faults={(CASE, metric): "y[0] is 2, reference 1"}))


def test_a_fault_of_another_metric_is_none_of_ours():
    assert ask(handed(faults={(CASE, "hot_time"): "below the floor"}))["number"] == 1


def test_every_suite_has_the_same_cases_and_a_version_of_its_own():
    suites = Measured.__subclasses__()
    assert len({suite.version for suite in suites}) == len(suites) > 3
    assert {tuple(suite.params[0]) for suite in suites} == {tuple(listing()["cases"])}


def test_metrics_are_those_that_are_measured_in_seconds():
    from prism_bench.metric import MEASURED

    assert all(
        MEASURED[suite.metric].unit == "s" and MEASURED[suite.metric].better == "lower"
        for suite in Measured.__subclasses__()
    )


def test_a_pass_sorts_samples_and_faults(tmp_path, monkeypatch):
    """A catalogue of one right and one wrong kernel, measured by the scripted backend."""
    from prism_bench import catalogue

    script = tmp_path / "script.json"
    script.write_text('{"dot_product*": {"wrong": true}}')
    monkeypatch.setenv("PRISM_BENCH_NULL", str(script))
    for name, value in {"BACKEND": "null", "LABELS": "S0", "PROCESSES": "2"}.items():
        monkeypatch.setenv(f"PRISM_BENCH_ASV_{name}", value)
    found = catalogue.discover()
    few = {name: found.kernels[name] for name in ("vector_add", "dot_product")}
    monkeypatch.setattr(catalogue, "discover", lambda: catalogue.Catalogue(found.folder, few))
    handed = measure_commit()
    assert {case.split("[")[0].split(":")[0] for case in handed["samples"]["cold_time"]} == {"vector_add"}
    assert {case.split("[")[0].split(":")[0] for case, _ in handed["faults"]} == {"dot_product"}
    assert all(metric is None for _, metric in handed["faults"])
