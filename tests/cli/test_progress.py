"""How far a job is, told where nobody looks at a bar."""

import pytest

from prism_bench.cli import measuring
from prism_bench.run import Forecast, Progress
from prism_bench.run.forecast import ForecastStage


@pytest.mark.parametrize(("seconds", "lines"), [(0.0, 2), (3600.0, 0)])
def test_a_log_gets_a_line_now_and_then(monkeypatch, capsys, seconds, lines):
    monkeypatch.setattr(measuring, "LINE_SECONDS", seconds)
    with measuring.progress_bar() as report:
        for done in range(2):
            report(Progress(1, done, 7, "softmax[rows=32,cols=1000]@block=128"))
    said = capsys.readouterr()
    assert ("", lines) == (said.out, len(said.err.splitlines()))
    assert all("process 2, " in line and line.endswith("softmax[rows=32,cols=1000]@block=128")
               for line in said.err.splitlines())  # fmt: skip


def test_with_a_forecast_a_line_says_how_much_is_left(monkeypatch, capsys):
    monkeypatch.setattr(measuring, "LINE_SECONDS", 0.0)
    with measuring.progress_bar(Forecast((ForecastStage(4, 3600.0),), "a record")) as report:
        report(Progress(0, 0, 4, "triple[n=1000]"))
    assert "process 1, 0 of 4, about 1 h 0 min left: triple[n=1000]" in capsys.readouterr().err
