"""The base of every suite, without asv."""

import pytest

import suites.listing as listing_module
from prism_bench.run.pool import Progress
from suites.listing import chosen_cases, listing
from suites.measured import Measured, measure_commit, progress
from suites.times import Cold

CASE = "softmax[rows=32,cols=1000]"


def handed(**changes):
    measured = {"cold_time": {CASE: [1.0, 2.0]}}
    return {
        "protocol": listing()["protocol"],
        "samples": measured,
        "wrong": {},
        "untrusted": {},
        "evidence": {},
        **changes,
    }


def ask(cache, case=CASE):
    suite = Cold()
    suite.setup(cache, case)
    return suite.track_cold_time(cache, case)


def test_hands_over_samples():
    assert ask(handed()) == {"samples": [1.0, 2.0], "number": 1}


def test_says_nothing_about_a_case_the_commit_does_not_have():
    with pytest.raises(NotImplementedError, match=r"softmax\[rows=1\]: cold_time: not measured here"):
        ask(handed(), "softmax[rows=1]")


def test_says_nothing_where_the_metric_was_not_measured():
    with pytest.raises(NotImplementedError, match="cold_time: not measured"):
        ask(handed(samples={"wall_time": {CASE: [1.0]}}))


def test_says_nothing_where_another_protocol_measured():
    with pytest.raises(NotImplementedError, match="protocol 0"):
        ask(handed(protocol=0))


def test_says_why_a_time_is_not_trusted_and_says_nothing_else():
    with pytest.raises(NotImplementedError, match="cold_time: below the floor"):
        ask(handed(samples={}, untrusted={("cold_time", CASE): "below the floor", ("hot_time", CASE): "throttled"}))


def test_fails_with_the_reason_for_a_wrong_kernel():
    with pytest.raises(RuntimeError, match=r"y\[0\] is 2, reference 1"):
        ask(handed(samples={}, wrong={CASE: "y[0] is 2, reference 1"}))


def test_every_suite_has_the_same_cases_and_a_version_of_its_own():
    suites = Measured.__subclasses__()
    assert len({suite.version for suite in suites}) == len(suites) > 3
    assert {tuple(suite.params[0]) for suite in suites} == {tuple(listing()["cases"])}


def test_metrics_are_those_that_are_measured_in_seconds():
    from prism_bench.spec.metric import MEASURED

    assert all(
        MEASURED[suite.metric].unit == "s" and MEASURED[suite.metric].better == "lower"
        for suite in Measured.__subclasses__()
    )


def test_a_pass_sorts_samples_from_what_is_wrong_or_untrusted(tmp_path, monkeypatch):
    """Three kernels on the scripted backend: a right one, a wrong one, and one whose hot time cannot be measured."""
    from prism_bench import catalogue

    script = tmp_path / "script.json"
    script.write_text('{"dot_product*": {"wrong": true}, "gelu_activation*": {"fails": true}}')
    monkeypatch.setenv("PRISM_BENCH_NULL", str(script))
    for name, value in {"BACKEND": "null", "LABELS": "S0", "PROCESSES": "2"}.items():
        monkeypatch.setenv(f"PRISM_BENCH_ASV_{name}", value)
    found = catalogue.discover()
    few = {name: found.kernels[name] for name in ("vector_add", "dot_product", "gelu_activation")}
    monkeypatch.setattr(catalogue, "discover", lambda: catalogue.Catalogue(found.folder, few))
    pass_ = measure_commit()
    assert kernels(pass_["samples"]["cold_time"]) == {"vector_add", "gelu_activation"}
    assert kernels(pass_["samples"]["hot_time"]) == {"vector_add"}
    assert kernels(pass_["wrong"]) == {"dot_product"}
    assert {metric for metric, _ in pass_["untrusted"]} == {"hot_time"}
    assert kernels(case for _, case in pass_["untrusted"]) == {"gelu_activation"}


def kernels(cases):
    return {case.split("[")[0].split(":")[0] for case in cases}


def test_the_environment_chooses_before_the_configuration(monkeypatch):
    monkeypatch.setattr(listing_module, "configuration", lambda: {"asv": {"cases": ["softmax"]}})
    monkeypatch.delenv("PRISM_BENCH_ASV_CASES", raising=False)
    assert ["softmax"] == chosen_cases()
    monkeypatch.setenv("PRISM_BENCH_ASV_CASES", "matmul:tf32 basic")
    assert ["matmul:tf32", "basic"] == chosen_cases()


def test_a_choice_that_is_no_list_is_refused(monkeypatch):
    monkeypatch.setattr(listing_module, "configuration", lambda: {"asv": {"cases": "softmax"}})
    monkeypatch.delenv("PRISM_BENCH_ASV_CASES", raising=False)
    with pytest.raises(RuntimeError, match="asv.cases is 'softmax': a list of kernels"):
        chosen_cases()


def test_a_commit_without_the_chosen_cases_has_an_empty_pass(monkeypatch):
    monkeypatch.setenv("PRISM_BENCH_ASV_BACKEND", "null")
    monkeypatch.setattr("suites.measured.listing", lambda: {"protocol": 1, "cases": ["gone[n=1]"]})
    assert {"protocol": 1, "samples": {}, "wrong": {}, "untrusted": {}, "evidence": {}} == measure_commit()


def test_progress_is_written_for_each_stage(tmp_path, monkeypatch):
    monkeypatch.setenv("PRISM_BENCH_ASV_PROGRESS", str(tmp_path / "log"))
    report = progress()
    for stage, done in (("verifying", 0), ("verifying", 1), ("", 2)):
        report(Progress(0, done, 3, "softmax", stage))
    lines = (tmp_path / "log").read_text().splitlines()
    assert ["verifying, 0 of 3: softmax", "process 1, 2 of 3: softmax"] == [line.split(" s: ")[1] for line in lines]
