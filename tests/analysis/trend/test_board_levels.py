"""Trends over boards: no step where another board takes over, and none of the code's hidden."""

import random
from math import exp

import pytest

from prism_bench.analysis.trend import trend
from prism_bench.analysis.trend.causes import shifts
from prism_bench.analysis.trend.series import series_of
from tests.analysis.trend.histories import history, row

NIGHTS, CASES = 60, 24
EFFECTS = {"GPU-a": 0.0, "GPU-b": 0.08, "GPU-c": -0.06}


def night_after_night(board, seed=0, slower=None, unknown=False, new_code=None):
    """A history of cases on the boards that `board` names for each night.

    `slower` is (case, night, factor), with new code from then on unless `new_code` names another night. `unknown` code
    shows nothing of the boards.
    """
    rng = random.Random(seed)
    session = [rng.gauss(0, 0.002) for _ in range(NIGHTS)]
    rows = []
    for case in range(CASES):
        response = {name: rng.gauss(0, 0.003) for name in EFFECTS}
        logs = [EFFECTS[board(night)] + response[board(night)] + session[night] + rng.gauss(0, 0.003)
                for night in range(NIGHTS)]  # fmt: skip
        values = [1e-4 * (case + 1) * exp(value) for value in logs]
        changed = NIGHTS
        if slower and slower[0] == case:
            changed = slower[1] if new_code is None else new_code
            values = [value * (slower[2] if night >= slower[1] else 1) for night, value in enumerate(values)]
        code = lambda night, changed=changed: "" if unknown else f"c{night >= changed}"  # noqa: E731
        rows.append(row(values, case=f"k{case}[n=1]", board=board, code=code))
    return history(NIGHTS, *rows, facts=lambda night: {"device": board(night)})


def in_turn(night):
    """Three boards, one after the other."""
    return list(EFFECTS)[night % 3]


def handed_over(night):
    """One board for 40 nights, then another; both had a few nights together at the end of the first half."""
    return "GPU-a" if night < 24 or (night < 40 and night % 2) else "GPU-b"


def suddenly(night):
    return "GPU-a" if night < 30 else "GPU-b"


@pytest.mark.parametrize("board", [in_turn, handed_over])
def test_no_step_is_found_where_only_the_boards_change(board):
    steps = [step for seed in range(4) for step in trend(night_after_night(board, seed)).steps]
    bad = [step for step in steps if step.cause.kind != "device"]
    assert len(bad) <= 0.005 * 4 * CASES, bad


@pytest.mark.parametrize("board", [in_turn, handed_over])
def test_a_change_of_five_percent_by_new_code_is_found_at_its_night(board):
    found = 0
    for seed in range(4):
        result = trend(night_after_night(board, seed, slower=(7, 45, 1.05)))
        own = [step for step in result.steps if step.key.case == "k7[n=1]"]
        found += any(step.cause.kind == "code" and "044" <= step.record[5:8] <= "046" for step in own)
        bad = [one for one in shifts(result.steps) if one.gravity() == "bad"]
        assert all(one.cases == ("k7[n=1]",) for one in bad)
    assert found >= 3


def test_without_factors_boards_in_turn_would_hide_it(monkeypatch):
    """The same history, taken for one of equal boards: its values jump by 14 % from night to night."""
    monkeypatch.setattr("prism_bench.analysis.trend.detection.levelled", lambda history, series, names: series)
    result = trend(night_after_night(in_turn, slower=(7, 45, 1.05)))
    assert not [step for step in result.steps if step.cause.kind == "code"]


def test_a_board_that_nobody_compared_takes_over_and_verdicts_are_withheld():
    result = trend(night_after_night(suddenly, unknown=True, slower=(7, 30, 1.05)))
    assert CASES == len({step.key.case for step in result.steps})
    assert {"device"} == {step.cause.kind for step in result.steps}
    assert all("GPU-" in step.cause.words and "not known well enough" in step.cause.words for step in result.steps)
    assert not [one for one in shifts(result.steps) if one.gravity() == "bad"]


def test_more_than_boards_differ_by_is_no_matter_of_boards():
    result = trend(night_after_night(suddenly, unknown=True, slower=(7, 30, 3.0)))
    kinds = {step.key.case: step.cause.kind for step in result.steps}
    assert "device" != kinds.pop("k7[n=1]") and {"device"} == set(kinds.values())


def test_what_is_set_aside_is_counted_in_its_own_window_alone():
    doubtful = history(6, row([1e-3] * 6, doubt=lambda night: "throttled" if night < 4 else ""))
    assert [{"throttled": 4}, {"throttled": 1}, {}] == [
        next(series_of(doubtful, first)).aside for first in (0, 3, 4)]  # fmt: skip
