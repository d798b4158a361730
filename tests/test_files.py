"""Files are written whole or not at all."""

import os

import pytest

from prism_bench.files import write_atomically


def test_missing_folders_are_made(tmp_path):
    write_atomically(tmp_path / "a" / "b" / "file", b"new")
    assert b"new" == (tmp_path / "a" / "b" / "file").read_bytes()


def test_an_old_file_is_replaced(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old and long")
    write_atomically(path, b"new")
    assert b"new" == path.read_bytes()
    assert ["file"] == [entry.name for entry in tmp_path.iterdir()]


def test_a_failure_leaves_the_old_file_and_nothing_beside_it(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def full(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, b"new")
    assert b"old" == path.read_bytes()
    assert ["file"] == [entry.name for entry in tmp_path.iterdir()]


def test_others_may_read_the_file(tmp_path):
    write_atomically(tmp_path / "file", b"new")
    assert 0o644 == (tmp_path / "file").stat().st_mode & 0o777
