"""Saves of a long job: one that fails is reported, ends nothing, and is tried again at the next time."""

import os
import sys
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from prism_bench.errors import PrismBenchError, UsageError
from prism_bench.io import interrupts

INTERVAL = "PRISM_BENCH_SAVE_SECONDS"
SECONDS = 60.0
NOT_KEPT = 2  # the exit code of a job whose results could not be kept
_Value = TypeVar("_Value")
_Kept = TypeVar("_Kept")


def warn(words: str) -> None:
    """Write a line on standard error."""
    print(f"prism-bench: {words}", file=sys.stderr, flush=True)


def interval() -> float:
    """Return the seconds between two saves: PRISM_BENCH_SAVE_SECONDS, or 60."""
    written = os.environ.get(INTERVAL) or str(SECONDS)
    try:
        seconds = float(written)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise UsageError(f"{INTERVAL}={written}: it is a number of seconds, 0 for a save after every case")
    return seconds


class Due:
    """Whether it is time for the next save."""

    def __init__(self) -> None:
        self._seconds, self._last = interval(), time.monotonic()

    def __call__(self) -> bool:
        """Return True once in every interval."""
        now = time.monotonic()
        if now - self._last < self._seconds:
            return False
        self._last = now
        return True


class Saver(Generic[_Value, _Kept]):
    """Keeps what a job has so far by `write`, again and again: call it with every version, `finish` with the last.

    No signal cuts a save short. `kept` is what `write` returned last, `problem` why the latest version is not kept.
    """

    def __init__(self, write: Callable[[_Value], _Kept], report: Callable[[str], object] = warn) -> None:
        self._write, self._report = write, report
        self.kept: _Kept | None = None
        self.problem: str | None = None

    def __call__(self, value: _Value) -> None:
        """Keep a version of a job that goes on; a failure is reported, once for each reason."""
        before = self.problem
        self.finish(value)
        if self.problem and self.problem != before:
            self._report(f"{self.problem}; the job goes on, and the next save is tried")
        if before and not self.problem:
            self._report(f"saved again: {self.kept}")

    def finish(self, value: _Value) -> _Kept | None:
        """Keep the last version; returns what `write` does, or None where it failed, which `exit_code` reports."""
        with interrupts.held():
            self.problem = self._failure(value)
            return None if self.problem else self.kept

    def exit_code(self, code: int = 0) -> int:
        """Return the exit code of the job: `code`, or NOT_KEPT with a warning where the results are not kept.

        Call it when the results have been printed.
        """
        if self.problem is None:
            return code
        older = f", but {self.kept} has an earlier version" if self.kept else ""
        self._report(f"{self.problem}; the results above are not kept{older}")
        return NOT_KEPT

    def _failure(self, value: _Value) -> str | None:
        try:
            self.kept = self._write(value)
        except Exception as error:  # no way in which a save fails is worth the measurements
            words = str(error) or type(error).__name__
            return words if isinstance(error, PrismBenchError | OSError) else f"cannot save: {words}"
        return None
