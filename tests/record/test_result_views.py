"""Results at a prompt and in a notebook: one line, a small view, a plot."""

import re
from dataclasses import replace

import pytest

from prism_bench import display
from prism_bench.api.callables import Benchmark
from prism_bench.errors import UsageError
from prism_bench.record.measurement import Measurement
from prism_bench.record.run_record import CaseResult, RunRecord


def case(name="softmax", cold=5e-6, label="S0", **more):
    times = (Measurement("cold_time", "kernel", ((cold, cold), (cold * 1.1,))),
             Measurement("cold_time", "peer:torch", ((2 * cold,),)),
             Measurement("hot_time", "kernel", (), reason="a graph cannot hold it"))  # fmt: skip
    fields = {"kernel": name, "family": "tensor", "label": label, "workload": {"n": 8}, "bytes": 8, "flops": None}
    return CaseResult(f"{name}[n=8]", **fields, **{"status": "ok", "measurements": times, **more})


def record(*cases):
    machine = {"name": "NVIDIA H200"}
    return RunRecord("2026-11-22T23:05:46", "cuda", machine, {}, {}, cases, commit="2034ef74aa")


def test_a_measurement_is_one_line():
    text = repr(case().measurements[0])
    assert "<Measurement kernel cold_time: 5.25 us (n=3, processes within 4.8 %)>" == text
    assert repr(Benchmark("cold_time", "sum", ((1e-3,),), bytes=10**9)).startswith("<Benchmark sum cold_time: 1.00 ms")


def test_a_case_and_a_record_are_one_line_whatever_they_hold():
    assert "<CaseResult softmax[n=8] ok, 5.25 us>" == repr(case())
    assert "<CaseResult softmax[n=8] wrong>" == repr(case(status="wrong", measurements=()))
    many = record(*(case(f"kernel{number}") for number in range(500)))
    assert "<RunRecord 500 cases, NVIDIA H200, cuda, 2026-11-22T23:05:46, commit 2034ef74>" == repr(many)


def test_a_view_of_samples_has_a_dot_for_each_and_a_line_for_each_process():
    html = case().measurements[0]._repr_html_()
    assert 3 == html.count("<circle")
    assert "process 1" in html and "process 2" in html and "process 3" not in html


def test_a_view_of_a_case_shows_its_peers_and_why_a_cell_is_empty():
    html = case()._repr_html_()
    assert 2 == html.count("<rect") and "torch" in html
    assert "a graph cannot hold it" in html


def test_bars_are_as_long_as_the_times():
    widths = [float(width) for width in re.findall(r'<rect [^>]*width="([0-9.]+)"', case()._repr_html_())]
    assert pytest.approx(5.25 / 10, rel=1e-2) == widths[0] / widths[1]


def test_a_view_of_a_record_names_what_failed_and_stays_small():
    cases = [case(f"bad{number}", status="wrong", reason="by 2", measurements=()) for number in range(400)]
    html = record(case(), *cases)._repr_html_()
    assert "400 wrong, 1 ok" in html and "bad0[n=8]" in html and "and 390 more" in html
    assert len(html) < 10_000


def test_text_of_results_is_no_markup():
    html = replace(case(), reason="<script>alert(1)</script>")._repr_html_()
    assert "<script>" not in html and "&lt;script&gt;" in html


def test_empty_results_have_a_view():
    assert "no cases" in record()._repr_html_()
    assert "not measured (no luck)" in Measurement("cold_time", "kernel", (), reason="no luck")._repr_html_()
    assert "" == display.dots([("nothing", [])]) == display.bars([]) == display.table(["a"], [])


def test_dots_over_more_than_a_factor_of_ten_are_logarithmic():
    places = [float(x) for x in re.findall(r'cx="([0-9.]+)"', display.dots([("a", [1e-6, 1e-5, 1e-4])]))]
    assert pytest.approx(places[2] - places[1], abs=0.2) == places[1] - places[0]


def test_a_plot_has_the_slowest_case_first_and_the_peers_next_to_it():
    axes = record(case("fast", 1e-6), case("slow", 1e-3)).plot().axes[0]
    assert ["slow[n=8]", "fast[n=8]"] == [label.get_text() for label in axes.get_yticklabels()]
    assert [2e-3] == list(axes.lines[1].get_xdata())


def test_a_plot_draws_what_was_asked_for_and_says_how_much():
    many = record(*(case(f"kernel{number}") for number in range(40)), case("other", label="S1"))
    assert "30 of 40 cases" == many.plot("kernel*").axes[0].get_title()
    assert "1 case" == many.plot(label="S1").axes[0].get_title()


def test_a_plot_of_nothing_is_refused():
    with pytest.raises(UsageError, match="no case with a time fits 'conv\\*' at S1; the record has 1 case"):
        record(case()).plot("conv*", "S1")
