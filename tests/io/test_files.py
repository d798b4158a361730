"""Files are written whole or not at all; JSON of a schema is read as what it says it is, or refused."""

import os

import pytest

from prism_bench.errors import ResultsError
from prism_bench.io.documents import Schema, four_digits
from prism_bench.io.files import write_atomically

NOTES = Schema("notes", 2, "prism-bench note")


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


def test_json_of_a_schema_is_read_as_it_was_written(tmp_path):
    path = NOTES.write(tmp_path / "a" / "notes.json", {"of": [1, 2.5, None]})
    assert {"schema": 2, "of": [1, 2.5, None]} == NOTES.read(path)
    assert None is NOTES.read(tmp_path / "none.json")


@pytest.mark.parametrize(
    "text, complaint",
    [
        ("", "not readable as notes .*; 'prism-bench note' makes one"),
        ("[]", "schema is None, not 2; 'prism-bench note' makes it anew"),
        ('{"schema": 1}', "schema is 1, not 2"),
    ],
)
def test_json_of_something_else_is_refused_by_name(tmp_path, text, complaint):
    path = tmp_path / "notes.json"
    path.write_text(text)
    with pytest.raises(ResultsError, match=f"notes.json: {complaint}"):
        NOTES.read(path)


def test_what_json_cannot_say_is_not_written(tmp_path):
    with pytest.raises(ResultsError, match="cannot write .*notes.json as notes: .*"):
        NOTES.write(tmp_path / "notes.json", {"of": float("nan")})
    assert [] == list(tmp_path.iterdir())


def test_four_digits_of_every_float_are_enough():
    assert {"a": [1.235, 7], "b": "x", "c": 123456} == four_digits({"a": (1.23456, 7), "b": "x", "c": 123456})
