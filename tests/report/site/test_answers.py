"""Every page begins with its answer, and no page contradicts another one or the command line."""

import json
from collections import Counter
from dataclasses import replace

import pytest

from prism_bench.analysis.bounds.bottleneck import unmeasured_peaks
from prism_bench.analysis.compare.comparison import compare
from prism_bench.analysis.gate.budgets import BudgetVerdict
from prism_bench.measure.plausibility import Limits
from prism_bench.report.site.answers import (
    budgets_answer,
    catalogue_answer,
    compare_answer,
    machine_answer,
    operation_answer,
    roofline_answer,
    trend_answer,
    tuning_answer,
)
from prism_bench.report.site.page import MENU
from prism_bench.report.site.pages.trend import _aside
from prism_bench.spec.metric import Budget
from tests.analysis.measured_pairs import records
from tests.report.site.browser import opened
from tests.report.site.pages import nights, read, site_of
from tests.report.synthetic import MACHINE, case_result, gpu_record, measurement, record_of

UNANSWERED = ("index", "method")  # its answer is its heading; words alone
FIRST = """() => { const one = document.querySelector("header.top h1").nextElementSibling;
    return one && one.matches("p.answer") ? one.innerText : null; }"""


def answer(site, name):
    """The answer as the page's JSON has it."""
    return json.loads((site / f"{name}.json").read_text())["answer"]


def test_the_answer_is_the_first_thing_under_the_heading(page, site):
    answers = {}
    for name in (*(one for one in MENU if one not in UNANSWERED), "kernels/softmax"):
        opened(page, site, name)
        answers[name] = page.evaluate(FIRST)
    silent = {name for name, words in answers.items() if not words}
    assert {"budgets", "tuning", "fusion", "memory"} >= silent, "the made-up records have none of these"
    sentences = list(filter(None, answers.values()))
    assert all(words[0] == words[0].upper() and words.endswith(".") for words in sentences), answers


def test_answers_are_those_of_the_tables(site):
    kernels = json.loads((site / "catalogue.json").read_text())["kernels"]
    timed = sum(row["state"] in ("measured", "older", "round") for row in kernels)
    assert answer(site, "catalogue").startswith(f"{timed} of {len(kernels)} implementations have a time, ")
    assert "2 steps" in answer(site, "trend") or "1 step for the worse" in answer(site, "trend")
    assert "slower" in answer(site, "compare") and "2026-10-13 00000000" in answer(site, "compare")
    assert "of the memory limit" in answer(site, "kernels/softmax")


def test_a_missed_budget_is_named_and_how_far():
    budget = Budget("cold_time", at_most=1e-5)
    far, near, met = (
        BudgetVerdict(name, budget, value, verdict)
        for name, value, verdict in (("far", 2e-5, "missed"), ("near", 1.1e-5, "missed"), ("met", 5e-6, "met"))
    )
    assert "2 of 3 budgets are missed, the furthest by far, +100.0 % against the promised value." == budgets_answer(
        [near, met, far]
    )
    assert "No budget is missed: 1 met." == budgets_answer([met])
    long = BudgetVerdict("conv:half[rows=1,cols=2]", budget, 3e-5, "missed")
    answered = budgets_answer([near, long], {long.case: "S2"})
    assert "2 of 2 budgets are missed, the furthest by conv:half S2, +200.0 % against the promised value." == answered


def test_what_compare_cannot_trust_has_no_counts():
    a, b = records([*[1.05] * 9, *[1.0] * 291], sass=("aa", "aa"))
    words = compare_answer(("yesterday", compare(a, b)), 300)
    assert words.startswith("The comparison of the newest run with yesterday cannot be trusted: ")
    assert "faster" not in words and "slower" not in words


def test_the_newest_run_against_the_run_before():
    a, b = records([1.5, 0.7, 1.0])
    assert "The newest run against yesterday: 1 slower, 1 faster, 1 the same; 2 cases are not in it." == compare_answer(
        ("yesterday", compare(a, b)), 5
    )
    a, b = records([0.7, 1.0])
    words = "The newest run against yesterday: none slower than in that run, 1 faster, 1 the same."
    assert words == compare_answer(("yesterday", compare(a, b)), 2)
    assert "There is no earlier run" in compare_answer(None, 5)
    assert "does not compare with yesterday: another device" in compare_answer(("yesterday", "another device"), 5)


def test_pages_without_anything_have_no_answer():
    assert [""] * 6 == [
        catalogue_answer([]), budgets_answer([]), roofline_answer([]), tuning_answer([], None),
        machine_answer(Limits()), operation_answer(None, []),
    ]  # fmt: skip
    assert "No step can be found in 1 record: it takes 11." == trend_answer([], 1, 11)


def test_one_and_many():
    assert "Half of the 1 case " in roofline_answer([0.9]) and "none is far from it" in roofline_answer([0.9])
    assert "2 reach less than 50 %." in roofline_answer([0.1, 0.2, 0.9])
    chosen = [{"adopted": True}, {"adopted": False}]
    assert "1 of 2 tuned cases leaves its default launch, 1.25x faster." == tuning_answer(chosen, 1.25)


def two_runs(tmp_path, *factors):
    """The site of two runs a day apart: a case for each factor by which it takes longer in the second one."""
    sides = []
    for side in (0, 1):
        times = [2e-5 * (factor if side else 1.0) for factor in factors]
        cases = [
            case_result(f"k{n}", code={"sass": f"{'ab'[side]}{n}", "launches": 1},
                        measurements=(measurement("cold_time", one, noise=0.004, seed=n),))
            for n, one in enumerate(times)
        ]  # fmt: skip
        sides.append(record_of(*cases))
    return site_of(tmp_path, *(replace(one, created=f"2026-11-2{n}T00:00:00") for n, one in enumerate(sides)))


