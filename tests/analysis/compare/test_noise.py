"""Noise floors: what a build differs from itself by, and how often that is called a change."""

from dataclasses import replace

import pytest

from prism_bench.analysis.compare.noise import noise_of
from prism_bench.errors import ResultsError
from tests.analysis.measured_pairs import case, measured
from tests.report.synthetic import case_result, record_of


def same_build(spreads, processes=6):
    """A record of each side of a build against itself, one case per spread."""
    sides = []
    for side in (0, 1):
        cases = [
            case(f"k{i}", seed=100 * i + side, spread=spread, processes=processes) for i, spread in enumerate(spreads)
        ]
        sides.append(record_of(*cases))
    return sides


def test_every_case_that_was_timed_on_both_sides_has_a_floor():
    noise = noise_of(*same_build([0.001, 0.01]))
    assert {("k0[n=100]", "cold_time"), ("k1[n=100]", "cold_time")} == set(noise.floors)
    assert ("nvidia-h200", "NVIDIA H200", "cuda", 1) == (noise.machine, noise.device, noise.backend, noise.protocol)


def test_a_floor_tells_what_processes_differ_by_from_what_samples_leave_open():
    quiet, loud = noise_of(*same_build([0.0, 0.02], processes=12)).floors.values()
    assert 0.02 == pytest.approx(loud.between, rel=0.4)
    assert quiet.between < 0.001
    assert quiet.within == pytest.approx(loud.within, rel=1.0)
    assert quiet.smallest_change < 0.01 < loud.smallest_change


def test_a_floor_counts_its_processes():
    (floor,) = noise_of(*same_build([0.01])).floors.values()
    assert (6, 10, 20) == (floor.processes, floor.freedom, floor.repaired)
    assert 2e-5 == pytest.approx(floor.seconds, rel=0.05)
    assert ("2026-11-20T22:14:05", record_of().commit) == (floor.created, floor.commit)


def test_next_to_no_verdict_on_the_build_against_itself_calls_a_change():
    assert noise_of(*same_build([0.002, 0.005, 0.01, 0.02] * 5)).false_share <= 0.01


def test_the_dealing_into_sides_is_the_same_each_time():
    records = same_build([0.02] * 4)
    assert noise_of(*records) == noise_of(*records)


def test_the_spread_is_what_an_estimate_weighs_in():
    noise = noise_of(*same_build([0.01]))
    (floor,) = noise.floors.values()
    spread = noise.spread("k0[n=100]", "cold_time")
    assert (floor.between**2 + floor.within**2, 10) == pytest.approx((spread.variance, spread.freedom))
    assert noise.spread("k0[n=100]", "hot_time") is None


def test_one_process_a_side_makes_no_floor():
    noise = noise_of(*same_build([0.01], processes=1))
    assert ({}, None) == (noise.floors, noise.false_share)


@pytest.mark.parametrize(
    "other",
    [
        case_result("k0", status="wrong", reason="differs"),
        case_result("k0"),
        case_result("stranger"),
        case("k0", valid=False, reason="below the floor"),
    ],
)
def test_what_has_no_valid_time_on_both_sides_has_no_floor(other):
    first, _ = same_build([0.01])
    assert {} == noise_of(first, record_of(other)).floors


def test_both_clocks_of_a_device_have_a_floor():
    first, second = same_build([0.01])
    both = [
        replace(
            one, cases=(replace(one.cases[0], measurements=(*one.cases[0].measurements, measured(metric="hot_time"))),)
        )
        for one in (first, second)
    ]
    assert {"cold_time", "hot_time"} == {metric for _, metric in noise_of(*both).floors}


def test_two_machines_are_not_one_build_against_itself():
    first, second = same_build([0.01])
    with pytest.raises(ResultsError, match="only records of one backend, device and protocol"):
        noise_of(first, replace(second, backend="null"))
