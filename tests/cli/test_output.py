"""What every command does with an output that is closed, full or left by its reader, and with a cache that is none."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from prism_bench.cli.output import OutputFailed, _Guarded

TOYS = Path(__file__).parent.parent / "toys"
FULL = Path("/dev/full")
WORDS = [["list", "--catalogue", TOYS], ["list", "--json", "--catalogue", TOYS], ["list", "--help"], ["--version"]]


def command(*words, **options):
    plain = [sys.executable, "-m", "prism_bench", *map(str, words)]
    return subprocess.run(plain, stderr=subprocess.PIPE, text=True, **options)


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("words", WORDS, ids=lambda words: " ".join(map(str, words[:2])))
def test_a_full_output_ends_with_2_and_one_line(words):
    with FULL.open("w") as full:
        found = command(*words, stdout=full)
    assert 2 == found.returncode
    assert "prism-bench: cannot write to standard output: No space left on device\n" == found.stderr


@pytest.mark.parametrize("words", WORDS, ids=lambda words: " ".join(map(str, words[:2])))
def test_a_closed_output_ends_with_2_and_one_line(words):
    found = command(*words, preexec_fn=lambda: os.close(1))
    assert 2 == found.returncode
    assert "prism-bench: cannot write to standard output: it is closed\n" == found.stderr


@pytest.mark.parametrize("words", WORDS, ids=lambda words: " ".join(map(str, words[:2])))
def test_a_reader_that_has_left_ends_with_2_in_silence(words):
    reading, writing = os.pipe()
    os.close(reading)
    found = command(*words, stdout=writing)
    os.close(writing)
    assert (2, "") == (found.returncode, found.stderr)


def test_a_failure_is_kept_whoever_swallowed_the_first():
    guarded = _Guarded(None)
    for attempt in (lambda: guarded.write("x"), lambda: guarded.write("")):
        with pytest.raises(OutputFailed, match="it is closed"):
            attempt()
    assert not guarded.isatty()


def test_a_name_that_the_terminal_cannot_show_is_no_failure(tmp_path):
    folder = tmp_path / "catälogue"
    ascii_only = os.environ | {"PYTHONIOENCODING": "ascii"}
    found = command("list", "--catalogue", folder, stdout=subprocess.DEVNULL, env=ascii_only)
    assert 2 == found.returncode
    assert "Traceback" not in found.stderr


@pytest.mark.parametrize(
    "words", [["compare", "", ""], ["show", ""], ["list", "--catalogue="], ["check", "--runs", ""]]
)
def test_an_empty_argument_is_refused(shell, words):
    found = shell(*words)
    assert (2, "") == (found.code, found.out)
    assert found.err.startswith("prism-bench: argument ")
    assert "is empty" in found.err
    assert 1 == found.err.count("\n")


@pytest.mark.parametrize("words", [["run"], ["verify"]])
def test_a_cache_that_cannot_be_written_is_the_machines_fault(shell, toys, tmp_path, monkeypatch, words):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "file" / "cache"))
    found = shell(*words, "--backend", "emulator", *toys)
    assert 2 == found.code
    assert "prism-bench: cannot write the cache" in found.err
    assert str(tmp_path / "file" / "cache") in found.err
    assert "failed" not in found.out and "wrong" not in found.out


def test_an_error_of_the_system_names_its_path(shell, toys, tmp_path):
    (tmp_path / "file").write_text("")
    found = shell("export", "--all", "--output", tmp_path / "file" / "x.csv", "--runs", tmp_path)
    assert 2 == found.code
    assert str(tmp_path / "file") in found.err


@pytest.mark.parametrize("command", ["run", "verify"])
def test_a_run_whose_cache_filled_up_ends_with_2(shell, toys, monkeypatch, command):
    from prism_bench import run as runs

    measured = runs.run

    def filling(*words, **options):
        record = measured(*words, **options)
        reason = "cannot write the cache /x: No space left on device; set PRISM_BENCH_CACHE"
        return replace(record, cases=(replace(record.cases[0], status="skipped", reason=reason), *record.cases[1:]))

    assert 0 == shell(command, *toys, "--backend", "null", "--filter", "triple").code
    monkeypatch.setattr(runs, "run", filling)
    monkeypatch.setattr("prism_bench.workflows.bitwise.run", filling)  # of verify
    assert 2 == shell(command, *toys, "--backend", "null", "--filter", "triple").code


@pytest.mark.parametrize(
    "words",
    [
        ("timeline", "triple", "--backend", "emulator", "--output", "{}.json"),
        ("run", "triple", "--backend", "null", "--output", "{}.json.gz"),
        ("tune", "triple", "--backend", "null", "--output", "{}.json"),
    ],
)
@pytest.mark.parametrize(
    ("place", "reason"), [("file/new", "is no folder"), ("folder", "is a folder"), ("locked/new", "cannot")]
)
def test_an_output_that_cannot_be_written_is_refused_before_the_work(shell, toys, monkeypatch, words, place, reason):
    Path("file").touch()
    for name in ("folder.json", "folder.json.gz", "locked"):
        Path(name).mkdir()
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: "locked" not in str(path) and allowed(path, mode))
    for begins in ("prism_bench.backends.open_backend", "prism_bench.catalogue.of_project"):
        monkeypatch.setattr(begins, lambda *_: pytest.fail("the command began"))
    found = shell(*(word.format(place) for word in words), *toys)
    assert (2, "", 1) == (found.code, found.out, found.err.count("\n"))
    assert f"--output {place}.json" in found.err and reason in found.err
