"""The progress of a nightly run: soon at first, then once a minute; a line for each part on a terminal."""

import io
import re

import pytest
from rich.console import Console

from prism_bench.cli import options
from prism_bench.cli.measuring import SECONDS, line_seconds
from prism_bench.errors import UsageError
from prism_bench.extensions.ci.nightly import PartState, run


def state(seconds, number=1, line="process 1, 3 of 9: softmax[rows=32,cols=1000]", code=None):
    return PartState(number, 2, seconds, line, code)


def printed_after(capsys, times):
    """Return the seconds at which lines were printed, of states at these times."""
    with run.parts_progress() as show:
        for seconds in times:
            show([state(seconds), state(seconds, 2, "", None)])
    lines = capsys.readouterr().err.splitlines()
    assert all(": part 2 of 2: starting" in line for line in lines[1::2])
    return [int(line.split()[1]) for line in lines[::2]]


def test_a_log_gets_lines_within_seconds_and_then_now_and_then(capsys):
    assert [2, 10, 30, 60, 120] == printed_after(capsys, range(130))


def test_the_interval_can_be_set(capsys, monkeypatch):
    monkeypatch.setenv(SECONDS, "5")
    assert [2, 5, 10, 15] == printed_after(capsys, range(17))


@pytest.mark.parametrize("value", ["soon", "-1", "inf", "nan"])
def test_an_interval_that_is_none_is_refused(monkeypatch, value):
    monkeypatch.setenv(SECONDS, value)
    with pytest.raises(UsageError, match=f"{SECONDS}={value}: it is a number of seconds"):
        line_seconds()


def test_a_terminal_of_80_columns_shows_a_line_for_each_part(monkeypatch):
    text = io.StringIO()
    monkeypatch.setattr(options, "err", lambda: Console(file=text, width=80, force_terminal=True, color_system=None))
    long = "process 1, 3 of 9, about 20 min left: fused_matmul_bias_activation[m=4096,n=4096,k=4096]"
    with run.parts_progress() as show:
        show([state(65, line=long), state(65, 2, code=2)])
    first, second = [re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]", "", line) for line in text.getvalue().splitlines()][:2]
    assert re.match(r"part 1 of 2 +65 s +process 1, 3 of 9, about 20 min left: fused", first), first
    assert len(first) <= 80 and first.rstrip().endswith("…")
    assert re.match(r"part 2 of 2 +65 s +ended with 2", second), second
