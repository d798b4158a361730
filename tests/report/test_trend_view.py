"""A trend in the terminal: what moved first, then the ground, then what was set aside."""

import io

from rich.console import Console

from prism_bench.analysis.trend import trend
from prism_bench.report.terminal.gate import trend_json, trend_view
from tests.analysis.trend.histories import SOFTWARE, history, row, series


def lines(past, **options):
    console = Console(width=400, file=io.StringIO())
    console.print(trend_view(trend(past), past, **options), soft_wrap=True)
    return console.file.getvalue().splitlines()


def test_a_still_history_says_so():
    assert ["no step in 1 series, 30 records of 1 machine"] == lines(history(30, row(series(30))))


def test_steps_come_first_then_breakpoints_then_what_was_set_aside():
    moved = row(series(30, steps={20: 1.2}))
    doubted = row(series(30), case="d[n=1]", doubt=lambda night: "busy" if night % 2 else "")
    past = history(30, moved, doubted, facts=lambda night: {"software": {**SOFTWARE, "driver": str(night // 20)}})
    told = lines(past)
    assert "1 step in 2 series, 30 records of 1 machine" == told[0]
    assert ["step", "breakpoint", "set aside"] == [line.partition(":")[0] for line in told[1:]]
    assert "set aside: 15 measurements: busy" == told[-1]


def test_many_reasons_are_cut_short():
    doubted = row(series(30), doubt=lambda night: f"reason {night}")
    told = lines(history(30, doubted))
    assert (1 + 8 + 1, "set aside: 22 more, see --json") == (len(told), told[-1])


def test_programs_get_every_reason():
    past = history(30, row(series(30), doubt=lambda night: f"reason {night}"))
    assert 30 == len(trend_json(trend(past), past)["set_aside"])