def test_better_is_all_that_became_faster_the_largest_change_first(tmp_path, monkeypatch):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    view = json.loads((two_runs(tmp_path, 0.8, 0.4, 1.0, 0.6) / "index.json").read_text())
    assert ["k1[n=100]", "k3[n=100]", "k0[n=100]"] == [one["cases"][0]["case"] for one in view["better"]]
    assert "Better: 3 cases faster than when last measured, none slower." == view["headline"]
    assert all("in this record" in one["message"] and one["gravity"] == "good" for one in view["better"])


def test_the_overview_counts_what_compare_counts(tmp_path, monkeypatch):
    """Every launch of another host takes 20 us longer: no case of the same code is worse for that."""
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    seconds = [0.5 * 1.3**n for n in range(12)]
    first, second = (
        record_of(*(case_result(f"k{n}", code={"sass": f"a{n}", "launches": 1}, measurements=(
            measurement("cold_time", 1e-5 * one + side * 2e-5, noise=0.002, seed=n + 50 * side),))
            for n, one in enumerate(seconds)))
        for side in (0, 1)
    )  # fmt: skip
    site = site_of(tmp_path / "host", replace(first, created="2026-11-20T00:00:00"), second)
    view = json.loads((site / "index.json").read_text())
    words = Counter(one["verdict"] for one in json.loads((site / "compare.json").read_text())["against"][0]["cases"])
    assert 0 == words["slower"] and "slower" not in view["headline"] and "attention" not in view


def test_a_run_that_was_set_aside_is_drawn_as_one(page, tmp_path, monkeypatch):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    cold, peer = measurement("cold_time", 1e-5), measurement("cold_time", 9e-6, "peer:lib")
    refused = replace(cold, valid=False, reason="throttled throughout")
    runs = nights(record_of(case_result("k", measurements=(cold, peer))), 4)
    last = replace(runs[-1], cases=(replace(runs[-1].cases[0], measurements=(refused, peer)),))
    opened(page, site_of(tmp_path, *runs[:-1], last), "kernels/k")
    figure = page.locator("figure[data-plot=trend]")
    assert 1 == figure.locator("circle.aside").count()
    right = figure.locator("circle.aside").bounding_box()["x"]
    assert 3 == figure.locator("path.runs").last.get_attribute("d").count("h0"), "the kernel's own runs"
    assert right > max(box["x"] for box in [figure.locator("path.level").last.bounding_box()])
    figure.locator("svg").focus()
    page.keyboard.press("End")
    assert "is set aside: throttled throughout" in figure.locator(".tip").inner_text()


def test_a_level_ends_where_another_gpu_measured(page, tmp_path, monkeypatch):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    runs = nights(record_of(case_result("k", times={"cold_time": 1e-5})), 4)
    units = ("GPU-a", "GPU-a", "GPU-b", "GPU-b")
    runs = [replace(one, machine={**MACHINE, "uuid": unit}) for one, unit in zip(runs, units, strict=True)]
    opened(page, site_of(tmp_path, *runs), "kernels/k")
    assert 2 == page.locator("figure[data-plot=trend] path.level").count()


def test_peaks_that_nobody_measured_are_dashed_and_named(page, tmp_path, monkeypatch):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    machine = {**MACHINE, "compute_capability": 90, "sm_count": 132, "highest_sm_clock": 1_980_000_000}
    site = site_of(tmp_path, gpu_record(machine=machine))
    opened(page, site, "roofline")
    dashed = page.locator("figure[data-plot=roofs] path.peak")
    peaks = json.loads((site / "roofline.json").read_text())["peaks"]
    assert 1 <= len(peaks) == dashed.count()
    assert all(dashed.evaluate_all("all => all.map((one) => one.getAttribute('stroke-dasharray'))"))
    assert "computed and not measured (" in read(site, "roofline").text


def test_peaks_are_those_of_the_data_sheets():
    """At the data sheets' clocks: H100 SXM 989 TFLOP/s at 1.83 GHz, 34 at 1.98 GHz; A100 312 and 9.7 at 1.41 GHz."""
    both = ("fp64", "tensor", "fp32")
    h100 = unmeasured_peaks({"compute_capability": 90, "sm_count": 132, "highest_sm_clock": 1.83e9}, Limits(), both)
    assert (989e12, 34e12) == (
        pytest.approx(h100["FP16 tensor"], rel=0.01),
        pytest.approx(h100["FP64"] * 1.98 / 1.83, rel=0.02),
    )
    a100 = unmeasured_peaks({"compute_capability": 80, "sm_count": 108, "highest_sm_clock": 1.41e9}, Limits(), both)
    assert (312e12, 9.7e12) == (pytest.approx(a100["FP16 tensor"], rel=0.01), pytest.approx(a100["FP64"], rel=0.01))
    measured = Limits(ceilings={"tensor": 8e14})
    known = {"compute_capability": 90, "sm_count": 132, "highest_sm_clock": 1.83e9}
    assert ["FP64"] == list(unmeasured_peaks(known, measured, both)), "what was measured needs no computed line"
    assert {} == unmeasured_peaks({"compute_capability": 75}, Limits(), both)


def test_reasons_that_differ_in_numbers_are_one():
    found = _aside({"hot_time 21.9 ns is below the overhead of 542 ns": 2, "another clock": 5,
                    "hot_time 4.19 ns is below the overhead of 522 ns": 4})  # fmt: skip
    assert {"hot_time 4.19 ns is below the overhead of 522 ns": 6, "another clock": 5} == found
