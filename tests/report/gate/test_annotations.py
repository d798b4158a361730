"""GitHub's workflow commands: one line each, at the kernel's source, none dropped in silence."""

from dataclasses import replace
from pathlib import Path

import pytest

from prism_bench.analysis.gate.checks import GatePart
from prism_bench.catalogue import discover
from prism_bench.report.gate import lines
from tests.report.gate.planted import AWKWARD, BAD, MET, NOTE, gate_of, many

HOUSE = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def catalogue():
    return discover(HOUSE / "kernels")


def test_a_concern_stands_at_its_kernel(catalogue):
    first, notice = lines(gate_of(BAD), catalogue, HOUSE)
    place = "file=kernels/basic/softmax.cu,title=missed%3A softmax[n=100] cold time"
    assert first.startswith(f"::error {place}::cold time is 9 us; the budget is at most 6 us%0Agit checkout ")
    assert "::notice title=prism-bench check::Below budget: 1 budget missed." == notice


def test_a_kernel_outside_the_checkout_has_no_place(catalogue, tmp_path):
    assert "file=" not in next(lines(gate_of(BAD), catalogue, tmp_path))


@pytest.mark.parametrize("case", [None, "gone[n=1]"])
def test_what_is_about_no_kernel_of_ours_has_no_place(catalogue, case):
    assert "file=" not in next(lines(gate_of(replace(BAD, case=case)), catalogue, HOUSE))


def test_a_message_stays_one_command(catalogue):
    first, _ = lines(gate_of(replace(BAD, message=AWKWARD)), catalogue, HOUSE)
    assert 1 == len(first.split("\n"))
    assert "50 %25 of <b>%0A" in first


@pytest.mark.parametrize(("count", "shown", "left"), [(10, 10, None), (11, 9, 2), (500, 9, 491)])
def test_github_shows_ten_so_the_tenth_counts_the_rest(catalogue, count, shown, left):
    errors = [line for line in lines(gate_of(*many(count)), catalogue, HOUSE) if line.startswith("::error")]
    assert shown + (left is not None) == len(errors) <= 10
    assert left is None or errors[-1].endswith(f"::and {left} more")


def test_a_part_that_could_say_nothing_warns(catalogue):
    silent = GatePart("baseline", silent="no baseline for box")
    told = [line for line in lines(gate_of(MET, more=[silent]), catalogue, HOUSE) if line.startswith("::warning")]
    assert ["::warning title=Against the baseline%3A unmeasured::no baseline for box"] == told
    told = [line for line in lines(gate_of(NOTE), catalogue, HOUSE) if line.startswith("::warning")]
    assert ["::warning title=Budgets%3A unmeasured::1 unmeasured"] == told
