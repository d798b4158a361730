"""`prism-bench ledger`: captures of nsys from files, and what it says where it cannot work."""

import sqlite3

import pytest


@pytest.fixture
def capture(tmp_path):
    """A small export of nsys."""
    path = tmp_path / "capture.sqlite"
    with sqlite3.connect(path) as database:
        database.executescript("""
            CREATE TABLE META_DATA_EXPORT (name, value);
            INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.25.0');
            CREATE TABLE StringIds (id, value);
            INSERT INTO StringIds VALUES (1, 'add'), (2, 'cuLaunchKernel');
            CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, correlationId, globalPid, shortName);
            INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100, 200, 0, 1, 16777216, 1), (300, 400, 0, 2, 16777216, 1);
            CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId, nameId);
            INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (10, 20, 16777217, 1, 2), (210, 290, 16777217, 2, 2);
        """)
    database.close()
    return path


def test_a_capture_is_accounted_for(shell, capture):
    found = shell("ledger", "--from", capture)
    assert 0 == found.code
    assert "launch ledger of" in found.out and "by nsys 3.25.0" in found.out
    assert "67 %" in found.out


def test_json_has_the_whole_and_who_is_to_blame(shell, capture):
    total = shell("ledger", "--from", capture, "--json").json["total"]
    assert (2, 2) == (total["kernels"], total["launch_calls"])
    assert {"launch": {"count": 1, "seconds": pytest.approx(1e-7)}} == total["gaps"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "name kernels or cases"),
        (("--script",), "CUPTI watches Python scripts"),
        (("--script", "a.out"), "CUPTI watches Python scripts"),
        (("--script", "none.py"), "none.py: no such script"),
        (("--from", "none.sqlite"), "none.sqlite: no such export"),
        (("--from", "one.qdstrm"), "QdstrmImporter"),
    ],
)
def test_what_cannot_be_read_ends_with_2(shell, words, complaint):
    found = shell("ledger", *words)
    assert 2 == found.code
    assert complaint in found.err


def test_without_cupti_it_says_what_works(shell, toys, monkeypatch):
    found = shell("ledger", "double", *toys, "--backend", "null")
    assert 2 == found.code
    assert "CUPTI" in found.err or "cupti" in found.err
    assert "Traceback" not in found.err


def test_words_of_a_capture_are_no_markup(shell, tmp_path):
    from lab.reader_subjects import nsys_export

    path = nsys_export(tmp_path).rename(tmp_path / "odd [bold].sqlite")
    found = shell("ledger", "--from", path)
    assert 0 == found.code
    assert "odd [bold].sqlite" in found.out


def test_executions_of_graphs_have_a_column_where_there_are_any(shell, tmp_path, capture):
    from lab.reader_subjects import nsys_export

    export = nsys_export(tmp_path)
    assert 1 == shell("ledger", "--from", export, "--json").json["total"]["graphs"]
    assert "┃ graphs ┃" in shell("ledger", "--from", export).out
    assert "┃ graphs ┃" not in shell("ledger", "--from", capture).out
