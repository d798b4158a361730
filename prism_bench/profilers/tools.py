"""The profilers as programs: where they are, which version, and how they are run: in the C locale, with a limit."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from prism_bench.profilers.failures import MISSING, TIMED_OUT, ProfilerFailed

_VERSION = re.compile(r"(\d{4}\.\d+(?:\.\d+)*)")
# What CUDA's own installers use; PATH comes first.
_FOLDERS = ("/usr/local/cuda/bin", "/opt/nvidia/nsight-compute/*", "/opt/nvidia/nsight-systems/*/bin")
VARIABLES = {"LC_ALL": "C", "NV_COMPUTE_PROFILER_DISABLE_STOCK_FILE_DEPLOYMENT": "1"}
TOOLS = ("ncu", "nsys", "compute-sanitizer")


@dataclass(frozen=True)
class Tool:
    """A profiler on this machine: its name, its program, and the version that it prints (None where it prints none)."""

    name: str
    program: str
    version: str | None


@dataclass(frozen=True)
class Ended:
    """End of a program: its exit status and its output."""

    status: int
    text: str


def find(name: str) -> Tool:
    """Return the tool; ProfilerFailed where it is not installed."""
    places = [place for pattern in _FOLDERS for place in sorted(Path("/").glob(pattern[1:]), reverse=True)]
    program = shutil.which(name) or shutil.which(name, path=os.pathsep.join(map(str, places)))
    if program is None:
        raise ProfilerFailed(name, MISSING)
    return Tool(name, program, _version(program))


def _version(program: str | Path) -> str | None:
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30, env=environment())
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.search(said.stdout + said.stderr)
    return found[1] if found else None


def environment() -> dict[str, str]:
    """Return our environment in the C locale, so that numbers have one form, and without leftovers in the home."""
    return {**os.environ, **VARIABLES}


def run(
    command: Sequence[str], log: Path, seconds: float, watch: Callable[[], object] = lambda: None, **variables: str
) -> Ended:
    """Run the command with all output in `log`; call `watch` twice a second. ProfilerFailed at the limit."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as words:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=words, stderr=subprocess.STDOUT,
                                   env={**environment(), **variables}, start_new_session=True)  # fmt: skip
        try:
            _wait(process, seconds, watch)
        except subprocess.TimeoutExpired:
            raise ProfilerFailed(Path(command[0]).name, TIMED_OUT) from None
        finally:
            _end(process)
    return Ended(process.returncode, log.read_text(errors="replace"))


def _wait(process: subprocess.Popen[bytes], seconds: float, watch: Callable[[], object]) -> None:
    left = seconds
    while left > 0:
        try:
            process.wait(timeout=min(0.5, left))
            watch()
            return
        except subprocess.TimeoutExpired:
            left -= 0.5
            watch()
    raise subprocess.TimeoutExpired(process.args, seconds)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Nothing that the profiler started stays behind, whatever ended the waiting."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
