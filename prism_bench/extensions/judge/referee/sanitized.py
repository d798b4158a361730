"""A runner under one check of compute-sanitizer, whose findings are in a file that no kernel can write to."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from prism_bench.extensions.judge.host_state import folder_prefix
from prism_bench.extensions.judge.referee.client import RUNNER, RunnerProcess
from prism_bench.io.workers.handle import FrameWorker, WorkerEnvironment
from prism_bench.profilers.sanitizer import command_to_file
from prism_bench.profilers.tools import VARIABLES, Tool

WATCHED_DEVICE = f"{__package__}.cuda_device:open_watched_device"
LARGEST_LOG = 8 << 20  # bytes that are read: names of kernels are the stranger's, and as long as that likes
ENDING_SECONDS = 60.0  # for a tool to write what it found, once its program has ended


class SanitizedRunner(RunnerProcess):
    """A process that launches what the tool's `check` watches. It is ended with the tool, as one group.

    What the program and its kernels print is thrown away: they could print what looks like the tool's words.
    """

    def __init__(self, tool: Tool, check: str, device: str = WATCHED_DEVICE) -> None:
        self._folder = TemporaryDirectory(prefix=f"{folder_prefix()}sanitizer-")
        self._log = Path(self._folder.name) / "log"
        self._command = command_to_file(tool, check, self._log)
        super().__init__(device)

    def _started(self, device: str, variables: Mapping[str, str]) -> FrameWorker:
        where = WorkerEnvironment(RUNNER, variables={**VARIABLES, **variables}, starter=self._command)
        return FrameWorker(where, [device], stdout=subprocess.DEVNULL)

    def written(self) -> int:
        """Return how many bytes the tool has written so far."""
        return self._log.stat().st_size if self._log.is_file() else 0

    def finish(self) -> int | None:
        """Let the program end in order and return the tool's exit status; None where it had to be killed."""
        self._worker.channel.finish()
        status = self._worker.wait(ENDING_SECONDS)
        self._worker.kill()
        return status

    def log(self) -> bytes:
        """Return what the tool has written."""
        if not self._log.is_file():
            return b""
        with self._log.open("rb") as file:
            return file.read(LARGEST_LOG)

    def end(self) -> None:
        """End the tool and its program, and remove the log."""
        super().end()
        self._folder.cleanup()

    def _lost(self) -> None:
        """Let the tool write what it found where its program has ended by itself."""
        self._worker.wait(ENDING_SECONDS)
        super()._lost()
