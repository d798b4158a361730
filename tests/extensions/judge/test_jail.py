"""A jail shows a process what it names and nothing else, and bounds what it takes."""

import json
import mmap
import os
import platform
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import get_args

import pytest

from prism_bench.errors import BackendUnavailable
from prism_bench.extensions.judge.jail import jail as jails
from prism_bench.extensions.judge.jail.jail import Jail, Maker, jail_maker
from prism_bench.extensions.judge.jail.seccomp import REFUSED, refused_numbers
from prism_bench.io.workers import MOST_STDERR, WorkerEnvironment, WorkerProcess, environment

FOLDER = Path(__file__).parent


def missing_jail() -> str | None:
    """Return why no jail can be made here; None where one can."""
    try:
        jail_maker()
    except BackendUnavailable as error:
        return str(error)
    return None


needs_jail = pytest.mark.skipif(missing_jail() is not None, reason=missing_jail() or "")


MAKERS = [maker for maker in get_args(Maker) if maker == "namespaces" or shutil.which("bwrap")]


def probed(jail: Jail, *tries: str, maker: Maker = "namespaces") -> dict[str, str]:
    """Return what a process in the jail reached, by try."""
    variables = jail.variables({"PYTHONPATH": f"{FOLDER}{os.pathsep}{environment()['PYTHONPATH']}"})
    done = subprocess.run(
        jail.command("jail_probe", tries, maker), env=variables, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def jail() -> Jail:
    return Jail.over(FOLDER)


def test_the_folder_of_a_running_script_stays_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    libraries = tmp_path / "libraries"
    (libraries / "a-1.dist-info").mkdir(parents=True)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(libraries))
    readable = Jail.over().readable
    assert str(libraries) in readable
    assert str(tmp_path) not in readable


