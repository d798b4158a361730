"""Jail of a process that works on a stranger's source: what it can reach, and how much it can take.

A jail has its own user, mount, network, process and IPC namespaces, a read-only root with the folders that it names,
an empty /tmp, limits of memory, processor time, processes and files, and a seccomp filter.
`prism_bench.extensions.judge.jail.namespaces` makes the namespaces, or bubblewrap if the system allows only that;
`prism_bench.extensions.judge.jail.confined` does the rest.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Literal, get_args

import msgspec

import prism_bench
from prism_bench.errors import BackendUnavailable

_SYSTEM = ("/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/alternatives")
_PASSED_ON = ("LANG", "LC_ALL", "TZ")
Maker = Literal["namespaces", "bubblewrap"]
NOBODY = "65534"
DEVICES = ("null", "full", "random", "urandom")  # not zero: shared memory of it is within no limit
_PROBE_SECONDS = 60


class Jail(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Bounds of a jail: readable folders and files, and limits of resources.

    `memory_bytes` bounds the writable memory of each process, without memory that it only reserves (None: unbounded,
    for sanitizers, whose shadow counts). Shared memory without a file is refused. `scratch_bytes` bounds /tmp and each
    file, `cpu_seconds` the processor time, and `processes` the number of processes and threads.
    """

    readable: tuple[str, ...] = ()
    memory_bytes: int | None = 8 << 30
    cpu_seconds: int = 600
    processes: int = 64
    scratch_bytes: int = 1 << 30

    @classmethod
    def over(cls, *paths: Path) -> "Jail":
        """Return a jail that can read these paths, the interpreter with its packages, and the system's programs."""
        package = Path(prism_bench.__file__).parent
        imported = [Path(entry).resolve() for entry in sys.path if entry and Path(entry).is_dir()]
        # Only distributions: a stranger may not read the folder of a running script, or a checkout.
        installed = [folder for folder in imported if next(folder.glob("*.dist-info"), None)]
        python = [Path(sys.prefix), Path(sys.base_prefix), package, *installed]
        readable = [*map(Path, _SYSTEM), *python, *(path.resolve() for path in paths)]
        return cls(tuple(dict.fromkeys(str(path) for path in readable if path.exists())))

    @classmethod
    def read(cls, text: str) -> "Jail":
        """Return the jail of a command line."""
        return msgspec.json.decode(text, type=cls)

    def command(self, module: str, arguments: Sequence[str], maker: Maker | None = None) -> list[str]:
        """Return the command that runs a Python module in the jail."""
        text = msgspec.json.encode(self).decode()
        inside = [sys.executable, "-m", f"{__package__}.confined", text, module, *arguments]
        if (maker or jail_maker()) == "bubblewrap":
            return [*self._bubblewrap(), *inside]
        return [sys.executable, "-m", f"{__package__}.namespaces", text, *inside]

    def variables(self, wanted: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of a jailed process: only the caller's language, and what is `wanted`."""
        kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        inside = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp", "PRISM_BENCH_CACHE": "/tmp/cache"}
        # A library that starts a thread for each core exceeds `processes` on a large host: OpenBLAS then raises SIGINT.
        inside |= {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL")}
        return {**kept, **inside, "PYTHONPATH": wanted.get("PYTHONPATH", ""), **wanted}

    def _bubblewrap(self) -> list[str]:
        binds = [part for path in self.readable for part in ("--ro-bind", path, path)]
        binds += [part for name in DEVICES for part in ("--dev-bind", f"/dev/{name}", f"/dev/{name}")]
        return [
            "bwrap",
            "--unshare-user",
            "--unshare-all",
            "--uid",
            NOBODY,
            "--gid",
            NOBODY,
            "--die-with-parent",
            "--new-session",
            "--proc",
            "/proc",
            "--size",
            str(self.scratch_bytes),
            "--tmpfs",
            "/tmp",
            *binds,
            "--chdir",
            "/tmp",
            "--remount-ro",
            "/",
            "--",
        ]


def be_killed_first() -> None:
    """Let the system end this process and its children before all others when memory is short.

    The limit of memory holds for each process: many of them together may take all memory of a host.
    """
    with suppress(OSError):  # a container without /proc
        Path("/proc/self/oom_score_adj").write_text("1000")


@cache
def jail_maker() -> Maker:
    """Return the maker of jails that works in a trial here; raise BackendUnavailable, with the cure, if none does.

    bubblewrap comes second: run by root it does not bound the number of processes.
    """
    complaints: list[str] = []
    for maker in get_args(Maker):
        complaint = _complaint(maker)
        if complaint is None:
            return maker
        complaints.append(complaint)
    raise BackendUnavailable(
        f"no jail for a stranger's source: {complaints[0]}; install bubblewrap, or allow user namespaces "
        "(sysctl kernel.unprivileged_userns_clone=1)"
    )


def _complaint(maker: Maker) -> str | None:
    """Return why a trial failed; None if it succeeded."""
    from prism_bench.io.workers import environment  # neither stage of a jail imports NumPy

    jail = Jail.over()
    command = jail.command("prism_bench.extensions.judge.jail.jail", (), maker)
    variables = jail.variables({"PYTHONPATH": environment()["PYTHONPATH"]})
    try:
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=_PROBE_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
    return lines[-1] if done.returncode else None
