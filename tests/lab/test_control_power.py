"""The simulation of controls, on a small record whose processes differ by half a percent."""

import pytest
from lab.control_power import Nights, doubts, judged

from tests.analysis.measured_pairs import case
from tests.report.synthetic import record_of


@pytest.fixture(scope="module")
def nights():
    cases = (case(f"k{number}", seed=number, spread=0.005, processes=3) for number in range(60))
    return Nights(record_of(*cases), seed=0, apart=0.0)


@pytest.mark.parametrize("controls", [False, True])
def test_a_large_change_of_code_is_found_and_nothing_else(nights, controls):
    at_last = judged(nights, controls=controls, planted=1.2)[-1]
    slower = {row.case for row in at_last.cases if row.verdict == "slower"}
    assert {one.name for one in nights.cases[::10]} == slower


def test_all_controls_are_in_doubt_where_the_machine_is_slower_and_few_where_nothing_is(nights):
    shares = {line["slower"]: line for line in doubts(nights)}
    assert float(shares["nothing"]["of the others"]) < 0.1
    assert ["1.000", "1.000"] == [shares[name]["of them in doubt"] for name in ("the machine 1.05", "its clock 1.05")]
