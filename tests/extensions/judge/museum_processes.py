"""Processes that try entries of the museum: each with an own folder for its files, and none outlives the whole."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock

from prism_bench.io.workers import end_with

PARENT = "PRISM_BENCH_MUSEUM_PARENT"  # the descriptor that closes when the process that started this one ends


class MuseumProcesses:
    """Runs Python modules, each in an own group of processes with an own folder for temporary files."""

    def __init__(self) -> None:
        self._running: dict[int, subprocess.Popen[str]] = {}
        self._folders: dict[int, tempfile.TemporaryDirectory[str]] = {}
        self._lock, self._ended = Lock(), False

    def run(
        self, module: Sequence[str], variables: Mapping[str, str], seconds: float
    ) -> subprocess.CompletedProcess[str] | None:
        """Return how a module ended; None where it was ended, after so many seconds or with all others."""
        process = self._started(module, variables)
        if process is None:
            return None
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            self._end(process)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def begin(self) -> None:
        """Start processes again after an end."""
        self._ended = False

    def end(self) -> None:
        """End all that run, with their files, and start no other."""
        with self._lock:
            self._ended = True
            running = list(self._running.values())
        for process in running:
            self._end(process)

    def _started(self, module: Sequence[str], variables: Mapping[str, str]) -> subprocess.Popen[str] | None:
        with self._lock:
            return None if self._ended else self._start(module, variables)

    def _start(self, module: Sequence[str], variables: Mapping[str, str]) -> subprocess.Popen[str]:
        folder = tempfile.TemporaryDirectory(prefix="prism-judge-museum-", ignore_cleanup_errors=True)
        Path(folder.name).chmod(0o755)  # the jail's user is another one
        reading, writing = os.pipe()
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", *module], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True, process_group=0, pass_fds=(reading,),
                env={**os.environ, **variables, "TMPDIR": folder.name, PARENT: str(reading)},
            )  # fmt: skip
        finally:
            os.close(reading)
        self._running[writing], self._folders[process.pid] = process, folder
        return process

    def _end(self, process: subprocess.Popen[str]) -> None:
        """End a process, by the pipe those that it started, and remove its files, once."""
        with self._lock:
            folder = self._folders.pop(process.pid, None)
            held = [one for one, known in self._running.items() if known is process]
            for descriptor in held:
                del self._running[descriptor]
        if process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for descriptor in held:
            os.close(descriptor)
        if folder:
            folder.cleanup()


def end_with_parent() -> None:
    """End this process with the one that started it as a process of the museum."""
    if PARENT in os.environ:
        end_with(int(os.environ[PARENT]))
