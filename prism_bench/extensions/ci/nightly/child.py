"""Handle of a part of a nightly run: start its process, read how far it is, end it in order."""

import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from prism_bench.extensions.ci.logged import logged_process
from prism_bench.io.workers.child import environment
from prism_bench.monitor.devices import VISIBLE

_GRACE_SECONDS = 120.0  # for a part that keeps what it measured
_MODULE = "prism_bench.extensions.ci.nightly.worker"
_PROGRESS = {"PRISM_BENCH_PROGRESS_SECONDS": "2"}


@dataclass
class NightlyChild:
    """A running part: standard output in `output`, standard error in `log`."""

    process: "subprocess.Popen[bytes]"
    output: Path
    log: Path
    began: float = field(default_factory=time.monotonic)

    @property
    def code(self) -> int | None:
        """The exit code; None while it runs."""
        return self.process.poll()

    @property
    def line(self) -> str:
        """The last line of its log, else of its output: how far it is, or why it ended."""
        return last_line(self.log) or last_line(self.output)

    def end(self) -> int:
        """Interrupt it if it runs, wait until it kept what it measured, and return its exit code."""
        if self.code is None:
            # SIGINT may be ignored, inherited from a shell that started the nightly run in the background.
            self.process.terminate()
        try:
            return self.process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
        finally:
            if self.process.stdin:
                self.process.stdin.close()


def started(words: Sequence[str], stem: Path, device: str | None) -> NightlyChild:
    """Start a part with the arguments of `prism-bench`, on one GPU or as the environment has it."""
    output, log = stem.with_suffix(".out"), stem.with_suffix(".log")
    inherited = {name: value for name, value in environment().items() if name != "FORCE_COLOR"}
    chosen = {VISIBLE: device} if device is not None else {}
    process = logged_process(_MODULE, words, {**inherited, **_PROGRESS, **chosen}, (output, log))
    return NightlyChild(process, output, log)


def last_line(path: Path) -> str:
    """Return the last line of a log that is not empty."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 4096))
        lines = file.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
