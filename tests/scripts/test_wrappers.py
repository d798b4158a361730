"""Every Python script that is a wrapper of a module finds it, and the names that the module imports."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
WRAPPERS = sorted(
    path.name
    for path in SCRIPTS.iterdir()
    if path.is_file() and not path.suffix and path.read_text().startswith("#!/usr/bin/env python3")
    if path.name != "cuda_extra"  # which `scripts/install` runs before anything is installed
)


def test_all_are_found():
    assert {"judge_noise", "monitor_proof", "persistent", "crosscheck", "fuzz", "timed_launch_cost"} <= set(WRAPPERS)


@pytest.mark.parametrize("name", WRAPPERS)
def test_a_wrapper_is_short_and_prints_its_options(name):
    done = subprocess.run([sys.executable, SCRIPTS / name, "--help"], capture_output=True, text=True)
    assert 0 == done.returncode, done.stderr
    assert done.stdout.startswith(f"usage: {name} ")
    assert len((SCRIPTS / name).read_text().splitlines()) <= 25
