"""The last 10,000 executions of kernels, and their statistics.

A run appends the executions that it measured to a journal in the user's cache, so that a monitor in another terminal
sees them. The journal is bounded; one older part of it is kept.
"""

import json
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

from prism_bench.io.documents import json_text
from prism_bench.io.files import cache_folder
from prism_bench.record.run_record import CaseResult

RING = 10_000
_LARGEST_NUMBER = 1e18  # of seconds or bytes
_LARGEST_JOURNAL = 4 << 20  # bytes


@dataclass(frozen=True, slots=True)
class Execution:
    """One execution of `kernel` that ended `at` (seconds of the epoch); `seconds` is None if it failed.

    `memory` is the size of its arguments in bytes.
    """

    kernel: str
    at: float
    seconds: float | None = None
    memory: int = 0

    @property
    def succeeded(self) -> bool:
        """Return whether the execution has a time."""
        return self.seconds is not None


@dataclass(frozen=True)
class KernelStatistics:
    """Statistics of one kernel's executions in the ring; times in seconds, None if all failed."""

    kernel: str
    calls: int
    succeeded: int
    total: float
    mean: float | None
    least: float | None
    most: float | None
    memory: float
    last: float

    @property
    def success_rate(self) -> float:
        """Return the share of the calls that succeeded."""
        return self.succeeded / self.calls


class Executions:
    """A ring of the last `size` executions."""

    def __init__(self, size: int = RING, clock: Callable[[], float] = time.time) -> None:
        self._ring: deque[Execution] = deque(maxlen=size)
        self._clock, self.began = clock, clock()

    def __iter__(self) -> Iterator[Execution]:
        return iter(tuple(self._ring))

    def __len__(self) -> int:
        return len(self._ring)

    def add(self, execution: Execution) -> None:
        """Append an execution; the oldest one of a full ring is dropped."""
        self._ring.append(execution)

    def record(self, kernel: str, seconds: float | None, memory: int = 0) -> None:
        """Append an execution that ended now; without `seconds` it failed."""
        self.add(Execution(kernel, self._clock(), seconds, memory))

    def reset(self) -> None:
        """Drop all executions and restart the uptime."""
        self._ring.clear()
        self.began = self._clock()

    def uptime(self) -> float:
        """Return the seconds since the start or the last reset."""
        return self._clock() - self.began

    def failures_of_last(self, count: int = 100) -> int:
        """Return how many of the last `count` executions failed."""
        return sum(not execution.succeeded for execution in tuple(self._ring)[-count:])

    def statistics(self) -> list[KernelStatistics]:
        """Return the statistics of each kernel, the kernel that ran last first."""
        groups: dict[str, list[Execution]] = {}
        for execution in self:
            groups.setdefault(execution.kernel, []).append(execution)
        return sorted((_statistics(name, group) for name, group in groups.items()), key=lambda kernel: -kernel.last)


def _statistics(kernel: str, executions: Sequence[Execution]) -> KernelStatistics:
    times = [execution.seconds for execution in executions if execution.seconds is not None]
    return KernelStatistics(
        kernel=kernel,
        calls=len(executions),
        succeeded=len(times),
        total=sum(times),
        mean=fmean(times) if times else None,
        least=min(times, default=None),
        most=max(times, default=None),
        memory=fmean(execution.memory for execution in executions),
        last=max(execution.at for execution in executions),
    )


class ExecutionJournal:
    """Executions on disk, one JSON object a line, for a reader in another process."""

    def __init__(self, path: Path | None = None, largest: int = _LARGEST_JOURNAL) -> None:
        self.path = path or cache_folder("monitor") / "executions.jsonl"
        self._largest = largest

    def append(self, executions: Iterable[Execution]) -> None:
        """Append executions; a journal that cannot be written is ignored, since no result depends on it."""
        lines = "".join(json_text(asdict(execution)) + "\n" for execution in executions)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.path.is_file() and self.path.stat().st_size > self._largest:
                self.path.replace(self._older)
            with self.path.open("a") as file:
                file.write(lines)
        except OSError:
            return

    def follow(self, since: float) -> Iterator[list[Execution]]:
        """Yield, without end, the executions appended since the last `next` that ended at `since` or later."""
        part = _JournalFile(self._older) if self._older.is_file() else _JournalFile(self.path)
        try:
            while True:
                appended = part.rest()
                if not part.is_at(self.path):
                    part.close()
                    part = _JournalFile(self.path)
                    appended += part.rest()
                yield [execution for execution in appended if execution.at >= since]
        finally:
            part.close()

    @property
    def _older(self) -> Path:
        return self.path.with_suffix(".old.jsonl")


class _JournalFile:
    """One file of a journal, read from where it was left, even after it was renamed to the older part."""

    def __init__(self, path: Path) -> None:
        self._path, self._offset = path, 0
        self._file = None

    def is_at(self, path: Path) -> bool:
        """Return whether this file is still at `path`, or no file is there."""
        try:
            return self._file is not None and path.stat().st_ino == os.fstat(self._file.fileno()).st_ino
        except OSError:
            return True

    def rest(self) -> list[Execution]:
        """Return the executions in the complete lines after those that were read before."""
        try:
            self._file = self._file or self._path.open("rb")
            self._file.seek(self._offset)
            whole = [line for line in self._file if line.endswith(b"\n")]
        except OSError:
            return []
        self._offset += sum(map(len, whole))
        return list(_parsed(whole))

    def close(self) -> None:
        """Close the file."""
        if self._file:
            self._file.close()


def _parsed(lines: Iterable[bytes]) -> Iterator[Execution]:
    for line in lines:
        try:
            plain = json.loads(line)
            execution = Execution(**plain | {"kernel": sys.intern(plain["kernel"])})
        except (ValueError, TypeError, KeyError, RecursionError):
            continue
        numbers = (execution.at, 0.0 if execution.seconds is None else execution.seconds, execution.memory)
        if all(isinstance(number, int | float) and not isinstance(number, bool) for number in numbers) and all(
            0 <= number < _LARGEST_NUMBER for number in numbers
        ):
            yield execution


def executions_of(result: CaseResult) -> list[Execution]:
    """Return an execution for every sample of the kernel, or a failed execution if the case failed."""
    if result.status not in ("ok", "skipped"):
        return [Execution(result.name, time.time(), None, result.bytes)]
    metrics = ("cold_time", "hot_time")
    return [
        Execution(result.name, time.time(), seconds, result.bytes)
        for measurement in result.measurements
        if measurement.metric in metrics and measurement.subject == "kernel"
        for seconds in measurement.samples
    ]
