"""Compiling ahead: each library once, and whatever fails is left to the case that meets it."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from prism_bench.catalogue import discover
from prism_bench.io.workers import environment
from prism_bench.run import precompile
from prism_bench.spec.case import Case, Device

TOYS = Path(__file__).parent.parent / "toys"


@pytest.fixture
def compiled(monkeypatch):
    """The jobs that the compiler was given."""
    jobs = []
    monkeypatch.setattr(precompile, "build", jobs.append)
    return jobs


def test_cases_that_launch_the_same_share_a_library(compiled):
    cases = discover(TOYS).cases(["double"])
    made = precompile.compile_ahead(cases, Device(compute_capability=80))
    assert (made, ["doubled", "doubled_by_adding"]) == (
        len(compiled), [str(entry) for job in compiled for entry in job.instances],
    )  # fmt: skip
    assert {"80"} == {job.architecture for job in compiled}


def test_a_launch_that_raises_is_left_to_its_case(compiled):
    def broken():
        raise ZeroDivisionError

    case = discover(TOYS).cases(["triple"])[0]
    assert 0 == precompile.compile_ahead([Case(replace(case.spec, launch=broken), case.workload, "S0")], Device())
    assert not compiled


def test_a_compiler_that_is_killed_leaves_the_rest_to_who_launches_it(monkeypatch):
    def killed(job):
        raise BrokenProcessPool

    monkeypatch.setattr(precompile, "_compile", killed)
    assert 2 == precompile.compile_ahead(discover(TOYS).cases(["double"]), Device(compute_capability=80))


def test_a_process_that_ends_breaks_the_pool_and_no_thread_of_it():
    with pytest.raises(BrokenProcessPool):
        list(precompile.on_all_cores(os._exit, [1] * 9))  # pytest reports what a thread raises


INTERRUPTED = """
import time
from prism_bench.io.files import guarded
from prism_bench.run import precompile

@guarded
def main():
    print("busy", flush=True)
    list(precompile.on_all_cores(time.sleep, [600.0] * 9))

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("send", [os.kill, os.killpg], ids=["process", "group"])
@pytest.mark.parametrize("seconds", [0.1, 1.0])
def test_a_signal_ends_all_processes_without_a_traceback(send, seconds, tmp_path):
    (tmp_path / "parent.py").write_text(INTERRUPTED)
    command = [sys.executable, "parent.py"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=tmp_path, env=environment(), start_new_session=True, **pipes) as parent:
        try:
            assert "busy" in parent.stdout.readline()
            time.sleep(seconds)  # while the processes start, and while they work
            send(parent.pid, signal.SIGTERM)
            _, words = parent.communicate(timeout=60)  # which also waits for the end of every process that has the pipe
        finally:
            with suppress(ProcessLookupError):
                os.killpg(parent.pid, signal.SIGKILL)
    assert (2, "prism-bench: interrupted by SIGTERM") == (parent.returncode, words.strip())
