"""Kept columns, footnotes and verdicts of the table of cases."""

from dataclasses import replace

from prism_bench.analysis.gate.budgets import BudgetVerdict
from prism_bench.analysis.run_analysis import read
from prism_bench.record.measurement import Energy, Measurement
from prism_bench.report.headline import times_text
from prism_bench.report.view import BEFORE, case_views, table_of
from prism_bench.spec.metric import Budget
from tests.report.synthetic import case_result, cpu_record, gpu_record, measurement, record_of


def table_from(reading):
    return table_of(case_views(reading))


def test_columns_without_any_value_are_left_out_and_named():
    table = table_from(read(cpu_record()))
    assert [column.key for column in table.columns] == ["wall_time", "error"]
    assert "cold time" in table.absent and "wall time" not in table.absent


def test_equal_reasons_share_a_footnote():
    empty = Measurement("hot_time", "kernel", (), reason="no graphs here")
    table = table_from(read(record_of(*(case_result(name, measurements=(empty,)) for name in ("a", "b")))))
    assert table.notes == ("no graphs here",)
    numbers = [{key: table.note_number(cell) for key, cell in row.cells.items() if cell.reason} for row in table.rows]
    assert numbers == [{"hot_time": 1}, {"hot_time": 1}]


def test_an_invalid_time_is_shown_as_invalid_and_never_as_a_number():
    refused = measurement("cold_time", 1e-9, valid=False, reason="below the floor")
    (row,) = table_from(read(record_of(case_result("k", measurements=(refused,))))).rows
    assert (row.cells["cold_time"].text, row.state) == ("invalid", "invalid")
    assert row.cells["bandwidth"].sort is None


def test_the_worst_verdict_stands_for_the_case():
    limit, verdicts = Budget("cold_time", at_most=1e-5), ("met", "undecided")
    budgets = tuple(BudgetVerdict("matmul[n=256]", limit, 1e-6, verdict) for verdict in verdicts)
    cells = []
    for count in (1, 2):
        rows = table_from(replace(read(gpu_record()), budgets=budgets[:count])).rows
        cells += [row.budget for row in rows if row.case.name == "matmul[n=256]"]
    assert [("met", ""), ("undecided", "1 of 2")] == [(cell.text, cell.small) for cell in cells]


def test_ratios_line_up_around_one():
    assert [times_text(ratio) for ratio in (0.9, 1.254, 31.84, 2519.4)] == ["0.90x", "1.25x", "31.8x", "2,519x"]


def test_a_form_of_before_says_so_next_to_its_ratio():
    times = (measurement("cold_time", 2e-3), replace(measurement("cold_time", 1e-3), subject="peer:torch"))
    cases = [replace(case_result(name, measurements=times), before="a:full") for name in ("a", "b")]
    cases[1] = replace(cases[1], measurements=times[:1])
    table = table_from(read(record_of(*cases)))
    assert [("0.50x", ""), ("before", "")] == [
        (row.cells["peer_ratio"].text, row.cells["peer_ratio"].tone) for row in table.rows
    ]
    assert (BEFORE,) == table.notes


def test_energy_has_its_uncertainty_or_its_reason():
    told, refused = (replace(measurement("hot_time", 1e-3), energy=one) for one in (
        Energy(joules=0.0125, uncertainty=0.0005, window=0.2, launches=9), Energy(reason="the counter did not move")
    ))  # fmt: skip
    table = table_from(
        read(record_of(case_result("a", measurements=(told,)), case_result("b", measurements=(refused,))))
    )
    assert ("12.5 mJ", "±4.0 %") == (table.rows[0].cells["energy"].text, table.rows[0].cells["energy"].small)
    assert ("the counter did not move",) == table.notes


def test_energy_without_uncertainty_or_of_zero_stands_alone():
    found = [replace(measurement("hot_time", 1e-3), energy=one) for one in (Energy(joules=0.0125), Energy(0.0, 0.0))]
    table = table_from(read(record_of(*(case_result(f"k{i}", measurements=(one,)) for i, one in enumerate(found)))))
    assert ["", ""] == [row.cells["energy"].small or "" for row in table.rows]
