"""Comparisons at a prompt and in a notebook: one line, the intervals of what moved, a table."""

import re
from dataclasses import replace
from math import inf

import pytest

from prism_bench import display
from prism_bench.analysis.compare.comparison import CaseRatio, ComparedCase, RecordComparison, change_sentence
from prism_bench.analysis.compare.noise import Control
from prism_bench.analysis.compare.verdict import judged, pair_of
from prism_bench.record.measurement import Measurement


def measured(*seconds):
    return Measurement("cold_time", "kernel", tuple((one,) * 12 for one in seconds))


def compared(name, factor):
    """A case that took `factor` times as long on side B."""
    a = measured(1e-5, 1.01e-5, 0.99e-5, 1e-5)
    b = measured(*(factor * one for one in (1e-5, 1.01e-5, 1e-5, 0.99e-5)))
    judgement = judged([pair_of(a, b)])[0]
    return ComparedCase(name, "cold_time", judgement.verdict, None, judgement, (a.median, b.median))


def comparison(*cases):
    return RecordComparison(("A", "B"), cases, CONTROL)


CONTROL = Control()
SLOWER, SAME = compared("softmax[n=8]", 1.5), compared("copy[n=8]", 1.0)
ABSENT = ComparedCase("read[n=8]", "cold_time", "not compared", "no valid times in A")


def test_a_case_is_one_line():
    assert "<ComparedCase softmax[n=8] slower: 15.0 us against 10.0 us, +50.0 %>" == repr(SLOWER)
    assert "<ComparedCase read[n=8] not compared (no valid times in A)>" == repr(ABSENT)


def test_a_comparison_is_one_line_whatever_it_holds():
    many = comparison(SLOWER, ABSENT, *[SAME] * 500)
    assert "<RecordComparison B against A: 1 slower, 500 same, 1 not compared>" == repr(many)
    assert "<RecordComparison B against A: no cases>" == repr(comparison())


def test_the_view_shows_what_moved_with_its_interval():
    html = comparison(SAME, SLOWER)._repr_html_()
    assert 1 == html.count("<circle") and "softmax[n=8]" in html and "copy[n=8]" not in html
    assert "<td>10.0 us</td><td>15.0 us</td>" in html


def test_where_nothing_moved_the_rest_is_shown():
    html = comparison(SAME, ABSENT)._repr_html_()
    assert 1 == html.count("<circle") and "no valid times in A" in html


def test_a_view_takes_cases_of_the_same_machine_code():
    unmeasured = ComparedCase("norm[n=8]", "cold_time", "same machine code")
    assert "norm[n=8]" in comparison(SAME, unmeasured)._repr_html_()


def test_a_view_stays_small():
    html = comparison(*(replace(SLOWER, case=f"kernel{number}[n=8]") for number in range(400)))._repr_html_()
    assert "400 slower" in html and "and 390 more" in html and len(html) < 12_000


def test_the_view_of_one_case():
    html = SLOWER._repr_html_()
    assert html.startswith("<div><strong>softmax[n=8] slower: 15.0 us against 10.0 us, +50.0 %</strong>")
    assert 1 == html.count("<circle") and "<svg" not in ABSENT._repr_html_()


def test_the_dot_is_inside_its_interval_and_right_of_no_change():
    picture = display.intervals([display.Interval("a", 1.5, 1.2, 2.0, "1.50x")])
    none = float(re.findall(r'<line x1="([0-9.]+)"', picture)[0])
    left, right = map(float, re.findall(r'<line x1="([0-9.]+)" x2="([0-9.]+)"', picture)[1])
    dot = float(re.findall(r'cx="([0-9.]+)"', picture)[0])
    assert none < left < dot < right


@pytest.mark.parametrize("ratio", [float("nan"), float("inf"), 0.0, -1.0])
def test_what_is_no_ratio_is_not_drawn(ratio):
    assert "" == display.intervals([display.Interval("a", ratio, 0.5, 2.0, "-")])


def test_an_endless_interval_is_cut_off():
    picture = display.intervals([display.Interval("a", 2.0, 0.0, float("inf"), "2.00x")])
    assert "nan" not in picture and "inf" not in picture
    assert all(0 <= float(x) <= display.WIDTH for x in re.findall(r'x[12]="([0-9.]+)"', picture))


SLOW, FAST = CaseRatio("slower", 1.041, 1.038, 1.044, 0.01), CaseRatio("faster", 0.7, 0.65, 0.75, 0.01)
LEVEL, OPEN = CaseRatio("same", 1.0, 0.99, 1.01, 0.01), CaseRatio("inconclusive", 1.03, 0.9, 1.2, 0.06)


@pytest.mark.parametrize(
    ("cases", "sentence"),
    [
        (
            [SLOW, LEVEL, OPEN],
            "B is 4.1 % slower (3.8 % to 4.4 %) in 1 of 3 cases; 1 undecided, with a noise floor of 6.0 %.",
        ),
        ([FAST, LEVEL], "B is 30 % faster (25 % to 35 %) in 1 of 2 cases."),
        (
            [SLOW, SLOW._replace(ratio=1.5), FAST],
            "B is 4.1 % to 50 % slower in 2 of 3 cases and 30 % faster (25 % to 35 %) in 1 of 3 cases.",
        ),
        ([LEVEL, LEVEL, OPEN._replace(floor=inf)], "B is as fast in 2 of 3 cases; 1 undecided."),
        ([CaseRatio("not compared")], "No case could be compared."),
        ([CaseRatio("same machine code")] * 7, "Nothing was measured: 7 cases have the same machine code."),
        ([], "No case could be compared."),
        ([SLOW._replace(low=0.0, high=inf)], "B is 4.1 % slower in 1 of 1 case."),
    ],
)
def test_the_sentence_says_how_much_in_how_many_cases(cases, sentence):
    assert sentence == change_sentence("B", cases)


def test_the_sentence_of_a_comparison_is_that_of_its_cases():
    text = comparison(SLOWER, ABSENT, *[SAME] * 5).sentence("new")
    assert text.startswith("new is 50 % slower (") and text.endswith(") in 1 of 6 cases; 1 not compared.")
