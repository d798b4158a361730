"""The last 10,000 executions of kernels, and what they add up to.

A run appends what it measured to a journal in the user's cache, so that a monitor in another terminal sees it; the
journal is bounded, one older part of it is kept.
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
_LARGEST_JOURNAL = 4 << 20


@dataclass(frozen=True, slots=True)
class Execution:
    """One execution of `kernel` that ended `at` (seconds of the epoch); `seconds` is None where it failed.

    `memory` is what its arguments take, in bytes.
    """

    kernel: str
    at: float
    seconds: float | None = None
    memory: int = 0

    @property
    def succeeded(self) -> bool:
        """Whether it has a time."""
        return self.seconds is not None


@dataclass(frozen=True)
class KernelStatistics:
    """What the executions of one kernel in the ring add up to; times in seconds, None where all failed."""

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
        """The share of the calls that succeeded."""
        return self.succeeded / self.calls


class Executions:
    """A ring of executions; the oldest make room for the newest."""

    def __init__(self, size: int = RING, clock: Callable[[], float] = time.time) -> None:
        self._ring: deque[Execution] = deque(maxlen=size)
        self._clock, self.began = clock, clock()

    def __iter__(self) -> Iterator[Execution]:
        return iter(tuple(self._ring))

    def __len__(self) -> int:
        return len(self._ring)

    def add(self, execution: Execution) -> None:
        """Keep one more."""
        self._ring.append(execution)

    def record(self, kernel: str, seconds: float | None, memory: int = 0) -> None:
        """Keep one that ended just now; no `seconds` means that it failed."""
        self.add(Execution(kernel, self._clock(), seconds, memory))

    def reset(self) -> None:
        """Forget all, and count the time from now."""
        self._ring.clear()
        self.began = self._clock()

    def uptime(self) -> float:
        """Seconds since the beginning."""
        return self._clock() - self.began

    def failures_of_last(self, count: int = 100) -> int:
        """How many of the last executions failed."""
        return sum(not one.succeeded for one in tuple(self._ring)[-count:])

    def statistics(self) -> list[KernelStatistics]:
        """One entry per kernel, the one that ran last first."""
        groups: dict[str, list[Execution]] = {}
        for one in self:
            groups.setdefault(one.kernel, []).append(one)
        return sorted((_statistics(name, ones) for name, ones in groups.items()), key=lambda one: -one.last)


def _statistics(kernel: str, ones: Sequence[Execution]) -> KernelStatistics:
    times = [one.seconds for one in ones if one.seconds is not None]
    return KernelStatistics(
        kernel=kernel,
        calls=len(ones),
        succeeded=len(times),
        total=sum(times),
        mean=fmean(times) if times else None,
        least=min(times, default=None),
        most=max(times, default=None),
        memory=fmean(one.memory for one in ones),
        last=max(one.at for one in ones),
    )


class ExecutionJournal:
    """Executions on disk, one JSON object a line, for a reader in another process."""

    def __init__(self, path: Path | None = None, largest: int = _LARGEST_JOURNAL) -> None:
        self.path = path or cache_folder("monitor") / "executions.jsonl"
        self._largest = largest

    def append(self, executions: Iterable[Execution]) -> None:
        """Add them; a journal that cannot be written is nobody's loss."""
        lines = "".join(json_text(asdict(one)) + "\n" for one in executions)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.path.is_file() and self.path.stat().st_size > self._largest:
                self.path.replace(self._older)
            with self.path.open("a") as file:
                file.write(lines)
        except OSError:
            return

    def follow(self, since: float) -> Iterator[list[Execution]]:
        """Yield what was added since the last time, again and again, without what ended before `since`; never ends."""
        part = _JournalFile(self._older) if self._older.is_file() else _JournalFile(self.path)
        try:
            while True:
                found = part.rest()
                if not part.is_at(self.path):
                    part.close()
                    part = _JournalFile(self.path)
                    found += part.rest()
                yield [one for one in found if one.at >= since]
        finally:
            part.close()

    @property
    def _older(self) -> Path:
        return self.path.with_suffix(".old.jsonl")


class _JournalFile:
    """One file of a journal, read from where it was left; it is the same file after it was put aside."""

    def __init__(self, path: Path) -> None:
        self._path, self._place = path, 0
        self._file = None

    def is_at(self, path: Path) -> bool:
        """Return whether this file is still there, or no file."""
        try:
            return self._file is not None and path.stat().st_ino == os.fstat(self._file.fileno()).st_ino
        except OSError:
            return True

    def rest(self) -> list[Execution]:
        """Return the whole lines behind the last ones."""
        try:
            self._file = self._file or self._path.open("rb")
            self._file.seek(self._place)
            whole = [line for line in self._file if line.endswith(b"\n")]
        except OSError:
            return []
        self._place += sum(map(len, whole))
        return list(_parsed(whole))

    def close(self) -> None:
        """Let the file go."""
        if self._file:
            self._file.close()


def _parsed(lines: Iterable[bytes]) -> Iterator[Execution]:
    for line in lines:
        try:
            plain = json.loads(line)
            found = Execution(**plain | {"kernel": sys.intern(plain["kernel"])})
        except (ValueError, TypeError, KeyError, RecursionError):
            continue
        if _is_sound(found):
            yield found


def _is_sound(found: Execution) -> bool:
    """Return whether its numbers are times and bytes; any other line is no execution."""
    times = (found.at, 0.0 if found.seconds is None else found.seconds)
    numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (*times, found.memory))
    return numbers and all(0 <= one < _LARGEST_NUMBER for one in (*times, found.memory))


def executions_of(result: CaseResult) -> list[Execution]:
    """Return every launch of the kernel that has a sample, and a failed one where the case went wrong."""
    if result.status not in ("ok", "skipped"):
        return [Execution(result.name, time.time(), None, result.bytes)]
    metrics = ("cold_time", "hot_time")
    timed = [one for one in result.measurements if one.metric in metrics and one.subject == "kernel"]
    return [Execution(result.name, time.time(), seconds, result.bytes) for one in timed for seconds in one.samples]
