"""The first signal ends a command in order, the others change nothing; what is held is never cut short."""

import os
import signal
import subprocess
import sys
import tempfile
import time

import pytest

from prism_bench.io import files
from prism_bench.io.files import allowed, guarded, held, temporary_folder
from prism_bench.io.workers import environment

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def send(number=signal.SIGINT):
    os.kill(os.getpid(), number)


@pytest.fixture(autouse=True)
def usual_handlers():
    """Ctrl-C may be ignored where the tests were started in the background, a hangup where nohup started them."""
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    assert usual == {number: signal.getsignal(number) for number in usual}
    for number, handler in before.items():
        signal.signal(number, handler)


def code_of(command):
    with pytest.raises(SystemExit) as ended:
        guarded(command)()
    return ended.value.code


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_the_command_with_2_and_one_line(number, capfd):
    assert 2 == code_of(lambda: send(number))
    assert f"prism-bench: interrupted by {number.name}\n" == capfd.readouterr().err


def test_a_signal_while_a_class_is_made_is_a_signal(capfd):
    """Imports make classes, and Python wraps what is raised there in an error of its own until 3.12."""

    class Field:
        def __set_name__(self, owner, name):
            send(signal.SIGTERM)

    assert 2 == code_of(lambda: type("Limits", (), {"floors": Field()}))
    assert "prism-bench: interrupted by SIGTERM\n" == capfd.readouterr().err


def test_a_polite_end_interrupts_once():
    """timeout(1) tells the process and its group: the second signal must not cut the keeping of the record short."""
    kept = []

    def command():
        with pytest.raises(KeyboardInterrupt):
            send(signal.SIGTERM)
        for number in SIGNALS:
            send(number)
        kept.append("record")

    guarded(command)()
    assert ["record"] == kept


@pytest.mark.parametrize(("code", "told"), [(0, 0), (1, 2), (2, 2), (3, 2), (130, 2)])
def test_an_interrupted_command_that_ends_by_itself_ends_with_2_unless_all_is_well(code, told):
    def command():
        with pytest.raises(KeyboardInterrupt):
            send()
        raise SystemExit(code)

    assert told == code_of(command)


def test_what_is_held_comes_to_its_end_and_is_interrupted_then():
    steps = []

    def command():
        with held():
            send()
            send()
            steps.append("saved")
        steps.append("after")

    assert 2 == code_of(command)
    assert ["saved"] == steps


def test_what_is_allowed_within_is_interrupted_at_once_and_the_rest_is_held():
    steps = []

    def command():
        with held():
            try:
                with allowed():
                    send()
                    steps.append("not reached")
            except KeyboardInterrupt:
                steps.append("interrupted")
            send(signal.SIGTERM)
            steps.append("saved")
        raise SystemExit(1)

    assert 2 == code_of(command)
    assert ["interrupted", "saved"] == steps


def test_a_signal_that_came_while_held_interrupts_what_is_allowed_next():
    steps = []

    def command():
        with held():
            send()
            with allowed():
                steps.append("not reached")

    assert 2 == code_of(command)
    assert [] == steps


def test_an_error_of_what_is_held_is_not_hidden_by_the_signal():
    def command():
        with held():
            send()
            raise ValueError("the disk")

    with pytest.raises(ValueError, match="the disk"):
        guarded(command)()


def test_a_signal_that_python_drops_interrupts_all_the_same(capfd):
    """As in a callback of the garbage collector, where Dask has one: nothing that is raised there arrives."""

    class Finalized:
        def __del__(self):
            send(signal.SIGTERM)

    def command():
        finalized = Finalized()
        del finalized
        time.sleep(20.0)

    usual = sys.unraisablehook
    assert 2 == code_of(command)
    assert "prism-bench: interrupted by SIGTERM\n" == capfd.readouterr().err
    assert usual is sys.unraisablehook


def test_a_signal_that_is_ignored_stays_so():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        guarded(lambda: send(signal.SIGHUP))()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_guard_in_a_guard_is_the_same_one():
    @guarded
    def inner():
        with pytest.raises(KeyboardInterrupt):
            send()

    @guarded
    def outer():
        inner()
        send()

    outer()


def test_without_a_guard_signals_are_the_programs_own():
    with pytest.raises(KeyboardInterrupt), held():
        send()
    files.check()


AT_IMPORT = """
import os, signal, sys, types
class Finder:
    def find_spec(self, name, *_):
        if name == "prism_bench.cli":
            os.kill(os.getpid(), signal.NAME)
sys.meta_path.insert(0, Finder())
from prism_bench.__main__ import main
main()
"""
AT_END = """
import atexit, os, signal, sys
sys.argv = ["prism-bench", "--version"]
for number in (signal.SIGINT, signal.SIGTERM):
    atexit.register(os.kill, os.getpid(), number)
from prism_bench.__main__ import main
main()
"""


def usual():
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def ran(program):
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60, preexec_fn=usual)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_while_the_command_line_is_imported_ends_without_a_traceback(number):
    found = ran(AT_IMPORT.replace("NAME", number.name))
    assert (2, f"prism-bench: interrupted by {number.name}\n") == (found.returncode, found.stderr)


def test_a_signal_while_the_interpreter_ends_changes_nothing():
    found = ran(AT_END)
    assert (0, "") == (found.returncode, found.stderr)
    assert found.stdout.startswith("prism-bench ")


def test_signals_until_the_process_is_gone_change_nothing():
    """Python gives up its handlers before it has ended: what comes then must not kill it."""
    program = "import sys; sys.argv[1:] = ['--version']; from prism_bench.__main__ import main; import pandas; main()"
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, preexec_fn=usual, bufsize=0) as process:
        assert process.stdout.readline().startswith(b"prism-bench ")
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
    assert process.returncode in (0, 2)


@pytest.mark.parametrize("words", [("store", "merge", "a.json.gz", "b.json.gz"), ("show", "a.json.gz"), ("trend",)])
def test_a_command_that_only_reads_ends_without_a_traceback_too(tmp_path, words):
    program = f"""
import os, signal, sys
from prism_bench.record import store
from prism_bench.record.store import records
interrupt = lambda *_, **__: os.kill(os.getpid(), signal.SIGINT)
store.read = store.read_history = records.read = interrupt
sys.argv = ["prism-bench", *{words!r}]
from prism_bench.__main__ import main
main()
"""
    found = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60,
        preexec_fn=usual,
    )  # fmt: skip
    assert (2, "prism-bench: interrupted by SIGINT\n") == (found.returncode, found.stderr)


def test_a_signal_while_a_folder_is_made_leaves_none(tmp_path, monkeypatch):
    make = tempfile.mkdtemp

    def interrupted(*words, **named):
        made = make(*words, **named)
        send(signal.SIGTERM)
        return made

    monkeypatch.setattr(tempfile, "mkdtemp", interrupted)

    @guarded
    def command():
        with temporary_folder("some-", tmp_path):
            raise AssertionError("the signal waits for no longer than the making")

    with pytest.raises(SystemExit) as ended:
        command()
    assert (2, []) == (ended.value.code, list(tmp_path.iterdir()))