@needs_jail
@pytest.mark.parametrize("maker", MAKERS)
def test_a_jailed_process_reaches_nothing_of_the_host(
    jail: Jail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, maker: Maker
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("42")
    monkeypatch.setenv("PRISM_SECRET", "42")
    tries = (
        f"read={secret}", "read=/etc/passwd", "listing=/home", "write=/usr/x", f"write={FOLDER / 'x'}", "write=/x",
        "connect", "variable=PRISM_SECRET", f"signal_to={os.getpid()}", "listing=/sys", "read=/dev/kmsg",
        "listing=/dev/dri",
    )  # fmt: skip
    reached = {one: answer for one, answer in probed(jail, *tries, maker=maker).items() if not answer.endswith("Error")}
    assert not reached


@needs_jail
def test_a_jailed_process_reads_what_it_was_given_and_writes_to_its_own_scratch(jail: Jail) -> None:
    found = probed(jail, f"read={FOLDER / 'jail_probe.py'}", "write=/tmp/in_the_jail", "listing=/dev", "user")
    assert found[f"read={FOLDER / 'jail_probe.py'}"].startswith('"""What a jailed')
    assert found["write=/tmp/in_the_jail"] == "written"
    assert not set(found["listing=/dev"].split()) & {"nvidia0", "nvidiactl", "mem", "sda", "kvm"}
    assert "0" not in found["user"].split()
    assert not Path("/tmp/in_the_jail").exists()


@needs_jail
def test_a_jailed_process_keeps_no_right_of_its_user_namespace(jail: Jail) -> None:
    found = probed(jail, "capabilities", "read=/proc/self/uid_map")
    assert {"0" * 16} == set(found["capabilities"].split())
    assert "65534" == found["read=/proc/self/uid_map"].split()[0]


@needs_jail
def test_numpy_starts_no_thread_for_each_core(jail: Jail) -> None:
    assert probed(jail, "threads_of_numpy") == {"threads_of_numpy": "1"}


@needs_jail
def test_a_jail_bounds_memory_files_and_processes() -> None:
    jail = Jail(Jail.over(FOLDER).readable, memory_bytes=2 << 30, processes=20, scratch_bytes=1 << 20)
    found = probed(jail, "memory", f"fill={4 << 20}", "processes")
    assert found["memory"] == "MemoryError"
    assert found[f"fill={4 << 20}"] == "OSError"
    assert found["processes"] in ("BlockingIOError", "OSError")


@needs_jail
@pytest.mark.parametrize("maker", MAKERS)
def test_memory_that_no_limit_counts_is_refused(maker: Maker) -> None:
    """Shared memory without a file, and what grows like a stack; the host's other processes outlive a jail's."""
    jail = Jail(Jail.over(FOLDER).readable, memory_bytes=2 << 30)
    shared, stack = mmap.MAP_SHARED | mmap.MAP_ANONYMOUS, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x100
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    tries = [*(f"mapped={one}" for one in (shared, stack, private)), "mapped_file", "killed_first", "read=/dev/zero"]
    found = list(probed(jail, *tries, "write=/dev/x", "write=/dev/shm/x", maker=maker).values())
    refused = ["PermissionError", "PermissionError", "OSError"]
    assert [*refused, str(1 << 16), "1000", "FileNotFoundError", "OSError", "FileNotFoundError"] == found


@needs_jail
def test_each_jail_has_its_own_number_of_processes() -> None:
    jail = Jail(Jail.over(FOLDER).readable, processes=20)
    variables = jail.variables({"PYTHONPATH": f"{FOLDER}{os.pathsep}{environment()['PYTHONPATH']}"})
    command = jail.command("jail_probe", ["held=12"], "namespaces")
    running = [
        subprocess.Popen(command, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    first = [one.stdout.readline() for one in running if one.stdout]  # each holds its processes by then
    assert ["held\n"] * 3 == first
    assert [{"held=12": "12"}] * 3 == [json.loads(one.communicate("go on\n")[0]) for one in running]


@needs_jail
@pytest.mark.parametrize("name", sorted(REFUSED))
def test_refused_system_calls_are_refused(jail_calls: dict[str, str], name: str) -> None:
    numbers = refused_numbers(platform.machine())
    if name not in numbers:
        pytest.skip(f"{platform.machine()} has no such call")
    assert jail_calls[f"system_call={numbers[name]}"] == "PermissionError"


@pytest.fixture(scope="module")
def jail_calls(jail: Jail) -> dict[str, str]:
    return probed(jail, *(f"system_call={number}" for number in refused_numbers(platform.machine()).values()))


@needs_jail
def test_a_killed_jail_leaves_no_process_behind(jail: Jail) -> None:
    worker = WorkerProcess(WorkerEnvironment("timeit", jail=jail), ["-n1", "-r1", "import time; time.sleep(987)"])
    while not (inside := _sleepers()):
        assert worker.is_alive(), worker.stderr_text()
        time.sleep(0.05)
    worker.kill()
    worker.wait()
    while any(Path(f"/proc/{number}").exists() for number in inside):
        time.sleep(0.05)
    worker.release()


def _sleepers() -> list[int]:
    """Return the processes whose own program is the sleeping one, not a stage of the jail before it."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"timeit" in words and not any(b"workers." in word for word in words) and b"987" in b" ".join(words):
            found.append(int(folder.name))
    return found


@needs_jail
def test_a_jailed_worker_writes_nothing_to_this_process_s_output(jail: Jail, capfd: pytest.CaptureFixture[str]) -> None:
    worker = WorkerProcess(WorkerEnvironment("timeit", jail=jail), ["-n1", "-r1", "import os; os.write(1, b'words')"])
    worker.wait(60)
    assert "words" in worker.stderr_text()
    worker.release()
    assert ("", "") == capfd.readouterr()


@needs_jail
def test_of_a_jailed_worker_that_writes_very_much_the_end_is_read(jail: Jail) -> None:
    program = "import os; [os.write(2, b'x' * (1 << 20)) for _ in range(40)]; os.write(2, b' last')"
    worker = WorkerProcess(WorkerEnvironment("timeit", jail=jail), ["-n1", "-r1", program])
    worker.wait(60)
    assert len(worker.stderr_text()) == MOST_STDERR
    assert "last" in worker.stderr_text()
    worker.release()


@needs_jail
def test_the_end_by_a_signal_is_passed_on(jail: Jail) -> None:
    worker = WorkerProcess(WorkerEnvironment("timeit", jail=jail), ["-n1", "-r1", "import os; os.abort()"])
    assert worker.wait(60) == -signal.SIGABRT
    worker.release()


def test_without_a_jail_the_cure_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jails, "_complaint", lambda maker: f"{maker}: not permitted")
    with pytest.raises(BackendUnavailable, match="namespaces: not permitted; install bubblewrap"):
        jail_maker.__wrapped__()


def test_bubblewrap_is_taken_where_namespaces_are_not_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jails, "_complaint", lambda maker: "not permitted" if maker == "namespaces" else None)
    assert jail_maker.__wrapped__() == "bubblewrap"
