"""The table of simulated series keeps what is promised of it, and the detector of today still gives such a table."""

import csv
from pathlib import Path

import numpy
import pytest

from tests.scripts.loading import loaded

HOUSE = Path(__file__).resolve().parents[3]
TABLE = HOUSE / "reports" / "judgement" / "trends.csv"
SERIES = 60


@pytest.fixture(scope="module")
def script():
    return loaded("simulate_trends")


def rows(**wanted):
    with TABLE.open() as file:
        return [row for row in csv.DictReader(file) if all(row[name] == value for name, value in wanted.items())]


def test_the_committed_table_has_at_most_two_percent_of_false_steps(script):
    false = {row["noise"]: float(row["share"]) for row in rows(detector="ours", step="0.0")}
    assert set(script.NOISES) == set(false)
    assert max(false.values()) <= 0.02


def test_the_committed_table_has_nine_of_ten_steps_within_three_nights():
    (row,) = rows(noise="normal", detector="ours", step="0.05", **{"nights after": "3"})
    assert float(row["share"]) >= 0.9


def test_the_committed_table_has_the_other_detectors_or_the_reason_why_not():
    for detector in ("asv", "otava"):
        told = rows(detector=detector)
        assert len(told) > 10 or told[0]["why"]


@pytest.mark.parametrize("noise", ["normal", "drift", "outliers", "states", "states, clock known", "quantised"])
def test_false_steps_are_rare_today(script, noise):
    rng = numpy.random.default_rng(1)
    assert sum(bool(script.ours(*script.series(noise, rng), 0.0)) for _ in range(SERIES)) <= 1


def test_a_step_is_found_on_its_third_night_today(script):
    rng, found = numpy.random.default_rng(2), 0
    for _ in range(SERIES):
        values, clocks = script.series("normal", rng)
        values[-3:] *= 1.05
        found += any(abs(place - 117) <= 2 for place in script.ours(values, clocks, 0.05))
    assert found >= 0.9 * SERIES
