"""Progress of the Python API: a bar in a notebook and on a terminal, nothing elsewhere, and nothing between steps."""

import io
import sys
import threading
from types import ModuleType, SimpleNamespace

import pytest

from prism_bench.api.callables import SWITCH, alternated, shown_progress
from prism_bench.record.measurement import Measurement


class Terminal(io.StringIO):
    """A terminal that keeps what it is sent."""

    def isatty(self):
        return True


class Notebook:
    """What IPython offers inside a kernel: `display`, which returns a handle that updates in place."""

    def __init__(self, monkeypatch, in_kernel=True):
        self.shown, self.handles = [], 0
        shell = SimpleNamespace(kernel=object()) if in_kernel else SimpleNamespace()
        ipython, display = ModuleType("IPython"), ModuleType("IPython.display")
        ipython.get_ipython, display.display = lambda: shell, self.display
        monkeypatch.setitem(sys.modules, "IPython", ipython)
        monkeypatch.setitem(sys.modules, "IPython.display", display)

    def display(self, bundle, raw, display_id):
        assert (True, True) == (raw, display_id)
        self.handles += 1
        self.shown.append(bundle["text/html"])
        return SimpleNamespace(update=lambda bundle, raw: self.shown.append(bundle["text/html"]))


@pytest.fixture(autouse=True)
def no_notebook(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", None)
    monkeypatch.delenv(SWITCH, raising=False)
    monkeypatch.setenv("TERM", "xterm")


def three_steps():
    with shown_progress("compare", 3) as step:
        for number in range(3):
            step(f"round {number}")


def test_a_pipe_gets_nothing(monkeypatch, capfd):
    three_steps()
    assert ("", "") == capfd.readouterr()


def test_a_terminal_gets_a_bar_that_goes(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    three_steps()
    text = terminal.getvalue()
    assert all(words in text for words in ("compare", "0/3", "1/3", "2/3", "round 2"))
    assert text.endswith("\x1b[2K")  # the line is erased at the end


def test_brackets_of_a_name_are_printed_as_they_are(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with shown_progress("compare", 1) as step:
        step("[bold]round[/bold] :smile:")
    assert "[bold]round[/bold] :smile:" in terminal.getvalue()


def test_no_thread_draws_while_something_is_timed(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    before = threading.active_count()
    with shown_progress("compare", 3) as step:
        step("round 0")
        assert before == threading.active_count()


def test_a_notebook_gets_one_bar_that_is_updated_and_goes(monkeypatch):
    notebook = Notebook(monkeypatch)
    three_steps()
    assert 1 == notebook.handles
    assert ['value="0"', 'value="1"', 'value="2"'] == [html.split()[2] for html in notebook.shown[:3]]
    assert "" == notebook.shown[3]


def test_a_name_is_no_markup(monkeypatch):
    notebook = Notebook(monkeypatch)
    with shown_progress("compare", 1) as step:
        step("<script>")
    assert "&lt;script&gt;" in notebook.shown[0]


def test_the_bar_goes_when_the_call_fails(monkeypatch):
    notebook = Notebook(monkeypatch)
    with pytest.raises(ValueError, match="no luck"), shown_progress("compare", 2) as step:
        step("round 1")
        raise ValueError("no luck")
    assert "" == notebook.shown[-1]


def test_ipython_in_a_terminal_is_no_notebook(monkeypatch, capfd):
    notebook = Notebook(monkeypatch, in_kernel=False)
    three_steps()
    assert ([], ("", "")) == (notebook.shown, capfd.readouterr())


def test_it_can_be_turned_off(monkeypatch):
    notebook = Notebook(monkeypatch)
    monkeypatch.setenv(SWITCH, "0")
    three_steps()
    assert [] == notebook.shown


def test_a_call_that_takes_no_step_draws_nothing(monkeypatch):
    notebook = Notebook(monkeypatch)
    with shown_progress("compare", 2):
        pass
    assert [] == notebook.shown


def test_compare_takes_a_step_for_each_measurement():
    steps = []
    side = lambda: Measurement("cold_time", "a", ((1e-6,),))  # noqa: E731
    alternated(side, side, 3, steps.append)
    assert [f"round {number} of 3" for number in (1, 1, 2, 2, 3, 3)] == steps
