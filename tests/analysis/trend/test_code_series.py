"""Series of one value per record: exact counts of the compiler, whose every change is a step, and its noisy time."""

import random
from dataclasses import replace

import pytest

from prism_bench.analysis.trend import steps, trend
from prism_bench.analysis.trend.causes import findings, shifts
from prism_bench.analysis.trend.series import chosen, require_metrics, series_of
from prism_bench.errors import UsageError
from prism_bench.record.measurement import Energy
from prism_bench.record.run_record import encode
from prism_bench.record.schema import checked
from prism_bench.record.store.points import details_in, points_in
from prism_bench.spec.metric import CODE, is_exact, is_host_time, value_text
from tests.analysis.trend.histories import history, row, series
from tests.report.synthetic import case_result, measurement, record_of

SIZE = 4096.0


def size(*changes, nights=12):
    """A row of code bytes, with a new machine code and a new value from each of the nights of `changes` on."""
    levels = dict(changes)
    values, codes = [SIZE], ["c0"]
    for night in range(1, nights):
        values.append(levels.get(night, values[-1]))
        codes.append(f"c{night}" if night in levels else codes[-1])
    return row(values, metric="code_bytes", code=lambda night: codes[night], clock=0.0)


def of_code(nights, *rows, metric="code_bytes", **options):
    return chosen(history(nights, *rows, **options), metrics=[metric])


def test_a_single_changed_value_is_a_step_at_once():
    (step,) = steps(of_code(3, size((2, 4112), nights=3)))
    assert (SIZE, 4112, True, 1) == (step.before, step.after, step.worse, step.age)
    assert ("h200/002.json.gz", "the machine code changed") == (step.record, step.cause.words)
    (finding,) = findings(shifts([step]))
    assert ("bad", True) == (finding.gravity, "worse by 0.39 % (4,096 B -> 4,112 B)" in finding.message)


def test_values_that_change_in_every_record_are_steps_one_after_the_other():
    found = steps(of_code(6, size((2, 5000), (3, 4096), (4, 4000), nights=6)))
    assert [5000, 4096, 4000] == [step.after for step in found]
    assert [(True, True), (False, True), (False, True)] == [(step.worse, step.recovered) for step in found]


def test_the_smallest_change_that_is_asked_for_counts_from_the_last_step():
    creeping = size(*((night, SIZE + 32 * night) for night in range(1, 10)))
    found = steps(of_code(12, creeping), smallest=0.05)
    assert [(SIZE, 4320)] == [(step.before, step.after) for step in found], "7 x 32 B are the first 5 %"
    assert 9 == len(steps(of_code(12, creeping)))


def test_no_window_loses_a_step_at_its_border_or_finds_one_twice():
    changes = {night: SIZE + night % 7 + 1 for night in range(1, 1200)}
    found = steps(of_code(1200, size(*changes.items(), nights=1200)))
    assert [f"h200/{night:03d}.json.gz" for night in changes] == [step.record for step in found]


def test_another_board_or_driver_changes_no_code():
    facts = lambda night: {"device": f"GPU-{night}", "protocol": {"version": night}}  # noqa: E731
    (step,) = steps(of_code(4, size((2, 5000), nights=4), facts=facts))
    assert ("code", ()) == (step.cause.kind, step.cause.also)


def test_times_alone_are_tested_unless_the_code_is_chosen():
    both = history(40, row(series(40)), size((20, 5000), nights=40))
    assert (1, ()) == (lambda found: (found.series, found.steps))(trend(both))
    assert 1 == len(trend(chosen(both, metrics=["code_bytes"])).steps)


def compiles(values, codes=None):
    return row(values, metric="compile_seconds", code=lambda night: (codes or "c" * len(values))[night], clock=0.0)


def test_a_time_from_the_compilers_cache_is_one_measurement():
    cached = of_code(40, compiles([0.5] * 20 + [0.9] * 20, "a" * 20 + "b" * 20), metric="compile_seconds")
    (course,) = series_of(cached)
    assert [0, 20] == course.records.tolist()
    found = trend(cached)
    assert () == found.steps, "twenty records repeat each of two measurements"
    ((reason, count),) = found.aside.items()
    assert (38, True) == (count, "the compiler did not run" in reason)


def test_an_equal_time_of_other_code_is_another_measurement():
    (course,) = series_of(of_code(4, compiles([0.5] * 4, "abba"), metric="compile_seconds"))
    assert [0, 1, 3] == course.records.tolist()


def test_a_slower_compiler_that_ran_every_time_is_a_step():
    rng = random.Random(1)
    values = [float(f"{(0.5 if night < 20 else 0.6) * rng.gauss(1, 0.02):.3g}") for night in range(40)]
    (step,) = steps(of_code(40, compiles(values), metric="compile_seconds"))
    assert ("h200/020.json.gz", pytest.approx(1.2, rel=0.02)) == (step.record, step.ratio)


def test_boards_are_not_divided_out_of_what_no_board_changes():
    both = of_code(40, lambda night: {**size((20, 5000), nights=40)(night), "board": f"GPU-{night % 2}"})
    (step,) = steps(both)
    assert (SIZE, 5000) == (step.before, step.after)


def test_exact_metrics_and_host_times_are_known():
    assert ["code_bytes", "registers"] == [name for name in CODE if is_exact(name)]
    assert is_host_time("compile_seconds") and not is_exact("cold_time")
    assert ["74,624 B", "32", "1.45 s"] == [
        value_text(*both) for both in (("code_bytes", 74624), ("registers", 32.0), ("compile_seconds", 1.45))
    ]


CODED = {"sass": "1", "code_bytes": 4096, "registers": 0, "compile_seconds": 0.21}


def test_a_record_has_a_point_for_each_value_of_a_timed_case():
    timed = case_result("k", code=CODED, times={"cold_time": 1e-3})
    untimed = case_result("edge", code=CODED, status="skipped")
    record = checked(encode(record_of(timed, untimed)), "r")
    _, columns = points_in(record, "r")
    assert ["cold_time", "code_bytes", "compile_seconds"] == columns["metric"], "zero registers have no ratio"
    assert [4096, 0.21] == columns["value"][1:]
    assert 1 == len(set(columns["code"])) and set(columns["code"]) != {""}
    details = details_in(record)
    assert {3} == {len(column) for column in details.values()}
    assert [4096.0] == details["processes"][1].tolist()


def test_the_code_of_a_wrong_kernel_is_set_aside():
    wrong = case_result("k", code=CODED, times={"cold_time": 1e-3}, status="wrong", reason="y[0] is 7")
    _, columns = points_in(checked(encode(record_of(wrong)), "r"), "r")
    assert ["the case is wrong: y[0] is 7"] * 3 == columns["doubt"]


def test_the_energy_of_a_record_that_measured_it_with_the_hot_time_has_a_point():
    hot = replace(measurement("hot_time", 1e-3), energy=Energy(joules=0.4))
    _, columns = points_in(checked(encode(record_of(case_result("k", measurements=(hot,)))), "r"), "r")
    assert [("hot_time", 1e-3), ("energy", 0.4)] == [
        (metric, pytest.approx(value, rel=0.1))
        for metric, value in zip(columns["metric"], columns["value"], strict=True)
    ]


def test_a_known_metric_without_a_record_is_not_called_unknown():
    timed = history(2, row(series(2)))
    with pytest.raises(UsageError, match="no record has the metric code_bytes; the records have cold_time"):
        require_metrics(timed, ["code_bytes"])
    with pytest.raises(UsageError, match="unknown metric 'joy'"):
        require_metrics(timed, ["joy"])
