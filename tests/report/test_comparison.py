"""A comparison as people and programs read it."""

import json
from dataclasses import replace

import pytest
from rich.console import Console

from prism_bench.analysis.compare.comparison import compare
from prism_bench.report.terminal.comparison import comparison_json, comparison_view
from tests.analysis.measured_pairs import case, records
from tests.report.synthetic import case_result, record_of


def printed(comparison, everything=False, width=200):
    console = Console(width=width, no_color=True)
    with console.capture() as captured:
        console.print(comparison_view(comparison, everything))
    return captured.get()


def test_the_count_comes_first_and_only_what_is_not_the_same_is_listed():
    text = printed(compare(*records([1.0, 1.1, 0.9]), names=("old", "new")))
    assert "1 slower  1 faster  1 same  new against old" == text.splitlines()[0].rstrip()
    assert ["k1[n=100]", "k2[n=100]"] == [line.split()[0] for line in text.splitlines() if line.startswith("k")]


def test_all_cases_are_listed_when_asked_the_gravest_first():
    text = printed(compare(*records([1.0, 0.9, 1.1])), everything=True)
    assert ["k2", "k1", "k0"] == [line[:2] for line in text.splitlines() if line.startswith("k")]


def test_a_case_without_times_says_why():
    a, _ = records([1.0])
    text = printed(compare(a, record_of(case_result("k0", status="wrong", reason="y[0] is 1"))))
    assert "not compared: wrong in B: y[0] is 1" in text


def test_names_in_brackets_are_no_markup():
    assert "[bold]" in printed(compare(record_of(case("[bold]")), record_of(case("[bold]", 1.2, "bb", seed=1))))


def test_one_process_a_side_has_no_interval():
    a, b = records([1.0])
    single = [
        replace(one, cases=(case("k0", sass=sass, processes=1),))
        for one, sass in ((a, "aa"), (b, "bb"))
    ]  # fmt: skip
    comparison = compare(*single)
    assert "one process a side does not show the spread between processes" in printed(comparison, width=300)
    (plain,) = comparison_json(comparison)["cases"]
    assert (0.0, None, None) == (plain["low"], plain["high"], plain["floor"])


def test_nothing_to_compare_is_still_a_view():
    assert "B against A" == printed(compare(record_of(), record_of())).strip()


def test_the_plain_values_are_json():
    found = compare(*records([1.1, *[1.0] * 99], sass=("aa", "aa")))
    plain = json.loads(json.dumps(comparison_json(found), allow_nan=False))
    assert ["inconclusive", "same"] == [one["verdict"] for one in plain["cases"][:2]]
    assert ["slower", "same"] == [one["by_times"] for one in plain["cases"][:2]]
    assert [None, True] == [one["within"] and one["within"] < 0.01 for one in plain["cases"][:2]]
    assert (True, 1.0) == (plain["control"]["used"], pytest.approx(plain["control"]["factor"], abs=0.002))
    assert ["k0[n=100]"] == plain["control"]["changed"]
