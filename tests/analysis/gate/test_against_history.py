"""The gate against its own past: steps that stand, steps that are history, and too little of it."""

from dataclasses import replace

import pytest

from prism_bench.analysis.gate.checks import ENOUGH, alerts, gate, trend_part
from prism_bench.analysis.run_analysis import read
from prism_bench.analysis.trend.causes import RECENT
from prism_bench.record.store.history import HistoryProblem
from tests.analysis.gate.test_outcome import PATH
from tests.analysis.trend.histories import history, night_facts, points, row, series
from tests.report.synthetic import case_result, record_of

RECORD = record_of(case_result("k", workload={"n": 1}), machine={"id": "h200"})


def part(nights, *rows, facts=None, record=RECORD):
    return trend_part(history(nights, *rows, facts=facts), record)


def newest(nights, **changes):
    """The record of the newest night."""
    facts = night_facts(nights - 1)
    return replace(RECORD, created=facts.created, commit=facts.commit, **changes)


def grave(found):
    return [check for check in found.checks if check.gravity == "bad"]


def test_a_level_series_is_well():
    found = part(40, row(series()), record=newest(40))
    assert ["1 of 1 series keep their level"] == [check.message for check in found.checks]
    assert found.answered


def test_a_step_to_the_worse_shuts_the_gate():
    found = part(40, row(series(steps={34: 1.1})))
    (check,) = grave(found)
    assert ("step", "k[n=1]", "cold_time", pytest.approx(1.1, rel=0.01)) == (
        check.answer, check.case, check.metric, check.ratio,
    )  # fmt: skip
    assert 1 == gate(read(RECORD), PATH, [found]).exit_code


@pytest.mark.parametrize("steps", [{34: 0.9}, {20: 1.1, 32: 1 / 1.1}])
def test_a_step_to_the_better_and_one_that_recovered_are_notes(steps):
    found = part(40, row(series(steps=steps)))
    assert "step" in {check.answer for check in found.checks}
    assert [] == grave(found)


def test_an_old_step_is_history():
    found = part(30 + RECENT + 5, row(series(30 + RECENT + 5, steps={30: 1.1})))
    assert {"level"} == {check.answer for check in found.checks}


def test_many_cases_of_one_cause_are_one_check():
    newer = lambda night: {"software": {"driver": "590" if night >= 34 else "570"}}  # noqa: E731
    cases = [row(series(seed=seed, steps={34: 1.1}), case=f"k{seed}[n=1]") for seed in range(12)]
    (check,) = grave(part(40, *cases, facts=newer))
    assert (None, 12) == (check.case, len(check.cases))


@pytest.mark.parametrize("nights", [1, ENOUGH - 1])
def test_too_few_records_are_said(nights):
    found = part(nights, row(series(nights)))
    assert ((), False) == (found.checks, found.answered)
    assert f"a step needs {ENOUGH}" in found.silent


def test_another_machines_steps_and_another_backends_are_not_this_records():
    slow = row(series(steps={34: 1.1}))
    assert "0 records" in part(40, slow, record=replace(RECORD, machine={"id": "den"})).silent
    assert "0 records" in part(40, slow, record=replace(RECORD, backend="numpy_reference")).silent


def test_a_record_that_lies_elsewhere_is_told_so():
    assert "this record is not in the history" == part(40, row(series())).silent
    assert not part(40, row(series())).answered
    assert part(40, row(series()), record=newest(40)).silent is None


def test_the_level_of_older_records_is_no_answer_about_this_one():
    """A record in which every case was skipped passed, because the trend of the others is level."""
    skipped = lambda night: points(value=1e-3) if night < 39 else None  # noqa: E731
    doubtful = row(series(), doubt=lambda night: "" if night < 39 else "a neighbour was busy")
    for case in (skipped, doubtful):
        found = part(40, case, record=newest(40))
        assert ("this record has no time that can be trusted", False) == (found.silent, found.answered)


def test_a_record_that_cannot_be_read_harms_no_other():
    told = replace(
        history(40, row(series(steps={34: 1.1}))), problems=(HistoryProblem("x", "x: not a readable run record"),)
    )
    found = trend_part(told, RECORD)
    assert 1 == len(grave(found))
    assert ("left out", "x: not a readable run record") in {(check.answer, check.message) for check in found.checks}


def test_a_step_is_the_same_alert_on_every_night_after_it():
    told = [alerts(gate(read(RECORD), PATH, [part(nights, row(series(60, steps={34: 1.1})))])) for nights in (38, 45)]
    ((one,), (other,)) = told
    assert (one.fingerprint, one.state) == (other.fingerprint, other.state)


def test_a_step_between_two_commits_is_compared_again():
    commit = lambda night: {"commit": ("b" if night >= 34 else "a") * 40}  # noqa: E731
    (check,) = grave(part(40, row(series(steps={34: 1.1})), facts=commit))
    assert "a" * 40 == check.against
    (alert,) = alerts(gate(read(RECORD), PATH, [part(40, row(series(steps={34: 1.1})), facts=commit)]))
    assert alert.reproduce.startswith("prism-bench compare aaaaaaaaaaaa 7471611d0c9b")


def test_a_step_of_the_driver_is_not_to_be_seen_between_commits():
    changed = lambda night: {"commit": ("b" if night >= 34 else "a") * 40,  # noqa: E731
                             "software": {"driver": "590" if night >= 34 else "570"}}  # fmt: skip
    (check,) = grave(part(40, row(series(steps={34: 1.1})), facts=changed))
    assert check.against is None
