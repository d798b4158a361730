"""Rows and phases of a record of pipelines, from planted times."""

import pytest

from prism_bench.extensions.pipelines.results import exit_code, phases, rows
from tests.extensions.planted_programs import program, record

LSTM = record(
    program("lstm", "per_call", latency=3.2e-3),
    program("lstm", "one_stream", latency=1.6e-4, cpu=16e-3),
    program("lstm", "graph", latency=8e-5),
    program("lstm_sequence", "one_stream", latency=6.4e-5, cpu=12e-3),
)


def test_one_form():
    row = rows(record(program("together", "graph", steady=2e-4, latency=5e-4, overlap=0.25)))[0]
    assert ("together:graph", 4, 2, 0.25, 2000.0) == (row.task, row.launches, row.lanes, row.overlap, row.goal)
    assert {"overlap_share": 0.25} == row.traced
    assert 5000 == pytest.approx(row.per_second, rel=0.01)
    assert 1e-4 == pytest.approx(row.launch, rel=0.01)


def test_every_form_is_compared_with_the_cpu():
    by_task = {row.task: row for row in rows(LSTM)}
    assert 200 == pytest.approx(by_task["lstm:graph"].against_cpu, rel=0.01)
    assert 5 == pytest.approx(by_task["lstm:per_call"].against_cpu, rel=0.01)


def test_overlap_without_tracer_has_its_reason():
    row = rows(record(program()))[0]
    assert (None, "no CUPTI") == (row.overlap, row.missing)


def test_phases_of_one_step_against_the_better_cpu():
    lstm = phases(rows(LSTM), 16)
    assert ["lstm:per_call", "lstm:one_stream", "lstm:graph", "lstm_sequence:one_stream"] == [
        phase.row.task for phase in lstm
    ]
    assert [2e-4, 1e-5, 5e-6, 4e-6] == [pytest.approx(phase.step, rel=0.01) for phase in lstm]
    assert (3 / 16, 2500 / 16) == (lstm[0].copies, lstm[0].bytes)
    assert 75 == pytest.approx(lstm[1].against_cpu, rel=0.01)


def test_without_an_lstm_there_are_no_phases():
    assert () == phases(rows(record(program())), 16)


@pytest.mark.parametrize(("statuses", "code"), [(("ok", "skipped"), 0), (("ok", "wrong"), 1), (("skipped",), 2)])
def test_exit_code_of_statuses(statuses, code):
    assert code == exit_code(rows(record(*(program(form=s, status=s) for s in statuses))))
