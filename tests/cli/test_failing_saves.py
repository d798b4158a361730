"""A disk that takes nothing: every long job goes on, prints what it found, reports that it is not kept, ends with 2."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from prism_bench.io import files
from prism_bench.io.files import INTERVAL
from prism_bench.io.workers import environment
from tests.cli.conftest import TOYS

TUNABLE = TOYS.parent / "tunable"
NULL = ("--backend", "null")
COMMANDS = {
    "run": (("run", *NULL, "--processes", "1", "--catalogue", TOYS, "--runs", "kept"), "triple"),
    "compare": (
        ("compare", "double", "double:by_adding", *NULL, "--processes", "1", "--catalogue", TOYS, "--records", "kept"),
        "double",
    ),
    "noise": (
        ("compare", "--itself", "triple", *NULL, "--processes", "2", "--catalogue", TOYS, "--noise", "kept"), "floor",
    ),
    "tune": (("tune", "tripled", *NULL, "--processes", "1", "--catalogue", TUNABLE), "tripled"),
}  # fmt: skip


@pytest.fixture
def disk(monkeypatch, tmp_path):
    """A disk that is full below `kept` until `room` is called; it counts how often it was asked."""

    class Disk:
        full, asked = True, 0

        def mkstemp(self, dir, **more):
            below = (tmp_path / "kept") in [Path(dir).resolve(), *Path(dir).resolve().parents]
            self.asked += below
            if below and self.full:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(dir))
            return really(dir=dir, **more)

    really, disk = files.tempfile.mkstemp, Disk()
    monkeypatch.setattr(files.tempfile, "mkstemp", disk.mkstemp)
    monkeypatch.setenv(INTERVAL, "0")
    return disk


@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_costs_what_is_kept_and_nothing_else(shell, disk, command):
    words, shown = COMMANDS[command]
    Path("prism-bench.toml").write_text('storage = "kept"\n')  # where tune keeps choices
    found = shell(*words)
    assert 2 == found.code, found.err
    assert shown in found.out
    assert "No space left on device; the results above are not kept" in found.err
    assert "Traceback" not in found.err
    assert disk.asked


def test_a_run_is_saved_where_the_disk_has_room_again(shell, disk, monkeypatch):
    module = sys.modules["prism_bench.record.store.records"]
    really = module.packed

    def packed(record, path):
        disk.full = disk.asked < 2
        return really(record, path)

    monkeypatch.setattr(module, "packed", packed)
    found = shell(*COMMANDS["run"][0])
    assert 0 == found.code, found.err
    assert 1 == found.err.count("No space left on device; the job goes on")
    assert "prism-bench: saved again: kept/" in found.err
    assert 1 == len(list(Path("kept").rglob("*.json.gz")))


def test_every_task_of_the_run_is_done_though_no_save_succeeds(shell, disk):
    saved = shell(*COMMANDS["run"][0], "--json").json
    disk.full = False
    whole = shell(*COMMANDS["run"][0], "--json").json
    assert [case["name"] for case in whole["cases"]] == [case["name"] for case in saved["cases"]]


@pytest.fixture
def full(tmp_path):
    """A file system of its own without a free byte."""
    folder = tmp_path / "full"
    folder.mkdir()
    command = [shutil.which("mount") or "false", "-t", "tmpfs", "-o", "size=16k", "tmpfs", folder]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        with (folder / "filler").open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
            while True:
                file.write(b"x" * 1024)
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def test_a_disk_that_is_really_full(full):
    command = [sys.executable, "-m", "prism_bench", *map(str, COMMANDS["run"][0][:-1]), str(full)]
    done = subprocess.run(command, env={**environment(), INTERVAL: "0"}, capture_output=True, text=True, timeout=300)
    assert (2, True) == (done.returncode, "triple" in done.stdout), done.stderr
    assert 1 == done.stderr.count("No space left on device; the job goes on")
    assert "No space left on device; the results above are not kept" in done.stderr
    assert ["filler"] == [path.name for path in full.rglob("*") if path.is_file()]
