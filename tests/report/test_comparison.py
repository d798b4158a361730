"""A comparison as people and programs read it."""

import json
import re
from dataclasses import replace

import pytest
from rich.console import Console

from prism_bench.analysis.compare.comparison import compare, comparison_findings
from prism_bench.extensions.ci.comment import CommentedCase, ComparedFile, comment
from prism_bench.record.measurement import Measurement
from prism_bench.report.plain import comparison_json
from prism_bench.report.terminal.comparison import comparison_view
from tests.analysis.measured_pairs import case, measured, records
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
    assert "B against A\nNo case could be compared." == printed(compare(record_of(), record_of())).strip()


def test_the_plain_values_are_json():
    found = compare(*records([1.1, *[1.0] * 99], sass=("aa", "aa")))
    plain = json.loads(json.dumps(comparison_json(found), allow_nan=False))
    assert ["inconclusive", "same"] == [one["verdict"] for one in plain["cases"][:2]]
    assert ["slower", "same"] == [one["by_times"] for one in plain["cases"][:2]]
    assert [None, True] == [one["within"] and one["within"] < 0.01 for one in plain["cases"][:2]]
    assert (True, 1.0) == (plain["control"]["used"], pytest.approx(plain["control"]["factor"], abs=0.002))
    assert ["k0[n=100]"] == plain["control"]["changed"]


# Medians of processes on two levels: the middle ones are 227 and 232 us, and the ratio of the paired ones is 1.108.
OLD, NEW = (190e-6, 195e-6, 227e-6, 229e-6, 230e-6), (229e-6, 230e-6, 232e-6, 257e-6, 238e-6)


def levelled(medians, name="k", sass="aa"):
    """A record's case whose processes have these medians."""
    groups = tuple((seconds,) * 5 for seconds in medians)
    return case_result(name, code={"sass": sass}, measurements=(Measurement("cold_time", "kernel", groups),))


def shifted():
    """Twelve cases of identical code that take 8 % less in B, and one of other code."""
    still = [measured(seed=place) for place in range(12)]
    quick = [replace(one, processes=tuple(tuple(0.92 * x for x in group) for group in one.processes)) for one in still]
    sides = [
        [case_result(f"i{place}", code={"sass": f"i{place}"}, measurements=(one,)) for place, one in enumerate(times)]
        for times in (still, quick)
    ]
    return [record_of(*side, case("k", ratio, sass)) for side, ratio, sass in zip(sides, (1.0, 1.1), "ab", strict=True)]


def microseconds(text):
    return [float(number) for number in re.findall(r"([\d.]+) us", text)]


def changes(text):
    """The changes in a text, such as `+12.2 %`, as ratios."""
    return [1 + float(number) / 100 for number in re.findall(r"([+-][\d.]+) %", text)]


@pytest.mark.parametrize(
    ("a", "b"), [(record_of(levelled(OLD)), record_of(levelled(NEW, sass="b"))), shifted()], ids=["levels", "machine"]
)
def test_a_change_is_that_of_the_times_next_to_it_wherever_it_is_printed(a, b):
    """227 and 232 us were printed next to 1.108x."""
    found = compare(a, b)
    row = next(one for one in comparison_json(found)["cases"] if one["case"] == "k[n=100]")
    before, after = row["seconds"]
    assert after / before == pytest.approx(row["ratio"] * row["shift"], rel=1e-9)
    (line,) = [one for one in printed(found, everything=True).splitlines() if one.startswith("k[n=100]")]
    machine = changes(line)[1] if "  machine" in printed(found, True) else 1.0
    (before, after), ratio = microseconds(line), changes(line)[0]
    assert after / before == pytest.approx(ratio * machine, rel=0.01)
    assert (abs(machine - 1) > 0.05) == (len(found.cases) > 1)
    one = next(one for one in found.cases if one.case == "k[n=100]")
    texts = [repr(one), *(finding.message for finding in comparison_findings(found) if finding.case == one.case)]
    for text in texts:
        after, before = microseconds(text)[:2]
        divided = changes(text.partition("machine's")[2])
        assert after / before == pytest.approx(changes(text)[0] * (divided[0] if divided else 1.0), rel=0.01), text
    plain = CommentedCase(**{key: value for key, value in row.items() if key in ("case", "verdict", "metric", "seconds",
                             "ratio", "low", "high", "shift")})  # fmt: skip
    text = comment(ComparedFile("A", "B", [replace(plain, verdict="slower")]))
    (before, after), ratios = microseconds(text), changes(text)
    assert after / before == pytest.approx(ratios[0] * (ratios[1] if "machine" in text else 1), rel=0.01)
