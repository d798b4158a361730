"""`scripts/memory_tables` with a Python that is played: what it runs, and what a polite end leaves."""

import os
import signal
import subprocess
import time
from pathlib import Path

HOUSE = Path(__file__).resolve().parents[2]
PLAYED = """#!/bin/sh
echo "$@"
[ "$4" = --json ] && [ -n "$SLOW" ] || exit 0
trap 'echo kept; exit 0' TERM
touch "$SLOW"
sleep 60 & wait
"""


def started(tmp_path, **environment):
    python = tmp_path / "python"
    python.write_text(PLAYED)
    python.chmod(0o755)
    command = [HOUSE / "scripts" / "memory_tables", tmp_path / "tables", "100"]
    return subprocess.Popen(
        command, env={**os.environ, "PYTHON": str(python), **environment}, stdout=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip


def endings(tmp_path):
    return [line.split()[0] for line in (tmp_path / "tables" / "endings").read_text().splitlines()]


def test_tables_come_first_and_tests_last(tmp_path):
    with started(tmp_path) as running:
        running.communicate(timeout=60)
    assert ["pipelines.json", "pipelines.txt", "memory.json", "memory.txt", "tests.txt"] == endings(tmp_path)
    assert "--time-limit 40" in (tmp_path / "tables" / "pipelines.json").read_text()


def test_a_polite_end_waits_for_what_is_under_way_and_begins_nothing_more(tmp_path):
    """As timeout(1) does it: to the whole group."""
    slow = tmp_path / "slow"
    with started(tmp_path, SLOW=str(slow)) as running:
        limit = time.monotonic() + 30
        while not slow.exists() and time.monotonic() < limit:
            time.sleep(0.02)
        os.killpg(running.pid, signal.SIGTERM)
        running.communicate(timeout=60)
    assert ["pipelines.json"] == endings(tmp_path)
    assert (tmp_path / "tables" / "pipelines.json").read_text().endswith("kept\n")
