"""A session recorded on a real GPU by scripts/monitor_proof, replayed: does a driver say what our table expects?"""

import json
from pathlib import Path

import pytest

from prism_bench.monitor.probe import QUANTITIES, REASONS, DeviceReading
from prism_bench.monitor.sampler import Rules, evidence_in

RECORDED = Path(__file__).with_name("recorded.json")

if not RECORDED.is_file():
    pytest.skip("no session was recorded yet; scripts/monitor_proof records one on a GPU", allow_module_level=True)

FOUND = json.loads(RECORDED.read_text())
READINGS = [DeviceReading(one["at"], one["values"]) for one in FOUND["session"]["readings"]]
HERTZ = FOUND["cost"].get("hertz") or FOUND["cost"]["beats"] / FOUND["cost"]["seconds"]
MARKS = [mark for mark in FOUND["session"]["marks"] if mark["kernel"]]


def test_a_driver_gives_what_the_table_names_and_reasons_for_the_rest():
    told = set().union(*(reading.values for reading in READINGS))
    missing = set(FOUND["session"]["missing"])
    assert told <= set(QUANTITIES)
    assert set(QUANTITIES) <= told | missing
    assert {"sm_clock", "memory_clock", "temperature", "utilization", "memory_used", "clock_reasons"} <= told


def test_values_are_those_of_a_device_in_si_units():
    for reading in READINGS:
        values = reading.values
        assert 1e8 < values["sm_clock"] < 4e9
        assert 10 <= values["temperature"] < 110
        assert 0 <= values["utilization"] <= 1
        assert values["memory_used"] + values["memory_free"] <= 1.01 * values["memory_total"]
        assert 0 <= int(values["clock_reasons"]) <= 2 * max(REASONS)


def test_the_beat_is_steady_enough_for_windows():
    gaps = [later.at - earlier.at for earlier, later in zip(READINGS, READINGS[1:], strict=False)]
    assert 0.04 < sorted(gaps)[len(gaps) // 2] < 0.2


@pytest.mark.parametrize("mark", MARKS, ids=lambda mark: mark["kernel"])
def test_each_kernels_window_has_evidence_that_holds(mark):
    inside = [reading for reading in READINGS if mark["begin"] <= reading.at <= mark["end"]]
    evidence = evidence_in(inside, None, mark["end"] - mark["begin"])
    assert evidence.readings >= 3
    assert {"sm_clock", "temperature"} <= set(evidence.spans)
    assert () == Rules().doubts(evidence, max(reading.values["sm_clock"] for reading in READINGS))


def test_the_sampler_moves_no_median_beyond_its_noise():
    assert [] == [name for name, row in FOUND["ab"].items() if not row["within"]]


def test_the_sampler_costs_under_one_percent_of_a_core_at_20_hertz():
    share = FOUND["cost"]["cpu_share"]
    assert 0 < share < 0.01
    assert HERTZ > 19


def test_energies_are_those_of_a_board_within_its_limits():
    limit = max(reading.values.get("power_limit", 1000.0) for reading in READINGS)
    told = [one for one in FOUND["energy"]["launches"].values() if one["joules"] is not None]
    assert told
    busy = min(one["launches"] * one["hot"] / one["window"] for one in told)
    assert busy > 0.8  # else the rest of the energy is idle's
    drawn = [one["joules"] * one["launches"] / one["window"] for one in told]  # the limit is held on average, and late
    assert all(20 < power < 1.15 * limit for power in drawn)
    assert all(one["reason"] for one in FOUND["energy"]["launches"].values() if one["joules"] is None)
