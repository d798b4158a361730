"""A writer that is killed leaves a temporary file, which a later writer removes; that of a living one stays."""

import os
import subprocess
import sys

import pytest

from prism_bench.io import files
from prism_bench.io.files import ENDING, create_file, create_first, remove_stale, write_atomically, written_beside
from prism_bench.io.workers import environment

WRITER = """
import os, signal, sys
from pathlib import Path
from prism_bench.io import files
HOW
"""
KILLED = "os.replace = os.link = lambda *_: os.kill(os.getpid(), signal.SIGKILL)"
FILES = {
    "write_atomically": "files.write_atomically(Path('record'), b'x' * 99)",
    "create_file": "files.create_file(Path('record'), b'x' * 99)",
    "create_first": "files.create_first([Path('record')], b'x' * 99)",
}


@pytest.fixture(autouse=True)
def another_process(monkeypatch):
    """What a process cleaned once it does not look at again."""
    monkeypatch.setattr(files, "_cleaned", set())


def left(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("how", FILES)
def test_the_next_writer_removes_what_a_killed_one_left(tmp_path, how):
    program = WRITER.replace("HOW", f"{KILLED}\n{FILES[how]}")
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment(), timeout=60)
    (name,) = left(tmp_path)
    assert name.startswith(".record.") and name.endswith(ENDING)
    write_atomically(tmp_path / "another", b"y")
    assert ["another"] == left(tmp_path)


@pytest.mark.parametrize("write", [write_atomically, create_file, lambda path, data: create_first([path], data)])
def test_what_a_living_writer_writes_stays(tmp_path, write):
    with written_beside(tmp_path / "record", b"x") as temporary:
        write(tmp_path / "another", b"y")
        remove_stale(tmp_path)
        assert ["another", temporary.name] == sorted(left(tmp_path), key=lambda name: name.startswith("."))
        os.replace(temporary, tmp_path / "record")
    assert ["another", "record"] == left(tmp_path)


def test_what_is_not_ours_stays(tmp_path):
    names = [".hidden", "record.json.gz", f"plain{ENDING}"]
    for name in names:
        (tmp_path / name).write_text("somebody's")
    write_atomically(tmp_path / "record", b"y")
    assert sorted([*names, "record"]) == left(tmp_path)


def test_a_file_that_was_taken_for_stale_before_it_was_locked_is_made_again(tmp_path, monkeypatch):
    lock, seen = files.lock_now, []

    def late(file):
        if not seen:
            seen.extend(tmp_path.glob(f".*{ENDING}"))
            seen[0].unlink()
        lock(file)

    monkeypatch.setattr(files, "lock_now", late)
    write_atomically(tmp_path / "record", b"y")
    assert (1, ["record"]) == (len(seen), left(tmp_path))
