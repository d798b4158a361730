"""How often verdicts are wrong where the truth is known: a small part of the table, by other seeds than the table's.

The bounds are those of the whole table with room for chance: a rate that is right exceeds them once in a thousand runs.
"""

import csv
from collections import Counter
from functools import cache

import numpy as np
import pytest
from lab.simulated_verdicts import FORMS, generated
from lab.simulation_table import DESIGNS, SEED, SimulationEffort, rows, tallies
from scipy.stats import binom

from prism_bench.workflows.compile_table import write_csv

PAIRS = 12
SEQUENTIAL, STORED = DESIGNS[3], DESIGNS[4]
# All cases of a run share its clocks: 60 runs by five processes cover 0.946 with a standard deviation of 0.08, so that
# the mean of PAIRS runs is below this once in a thousand times.
CLOCKS_COVER = 0.86
NIGHTLY = DESIGNS[6]  # five earlier runs, and undecided cases measured again


@cache
def counted(form):
    """The counts of every design: pairs of runs without a change, and with 5 and 10 % in a tenth of the cases."""
    rng = np.random.default_rng([SEED + 77, list(FORMS).index(form)])
    sums = {}
    for design, ratio, count in tallies(rng, FORMS[form], 150, {1.0: PAIRS, 1.05: 3, 1.10: 2}):
        sums.setdefault((design, ratio), Counter()).update(count)
    return sums


def by_form(forms):
    """Parameters for the forms; one test process counts all of a form."""
    return pytest.mark.parametrize(
        "form", [pytest.param(form, marks=pytest.mark.xdist_group(f"simulated {form}")) for form in forms]
    )


@by_form(FORMS)
def test_next_to_no_pair_of_runs_has_a_false_change(form):
    """One in a hundred may; of all designs together, which share their suites, no more than chance allows."""
    allowed = binom.ppf(0.999, PAIRS, 0.01)
    for design in DESIGNS:
        assert counted(form)[design, 1.0]["pairs with a false one"] <= allowed, design


@by_form(FORMS)
def test_printed_intervals_cover_what_they_promise(form):
    """Cases of one pair of runs share its clocks and shifts, so chance is that of runs, not of cases."""
    for design in DESIGNS:
        count = counted(form)[design, 1.0]
        # What earlier runs differ by widens the intervals of cases that differ by less.
        least = CLOCKS_COVER if form.startswith("two clocks") else 0.92
        assert least <= count["covered"] / count["judged"] <= (0.998 if design.nightly else 0.985), design


@by_form(form for form in FORMS if form.startswith("offsets"))
@pytest.mark.parametrize(("ratio", "power"), [(1.05, 0.95), (1.10, 0.99)])
def test_a_planted_change_is_found_while_processes_are_added(form, ratio, power):
    count = counted(form)[STORED, ratio]
    assert count["found"] >= binom.ppf(0.001, count["planted"], power)


@by_form(FORMS)
@pytest.mark.parametrize(("ratio", "power"), [(1.05, 0.90), (1.10, 0.99)])
def test_a_nightly_run_finds_a_change_by_its_earlier_runs(form, ratio, power):
    count = counted(form)[NIGHTLY, ratio]
    assert count["found"] >= binom.ppf(0.001, count["planted"], power)


@pytest.mark.xdist_group("simulated offsets of 1 %")
def test_few_processes_are_added_where_nothing_changed():
    count = counted("offsets of 1 %")[SEQUENTIAL, 1.0]
    assert count["processes"] / count["judged"] < 5.5


def test_a_suite_follows_its_seed_and_its_form():
    one, other = (generated(np.random.default_rng(1), FORMS["drift of 1 %"], 20, 5) for _ in range(2))
    assert one.seconds == other.seconds
    assert (0, 19) == (
        len(one.identical),
        len(generated(np.random.default_rng(1), FORMS["machine 1 % slower"], 20, 5).identical),
    )


def test_several_processes_write_the_same_table():
    names = ["drift of 1 %", "machine 1 % slower"]
    assert [*rows(SimulationEffort(20, 1, 1, 5), names)] == [*rows(SimulationEffort(20, 1, 1, 5, jobs=2), names)]


def test_the_table_has_a_line_for_each_form_and_design(tmp_path):
    path = tmp_path / "table.csv"
    write_csv(rows(SimulationEffort(20, 1, 1, 5), ["drift of 1 %"]), path)
    with path.open() as file:
        found = list(csv.DictReader(file))
    assert [("drift of 1 %", design.words) for design in DESIGNS] == [(row["noise"], row["processes"]) for row in found]
    assert all(0 <= float(row["coverage"]) <= 1 for row in found)
