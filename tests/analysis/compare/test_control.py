"""The control: what cases of identical code have in common, and by what they differ beyond it."""

from math import exp, log
from pathlib import Path

import numpy as np
import pytest

from prism_bench.analysis.compare.comparison import compare
from prism_bench.analysis.compare.estimate import Medians
from prism_bench.analysis.compare.noise import ENOUGH, control_of, shift_words, stored_noise
from prism_bench.analysis.compare.verdict import Pair
from prism_bench.record import store

REPORTS = Path(__file__).parent.parent.parent.parent / "reports"


def pairs(count=100, *, factor=1.0, later=0.0, spread=0.003, clock=None, strays=(), seconds=(5e-6, 1e-3)):
    """Cases of identical code in five processes a side: B takes `factor` as long and begins `later`; the log ratio in
    cycles differs by `clock`; some stray by so much."""
    rng = np.random.default_rng(11)
    found = {}
    for place, typical in enumerate(np.geomspace(*seconds, count)):
        ratio = log(factor + later / typical) + dict(strays).get(place, 0.0)
        logs = log(typical) + spread * rng.standard_normal((2, 5)) + [[0.0], [ratio]]
        a, b = (Medians(tuple(side), (0.0,) * 5) for side in logs.tolist())
        moved = None if clock is None else Medians(tuple(one + clock for one in b.logs), (0.0,) * 5)
        found[f"k{place}"] = Pair(a, b, (a, moved) if moved else None)
    return found


def test_a_factor_is_found_with_its_error():
    fit = control_of(pairs(factor=1.01)).fit
    assert (1.01, 0.0) == (pytest.approx(fit.factor, abs=0.001), fit.offset)
    assert fit.at(1e-5).error < 0.001


def test_a_later_launch_is_an_offset_and_no_factor():
    """Another host launches 1.7 us earlier: a third of a case of 5 us, nothing of one of 1 ms."""
    control = control_of(pairs(later=-1.7e-6))
    assert (1.0, -1.7e-6) == (pytest.approx(control.fit.factor, abs=0.001), pytest.approx(control.fit.offset, rel=0.02))
    assert exp(control.fit.at(5e-6).log) == pytest.approx(1 - 1.7 / 5, abs=0.01)
    assert "-1.70 us a launch" == shift_words(control)


def test_cases_of_one_length_tell_no_offset_from_a_factor():
    assert 0.0 == control_of(pairs(later=-1e-6, seconds=(1e-5, 1.5e-5))).fit.offset


def test_an_offset_is_not_carried_beyond_the_cases_that_showed_it():
    fit = control_of(pairs(later=-1.7e-6)).fit
    assert fit.at(5e-6).log == pytest.approx(fit.at(1e-7).log, abs=0.01)


def test_fewer_cases_than_enough_say_nothing():
    few, many = (control_of(pairs(count, factor=1.05)) for count in (ENOUGH - 1, ENOUGH))
    assert (False, 0.0, True) == (few.used, few.fit.at(1e-5).log, many.used)
    assert 1.05 == pytest.approx(few.shift, abs=0.01)


def test_cases_that_stand_out_move_neither_shift_nor_errors():
    strays = [(place, 0.2) for place in (0, 40, 80)]
    plain, strayed = control_of(pairs()), control_of(pairs(strays=strays))
    assert (plain.fit.factor, plain.widening) == pytest.approx((strayed.fit.factor, strayed.widening), rel=0.15)
    assert strayed.fit.scatter < 0.003


@pytest.mark.parametrize("count", [ENOUGH, 12, 20, 300])
def test_a_single_case_that_stands_out_of_any_control_is_no_scatter(count):
    control = control_of(pairs(count, strays=[(count // 2, 0.3)]))
    assert control.fit.scatter < 0.01


def test_a_tenth_that_moved_is_scatter_and_half_that_moved_widens():
    assert control_of(pairs(strays=[(place, 0.04) for place in range(0, 100, 10)])).fit.scatter > 0.01
    assert control_of(pairs(strays=[(place, (-1) ** place * 0.02) for place in range(100)])).widening > 2


@pytest.mark.parametrize("follows", [0.0, 0.5, 1.0])
def test_what_the_clock_explains_is_no_shift(follows):
    """The clock of B is 3 % lower: times grow as far as a kernel follows it, and cycles shrink by the rest."""
    control = control_of(pairs(factor=exp(0.03 * follows), clock=-0.03))
    assert 0.0 == pytest.approx(control.fit.at(1e-4).log, abs=0.001)


@pytest.mark.parametrize(
    ("names", "cases", "offset", "factor", "faster"),
    [
        (("20261120T232125Z-fd4cb4b0", "20261123T070904Z-f63d9242"), 31, 1.79e-6, 0.9989, 3),  # B launches 1.8 us later
        (("20261123T070904Z-f63d9242", "20261127T141305Z-03a5d1ab"), 465, 0.0, 1.0, 16),
    ],
)
def test_committed_records_of_two_hosts_compare_sensibly(names, cases, offset, factor, faster):
    """The control explains what differs between the hosts; every case called faster has other machine code."""
    a, b = (store.read(REPORTS / "runs" / "nvidia-h200" / f"{name}.json.gz") for name in names)
    found = compare(a, b, stored_noise("nvidia-h200", REPORTS / "noise"))
    assert (cases, False) == (found.control.cases, found.control.excess)
    assert offset == pytest.approx(found.control.fit.offset, rel=0.02)  # of the pair of boards with most cases
    assert factor == pytest.approx(found.control.fit.factor, abs=0.001)
    assert found.control.widening < 2
    changed = {one.case: one.verdict for one in found.cases if one.verdict in ("slower", "faster")}
    assert {"faster"} == set(changed.values())
    assert faster == len(changed)
    assert all(a.case(case).code["sass"] != b.case(case).code["sass"] for case in changed)
