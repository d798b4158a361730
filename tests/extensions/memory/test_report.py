"""Allocators in the terminal and as JSON."""

import io
import json

from rich.console import Console

from prism_bench.extensions.memory.replay import contest, planned
from prism_bench.extensions.memory.report import contest_json, contest_view, traces_json, tracked_view
from prism_bench.extensions.memory.trace import random_trace
from tests.extensions.memory.published import published_demo
from tests.extensions.planted_programs import program, record, trace


def shown(view):
    console = Console(file=io.StringIO(), width=220, no_color=True)
    console.print(view)
    return console.file.getvalue()


def measured(steady=1e-4):
    base = record(trace(peak_asked=1000, peak_held=2000, overhead=2.0), program())
    return contest(
        {"cupy": base, "size_class": record(trace(), program(steady=steady, latency=2 * steady))},
        {"rmm": "RMM is not installed here"},
    )


def test_view_of_a_size_class_pool_without_gain():
    text = shown(contest_view(measured()))
    assert "the size-class pool is as fast as CuPy's own; CuPy's stays the default" in text
    assert "rmm: RMM is not installed here" in text
    assert "2.00x" in text and "image:allocating" in text


def test_view_of_a_faster_size_class_pool():
    text = shown(contest_view(measured(0.7e-4)))
    assert "the size-class pool is faster than CuPy's own; size_class is what these programs should use" in text


def test_a_contest_as_json_has_intervals():
    plain = json.loads(json.dumps(contest_json(measured(0.7e-4)), allow_nan=False))
    assert ("size_class", {"size_class": "faster"}) == (plain["default"], plain["verdicts"])
    low, high = plain["programs"][0]["interval"]
    assert low < plain["programs"][0]["ratio"] < high < 0.75
    assert plain["traces"][0]["against_base"] is None


def test_the_demo_says_that_it_is_synthetic():
    text = shown(tracked_view("published demo", published_demo()))
    assert "synthetic: no program asked for this" in text
    assert "reuse potential 67.92 %" in text
    assert "32.08 %" in text


def test_view_of_a_trace_with_pool_counts():
    synthetic = random_trace(200)
    text = shown(tracked_view("random", synthetic.tracked(), planned(synthetic)))
    assert "the size-class pool, by its books:" in text
    plain = json.loads(json.dumps(traces_json([(synthetic, synthetic.tracked(), planned(synthetic))]), allow_nan=False))
    assert 200 == plain["random"]["tracked"]["total_allocations"] == plain["random"]["size_class"]["allocate_requests"]
