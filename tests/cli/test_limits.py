"""Kernels in a command's own process: one that never ends ends the command, which names it."""

import subprocess
import sys

import pytest

from prism_bench.cli.options import limited

HANGS = """
import time
from prism_bench.cli.options import limited
with limited("hang[n=1000]", 1):
    time.sleep(600)
"""


def test_what_takes_too_long_ends_the_process_and_is_named():
    ended = subprocess.run([sys.executable, "-c", HANGS], capture_output=True, text=True, timeout=60)
    assert (2, "prism-bench: timed out: hang[n=1000]: no answer within 1 s\n") == (ended.returncode, ended.stderr)


def test_what_ends_in_time_or_fails_is_left_alone():
    with limited("quick", 60):
        pass
    with pytest.raises(KeyError), limited("fails", 60):
        raise KeyError
