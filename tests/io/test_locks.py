"""Locks on files: taken once, given back, and on a system without fcntl too."""

import fcntl
import os
import sys
from types import SimpleNamespace

import pytest

from prism_bench.io import files
from prism_bench.io.files import ENDING, remove_stale, write_atomically


def _windows_locking(descriptor, kind, count):
    """Do what `msvcrt.locking` does: a lock of another opening of the file is a PermissionError."""
    assert (7, 1) == (kind, count)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise PermissionError(*error.args) from error


@pytest.fixture(params=["posix", "windows"])
def system(request, monkeypatch):
    if request.param == "windows":
        monkeypatch.setattr(files, "fcntl", None)
        monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace(locking=_windows_locking, LK_NBLCK=7))
    return request.param


def test_a_lock_is_taken_once_and_given_back(system, tmp_path):
    with (tmp_path / "file").open("w") as one, (tmp_path / "file").open("w") as other:
        files.lock(one.fileno())
        with pytest.raises(BlockingIOError):
            files.lock_now(other.fileno())
        one.close()
        files.lock_now(other.fileno())


def test_a_folder_has_a_lock(system, tmp_path):
    one, other = files.opened_folder(tmp_path), files.opened_folder(tmp_path)
    files.lock_now(one)
    with pytest.raises(BlockingIOError):
        files.lock_now(other)
    os.close(one)
    files.lock_now(other)
    os.close(other)
    assert (["lock"] if system == "windows" else []) == [path.name.strip(".") for path in tmp_path.iterdir()]


def test_a_lock_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace(locking=_windows_locking, LK_NBLCK=7))
    with (tmp_path / "file").open("w") as one, (tmp_path / "file").open("w") as other:
        files.lock_now(one.fileno())
        monkeypatch.setattr(files.time, "sleep", lambda seconds: one.close())
        files.lock(other.fileno())
        assert one.closed


def test_files_are_closed_before_they_are_moved_where_the_system_asks_for_it(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_CLOSED", True)
    old, young = (tmp_path / f".{name}{ENDING}" for name in ("old", "young"))
    for path in (old, young):
        path.write_text("of a writer that was killed")
    os.utime(old, (0, 0))
    remove_stale(tmp_path)
    write_atomically(tmp_path / "record", b"x")
    assert [young.name, "record"] == sorted(path.name for path in tmp_path.iterdir())
    assert b"x" == (tmp_path / "record").read_bytes()
