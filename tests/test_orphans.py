"""No process that we start outlives the one that started it, whatever it is doing and however that one ended."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from prism_bench.io.workers import environment

TOYS = Path(__file__).parent / "toys"
SECONDS = 30.0  # until a child that should end is taken for one that does not

RUN = f"""
from prism_bench.run import Settings, run
from prism_bench.catalogue import discover
found = discover({str(TOYS)!r})
settings = Settings(processes=1, lanes=LANES, timeout=600.0)
cases = found.cases(["triple"], ["S0"])
run(found, "null", cases, settings, lambda told: told.task.startswith(TASK) and print("busy", flush=True))
"""
WORKER = RUN.replace("LANES", "1").replace("TASK", "'edges'")
LANES = RUN.replace("LANES", "2").replace("TASK", "'edges'")
CONVERSATION = f"""
from prism_bench.catalogue import discover
from prism_bench.workflows.tuning_session import Bench, Trials
found = discover({str(TOYS)!r})
(case,) = found.cases(["triple"], ["S0"])
with Trials(Bench("null", found, 600.0)) as trials:
    print("busy", flush=True)
    trials(case)
"""
EMULATOR = """
from pathlib import Path
import numpy as np
from prism_bench.emulator import compile_source
folder = Path("kernel"); folder.mkdir()
source = folder / "endless.cu"
source.write_text('extern "C" __global__ void endless(volatile int* x) { while (x[0] == 0) {} }')
module = compile_source(source, (), ("endless",), "fast")
print("busy", flush=True)
module.launch("endless", (1,), (1,), [np.zeros(1, "i4")], isolate=True)
"""
POOL = """
import time
from multiprocessing import get_context
from concurrent.futures import ProcessPoolExecutor
from prism_bench.run import precompile
if __name__ == "__main__":
    print("busy", flush=True)
    list(precompile.on_all_cores(time.sleep, [600.0] * 9))
"""
SERVING = """
from prism_bench.extensions.persistent.process import DeviceMessage
from prism_bench.extensions.persistent.process import ServingProcess
process = ServingProcess("emulator", 4)
process.receive(DeviceMessage)
print("busy", flush=True)
import time
time.sleep(600)
"""


def descendants(pid: int) -> set[int]:
    """The processes below `pid`, at any depth, whichever of its threads started them."""
    below: list[int] = []
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            below += map(int, thread.read_text().split())
    return {*below, *(deeper for one in below for deeper in descendants(one))}


def runs(pid: int) -> bool:
    """Whether the process is there and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait_for(condition) -> bool:
    end = time.monotonic() + SECONDS
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs /proc to find the children")
@pytest.mark.parametrize(
    "program",
    [WORKER, LANES, CONVERSATION, EMULATOR, POOL, SERVING],
    ids=["worker", "lanes", "conversation", "emulator", "pool", "persistent"],
)
def test_a_killed_parent_takes_its_children_along(program, tmp_path):
    (tmp_path / "script.json").write_text(json.dumps({"triple*": {"hang": True}}))
    (tmp_path / "parent.py").write_text(program)
    there = {**environment(), "PRISM_BENCH_NULL": str(tmp_path / "script.json")}
    command = [sys.executable, "parent.py"]
    with subprocess.Popen(command, cwd=tmp_path, env=there, stdout=subprocess.PIPE) as parent:
        try:
            assert b"busy" in parent.stdout.readline()
            assert wait_for(lambda: descendants(parent.pid))
            time.sleep(1.0)  # into the launch that never ends
            children = descendants(parent.pid)
        finally:
            parent.kill()
    try:
        assert children
        assert wait_for(lambda: not any(map(runs, children))), f"still there: {[*filter(runs, children)]}"
    finally:
        for child in filter(runs, children):
            os.kill(child, signal.SIGKILL)


COMPILING = """
import sys
from pathlib import Path
from prism_bench.emulator.build import _once
from prism_bench.io.files import guarded
from prism_bench.io.workers import run_program
from prism_bench.run import precompile

COMPILER = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)'])"

def unit(path):
    path.with_suffix(".cpp").touch()
    try:
        run_program([sys.executable, "-c", COMPILER])
    finally:
        path.with_suffix(".cpp").unlink()

def build(number):
    _once(Path("cache", f"{number}.so"), unit)

@guarded
def main():
    list(precompile.on_all_cores(build, list(range(JOBS))))

if __name__ == "__main__":
    main()
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs /proc to find the children")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("jobs", [1, 9], ids=["in the process itself", "in a pool"])
def test_a_signal_ends_compilers_and_leaves_no_file_of_theirs(jobs: int, number: int, tmp_path: Path) -> None:
    """A compiler starts another program, which does the work: both end."""
    cache = tmp_path / "cache"
    cache.mkdir()
    (tmp_path / "parent.py").write_text(COMPILING.replace("JOBS", str(jobs)))
    busy = min(jobs, len(os.sched_getaffinity(0)))
    with subprocess.Popen([sys.executable, "parent.py"], cwd=tmp_path, env=environment()) as parent:
        try:
            assert wait_for(lambda: sum(map(is_asleep, descendants(parent.pid))) == busy), "each has its compiler"
            children = descendants(parent.pid)
            parent.send_signal(number)
            assert 2 == parent.wait(10 * SECONDS)
        finally:
            parent.kill()
    try:
        assert wait_for(lambda: not any(map(runs, children))), f"still there: {[*filter(runs, children)]}"
        assert [] == list(cache.iterdir())
    finally:
        for child in filter(runs, children):
            os.kill(child, signal.SIGKILL)


def is_asleep(pid: int) -> bool:
    """Whether a process is the program that a compiler of the test started."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().endswith(b"-c\0import time; time.sleep(600)\0")
    except OSError:
        return False
