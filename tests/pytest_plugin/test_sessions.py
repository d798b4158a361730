"""Sessions: one record each, as a series; settings of the project; pytest-xdist; no GPU."""

import sys
from pathlib import Path

import pytest

from prism_bench.io.installation import why_no_gpu
from prism_bench.record import store
from tests.pytest_plugin.test_fixture import call, records

pytest_plugins = ["pytester"]
HOUSE = Path(__file__).resolve().parents[2]

TWO = """
@pytest.mark.parametrize("n", [5, 6])
def test_n(prism, n):
    prism(double, x[:n], bytes=8 * n)
    prism(twice, x[:n])
"""


def test_a_session_is_a_record_with_a_case_for_each_call(project):
    result = project(TWO)
    result.assert_outcomes(passed=2)
    (record,) = records(project)
    assert ["test_it.py::test_n[5]", "test_it.py::test_n[5] 2", "test_it.py::test_n[6]", "test_it.py::test_n[6] 2"] == [
        case.name for case in record.cases
    ]
    assert {"version": 1, "by": "pytest"} == record.protocol
    assert "record: " in result.stdout.str()


def test_records_are_a_series_that_the_commands_read(project, capsys, monkeypatch):
    from prism_bench.cli import main

    for seconds in (1e-6, 2e-6):
        project(call("reference=twice"), "--prism-records", "kept", script={"*": {"seconds": seconds}})
        for path in store.records_in(project.path / "kept"):
            if "-nocommit.json.gz" in path.name and seconds == 1e-6:  # as if it were of yesterday
                older = store.read(path)
                path.unlink()
                store.save(older.__class__(**{**vars(older), "created": "2026-01-01T00:00:00"}),
                           path.with_name("20260101T000000Z-nocommit.json.gz"))  # fmt: skip
    monkeypatch.chdir(project.path)
    for words, expected in (
        (("show", "--runs", "kept"), "test_it.py::test_one"),
        (("trend", "--runs", "kept"), "2 records"),
        (("check", "--runs", "kept"), "pytest test_it.py::test_one"),
    ):
        monkeypatch.setattr(sys, "argv", ["prism-bench", *words])
        with pytest.raises(SystemExit):
            main()
            raise SystemExit(0)
        assert expected in capsys.readouterr().out, words


def test_without_a_gpu_it_is_skipped_with_the_reason(project, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    result = project(call("at_most='5 us'"), "-rs", backend=None)
    result.assert_outcomes(skipped=1)
    assert f"prism-bench: {why_no_gpu('CuPy', 'cuda13')}" in result.stdout.str()
    assert not records(project)


@pytest.mark.parametrize("way", ["flag", "project"])
def test_it_can_be_switched_off(project, way):
    if way == "project":
        (project.path / "pyproject.toml").write_text(
            "[tool.prism-bench.pytest]\noff = true\n[tool.pytest.ini_options]\n"
        )
    result = project(call("at_most='5 us'"), *(["--prism-off"] if way == "flag" else []), "-rs")
    result.assert_outcomes(skipped=1)
    assert "prism-bench is off" in result.stdout.str()


def test_the_project_sets_backend_records_and_noise(project):
    table = "[tool.prism-bench.pytest]\nbackend = 'null'\nrecords = 'times'\nnoise = 0.5\n[tool.pytest.ini_options]\n"
    (project.path / "pyproject.toml").write_text(table)
    result = project(call("at_most='5 us'"), script={"*": {"seconds": 6e-6}}, backend=None)
    result.assert_outcomes(passed=1)
    assert 1 == len(store.records_in(project.path / "times"))


@pytest.mark.parametrize(
    ("line", "words"),
    [("nose = 1", "unknown key 'nose'; did you mean noise?"), ("noise = 7", "give a share from 0 to 1")],
)
def test_a_wrong_setting_is_named(project, line, words):
    (project.path / "pytest.ini").write_text("[pytest]\n")
    (project.path / "pyproject.toml").write_text(f"[tool.prism-bench.pytest]\n{line}\n")
    result = project(call("at_most='5 us'"))
    result.assert_outcomes(errors=1)
    assert words in result.stdout.str()


def test_a_record_that_cannot_be_written_fails_the_session(project):
    (project.path / "reports").write_text("a file")
    result = project(call("at_most='5 us'"))
    result.assert_outcomes(passed=1)
    assert "no record: cannot write" in result.stdout.str()
    assert pytest.ExitCode.TESTS_FAILED == result.ret


def test_workers_of_xdist_make_one_record(project, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(HOUSE))
    result = project(TWO, "-p", "xdist.plugin", "-n", "1")
    result.assert_outcomes(passed=2)
    (record,) = records(project)
    assert 4 == len(record.cases)
    assert "desk" == record.machine["id"]
