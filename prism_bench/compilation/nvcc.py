"""A source through nvcc: the device side alone (`-cubin`), host code in it and all."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from prism_bench.compilation.bindings import Compilation
from prism_bench.compilation.symbols import lowered_names
from prism_bench.errors import BackendUnavailable, CompilationFailed

_SECONDS = 600
_VERSION = re.compile(r"release [\d.]+, V([\d.]+)")


@cache
def nvcc() -> str:
    """Return the program; BackendUnavailable where there is none."""
    named = [os.environ[name] for name in ("CUDA_PATH", "CUDA_HOME") if os.environ.get(name)]
    places = os.pathsep.join(f"{root}/bin" for root in [*named, "/usr/local/cuda"])
    found = shutil.which("nvcc") or shutil.which("nvcc", path=places)
    if found is None:
        raise BackendUnavailable(
            "nvcc is neither in PATH nor in CUDA_HOME or /usr/local/cuda: install the CUDA toolkit, or leave "
            'compiler="nvcc" out of the spec, and NVRTC compiles it'
        )
    return found


@cache
def nvcc_version() -> str:
    """Return nvcc's version, `13.0.88`; BackendUnavailable where there is none."""
    words = subprocess.run([nvcc(), "--version"], capture_output=True, text=True, check=False).stdout
    found = _VERSION.search(words)
    return found[1] if found else words.strip()[-60:]


def compile_by_nvcc(source: Path, entries: Sequence[str], flags: Sequence[str]) -> Compilation:
    """Return machine code, symbols by entry and nvcc's log; the code is None where nvcc refused.

    Instances of templates are named in a file that includes the source, so that nvcc makes them.
    """
    instances = [entry for entry in entries if "<" in entry]
    with tempfile.TemporaryDirectory(prefix="prism-nvcc-") as folder:
        unit, cubin = source, Path(folder) / "out.cubin"
        if instances:
            unit = Path(folder) / f"{source.stem}.cu"
            unit.write_text(_with_instances(source, instances))
        command = [nvcc(), "-cubin", *flags, "-Xptxas", "-v", "-o", str(cubin), str(unit)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
        except subprocess.TimeoutExpired as error:
            raise CompilationFailed(f"{source}: nvcc took more than {_SECONDS} s and was stopped") from error
        log = f"{done.stdout}{done.stderr}"
        if done.returncode or not cubin.is_file():
            return None, {}, log
        code = cubin.read_bytes()
    return code, lowered_names(code, entries, str(source)), log


def _with_instances(source: Path, instances: Sequence[str]) -> str:
    """Return a unit in which the host names the instances."""
    quoted = str(source.resolve()).replace("\\", "\\\\").replace('"', '\\"')
    named = "".join(f"    (const void*)(&{instance}),\n" for instance in instances)
    array = "const void* const prism_bench_entries[]"
    return f'#include "{quoted}"\nextern {array};\n{array} = {{\n{named}}};\n'
