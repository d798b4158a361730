"""NVIDIA's tools for machine code, in wheels or in a toolkit: what a cubin's entry takes, without a device."""

import os
import re
import shutil
import subprocess
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from prism_bench.compilation.code import Resources

_SECONDS = 60
_RESERVED_SHARED = 1024  # bytes of a block that are the system's own, from compute capability 9.0 on
_WHEELS = {"triton": "backends/nvidia/bin", "nvidia": "*/bin"}
_USAGE = re.compile(r"Function (\S+):\s*\n\s*(REG:.*)")
_NUMBER = re.compile(r"(\w+)(?:\[\d+\])?:(\d+)")
_FUNCTION = re.compile(r"^\s*\.section\s+\.text\.([^,\s]+)|^//-+ \.text\.(\S+)", re.MULTILINE)
_LOCAL = re.compile(r"\b(STL|LDL)((?:\.[A-Z0-9]+)*)\b")
_WIDTHS = {"128": 16, "64": 8, "U16": 2, "S16": 2, "16": 2, "U8": 1, "S8": 1, "8": 1}


@cache
def tool(name: str) -> str | None:
    """Return the program `cuobjdump` or `nvdisasm`: of a wheel, in PATH or of a toolkit; None without one."""
    for package, folder in _WHEELS.items():
        spec = find_spec(package)
        roots = (spec.submodule_search_locations or ()) if spec else ()
        for path in (one for root in roots for one in sorted(Path(root).glob(f"{folder}/{name}"))):
            if os.access(path, os.X_OK):
                return str(path)
    toolkits = [os.environ[one] for one in ("CUDA_PATH", "CUDA_HOME") if os.environ.get(one)]
    places = os.pathsep.join(f"{root}/bin" for root in [*toolkits, "/usr/local/cuda"])
    return shutil.which(name) or shutil.which(name, path=places)


def measured_resources(cubin: bytes, entry: str, dynamic_shared: int = 0) -> Resources:
    """Return what an entry takes by `cuobjdump`, and its bytes of local loads and stores by `nvdisasm`.

    What no tool here can find out is zero. `dynamic_shared` is added to the entry's own shared memory.
    """
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        usage = dict(_USAGE.findall(_output("cuobjdump", "-res-usage", file.name))).get(entry, "")
        numbers = {name: int(number) for name, number in _NUMBER.findall(usage)}
        stack = numbers.get("STACK", 0)
        stores, loads = _local_bytes(_output("nvdisasm", "-c", file.name), entry) if stack else (0, 0)
    reserved = _RESERVED_SHARED if b".nv.shared.reserved.0" in cubin else 0
    shared = max(0, numbers.get("SHARED", 0) - reserved) + dynamic_shared
    return Resources(numbers.get("REG", 0), stack, stores, loads, shared, numbers.get("BAR", 0))


def _output(name: str, *arguments: str) -> str:
    program = tool(name)
    if program is None:
        return ""
    try:
        done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout


def _local_bytes(listing: str, entry: str) -> tuple[int, int]:
    """Return the bytes that the instructions of an entry store to local memory and load from it, each counted once."""
    parts = _FUNCTION.split(listing)
    texts = [text for first, second, text in zip(parts[1::3], parts[2::3], parts[3::3], strict=True)
             if (first or second).rstrip(",-") == entry]  # fmt: skip
    found = {"STL": 0, "LDL": 0}
    for kind, suffixes in _LOCAL.findall("\n".join(texts)):
        found[kind] += next((_WIDTHS[one] for one in suffixes.split(".") if one in _WIDTHS), 4)
    return found["STL"], found["LDL"]
