"""What a jailed process tries: each function returns what it reached, or raises an error."""

import ctypes
import json
import mmap
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path


def user() -> str:
    return f"{os.getuid()} {os.geteuid()}"


def capabilities() -> str:
    """Return the sets of capabilities that this process has, without the bound of what it may gain."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return " ".join(line.split()[1] for line in lines if line.startswith("Cap") and not line.startswith("CapBnd"))


def read(path: str) -> str:
    return Path(path).read_text()[:40]


def listing(path: str) -> str:
    return " ".join(sorted(os.listdir(path)))


def write(path: str) -> str:
    Path(path).write_text("x")
    return "written"


def connect() -> str:
    socket.create_connection(("127.0.0.1", 9), timeout=2)
    return "connected"


def variable(name: str) -> str:
    return os.environ[name]


def processes() -> str:
    children = [subprocess.Popen(["sleep", "20"]) for _ in range(200)]
    return str(len(children))


def held(count: str) -> str:
    """Hold so many processes until somebody writes to this one, and return how many."""
    children = [subprocess.Popen(["sleep", "60"]) for _ in range(int(count))]
    print("held", flush=True)
    sys.stdin.readline()
    for child in children:
        child.kill()
        child.wait()
    return count


def memory() -> str:
    return str(len(bytearray(3 << 30)))


def mapped(flags: str) -> str:
    """Return how much memory outside of the limit of private memory is mapped with these flags."""
    return str(len(mmap.mmap(-1, 3 << 30, flags=int(flags))))


def mapped_file() -> str:
    """Map a file of the scratch, as linkers do with what they write."""
    with open("/tmp/mapped", "w+b") as file:
        file.truncate(1 << 16)
        return str(len(mmap.mmap(file.fileno(), 1 << 16)))


def killed_first() -> str:
    return Path("/proc/self/oom_score_adj").read_text().strip()


def signal_to(number: str) -> str:
    os.kill(int(number), 0)
    return "reached"


def system_call(number: str) -> str:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(int(number), 0, 0, 0, 0, 0) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return "allowed"


def threads_of_numpy() -> str:
    """Return how many threads this process has once NumPy and its linear algebra are loaded."""
    import numpy as np

    np.linalg.inv(np.eye(300) + 1)
    return str(len(os.listdir("/proc/self/task")))


def fill(size: str) -> str:
    Path("/tmp/filled").write_bytes(bytes(int(size)))
    return "filled"


PROBES: dict[str, Callable[..., str]] = {
    probe.__name__: probe
    for probe in (
        user,
        capabilities,
        read,
        listing,
        write,
        connect,
        variable,
        processes,
        held,
        memory,
        mapped,
        mapped_file,
        killed_first,
        signal_to,
        system_call,
        fill,
        threads_of_numpy,
    )
}

if __name__ == "__main__":
    tries = [one.split("=") for one in sys.argv[1:]]
    found: dict[str, str] = {}
    for name, *arguments in tries:
        try:
            found["=".join([name, *arguments])] = PROBES[name](*arguments)
        except (OSError, MemoryError, KeyError) as error:
            found["=".join([name, *arguments])] = type(error).__name__
    print(json.dumps(found))
