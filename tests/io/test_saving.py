"""A save that fails is reported and ends nothing; the next one is tried, and what is not kept in the end is said."""

import errno
import os
import signal

import pytest

from prism_bench.errors import ResultsError, UsageError
from prism_bench.io.files import INTERVAL, Due, Saver, guarded


class Disk:
    """A place for results that is full as long as `full` says so."""

    def __init__(self):
        self.full, self.held = False, []

    def write(self, value):
        if self.full:
            raise ResultsError("cannot write there: No space left on device")
        self.held.append(value)
        return f"there/{value}"


@pytest.fixture
def disk():
    return Disk()


@pytest.fixture
def told():
    return []


def test_every_version_is_written(disk, told):
    save = Saver(disk.write, told.append)
    for value in "abc":
        save(value)
    assert ("there/d", list("abcd"), []) == (save.finish("d"), disk.held, told)
    assert (0, 1) == (save.exit_code(0), save.exit_code(1))


def test_a_failure_is_reported_once_and_the_next_save_tried(disk, told):
    save = Saver(disk.write, told.append)
    save("a")
    disk.full = True
    for value in "bcd":
        save(value)
    assert ["cannot write there: No space left on device; the job goes on, and the next save is tried"] == told
    disk.full = False
    save("e")
    assert (["a", "e"], "saved again: there/e") == (disk.held, told[-1])
    assert 0 == save.exit_code(0)


@pytest.mark.parametrize(
    ("before", "words"),
    [([], "the results above are not kept"), (["a"], "not kept, but there/a has an earlier version")],
)
def test_what_is_not_kept_in_the_end_is_said_and_ends_with_2(disk, told, before, words):
    save = Saver(disk.write, told.append)
    for value in before:
        save(value)
    disk.full = True
    assert save.finish("z") is None
    assert (2, 2) == (save.exit_code(0), save.exit_code(1))
    assert words in told[-1]
    assert "No space left on device" in told[-1]


@pytest.mark.parametrize(
    "error",
    [OSError(errno.EROFS, "Read-only file system", "there"), ValueError("Out of range float values"), MemoryError()],
)
def test_no_error_of_a_save_ends_the_job(error, told):
    def write(_):
        raise error

    save = Saver(write, told.append)
    save("a")
    assert (str(error) or "MemoryError") in told[0]
    assert 2 == save.exit_code()


def test_no_signal_cuts_a_save_short(disk, told):
    def write(value):
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        return disk.write(value)

    with pytest.raises(SystemExit) as ended:
        guarded(Saver(write, told.append))("a")
    assert (2, ["a"]) == (ended.value.code, disk.held)


def test_a_save_is_due_once_in_an_interval(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("prism_bench.io.files.time.monotonic", lambda: now[0])
    monkeypatch.setenv(INTERVAL, "10")
    due, found = Due(), []
    for seconds in (0, 9, 1, 1, 9, 30):
        now[0] += seconds
        found.append(due())
    assert [False, False, True, False, True, True] == found


def test_with_an_interval_of_0_a_save_is_always_due(monkeypatch):
    monkeypatch.setenv(INTERVAL, "0")
    due = Due()
    assert due() and due()


@pytest.mark.parametrize("written", ["soon", "-1", "nan", "inf"])
def test_an_interval_is_a_number_of_seconds(monkeypatch, written):
    monkeypatch.setenv(INTERVAL, written)
    with pytest.raises(UsageError, match=f"{INTERVAL}={written}"):
        Due()
