"""The last 10,000 executions of kernels, and what they add up to.

A run appends what it measured to a journal in the user's cache, so that a monitor in another terminal sees it; the
journal is bounded, one older part of it is kept.
"""

import json
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

from prism_bench.files import cache_folder

RING = 10_000
LARGEST_JOURNAL = 4 << 20


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

    def __init__(self, size: int = RING, clock: Callable[[], float] = time.time):
        self._ring: deque[Execution] = deque(maxlen=size)
        self._clock, self.began = clock, clock()

    def __iter__(self) -> Iterator[Execution]:
        return iter(tuple(self._ring))

    def __len__(self):
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


def _statistics(kernel, ones):
    times = [one.seconds for one in ones if one.succeeded]
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


class Journal:
    """Executions on disk, one JSON object a line, for a reader in another process."""

    def __init__(self, path: Path | None = None, largest: int = LARGEST_JOURNAL):
        self.path = path or cache_folder("monitor") / "executions.jsonl"
        self._largest = largest

    def append(self, executions: Iterable[Execution]) -> None:
        """Add them; a journal that cannot be written is nobody's loss."""
        lines = "".join(json.dumps(asdict(one), separators=(",", ":")) + "\n" for one in executions)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.path.is_file() and self.path.stat().st_size > self._largest:
                self.path.replace(self.path.with_suffix(".old.jsonl"))
            with self.path.open("a") as file:
                file.write(lines)
        except OSError:
            return

    def follow(self, since: float) -> Iterator[list[Execution]]:
        """What was added since the last time, again and again, without what ended before `since`; never ends."""
        place, inode = 0, None
        while True:
            found, place, inode = self._after(place, inode)
            yield [one for one in found if one.at >= since]

    def _after(self, place, inode):
        try:
            with self.path.open("rb") as file:
                now = self.path.stat().st_ino
                file.seek(place if now == inode else 0)
                lines = file.read().splitlines(keepends=True)
                whole = [line for line in lines if line.endswith(b"\n")]
                start = place if now == inode else 0
                return list(_parsed(whole)), start + sum(map(len, whole)), now
        except OSError:
            return [], place, inode


def _parsed(lines):
    for line in lines:
        try:
            plain = json.loads(line)
            yield Execution(**plain | {"kernel": sys.intern(plain["kernel"])})
        except (ValueError, TypeError, KeyError):
            continue
