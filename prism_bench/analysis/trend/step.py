"""Parts of a trend: steps with their causes, and breakpoints."""

from dataclasses import dataclass
from typing import Literal

from prism_bench.record.identity import Owner

CauseKind = Literal["protocol", "toolchain", "code", "device", "library", "driver", "clock", "sources", "unexplained"]
# Of several things that changed, the first one in this order that explains the step is named as the cause.
CAUSES: dict[CauseKind, str] = {
    "protocol": "the way of measuring changed",
    "toolchain": "the compiler or runtime changed",
    "code": "the machine code changed",
    "device": "another device of the same name",
    "library": "the library changed",
    "driver": "the driver changed",
    "clock": "the device ran at another clock",
    "sources": "the sources changed",
    "unexplained": "nothing changed that the records know of",
}


@dataclass(frozen=True)
class Key:
    """Identity of a series."""

    machine: str
    backend: str
    case: str
    metric: str
    subject: str
    environment: str = ""

    @property
    def owner(self) -> Owner:
        """Machine, backend and environment."""
        return self.machine, self.backend, self.environment


@dataclass(frozen=True)
class Cause:
    """Cause of a change of level: its `kind`, what changed in words, and what else changed in the same run."""

    kind: CauseKind
    words: str
    also: tuple[str, ...] = ()


@dataclass(frozen=True)
class Step:
    """Change of the level of a series: from `before` to `after`, medians of the two pieces in the metric's unit.

    `record` is the first record of the new level, `since` (UTC) the time of its commit, of measuring where that is
    unknown or the old one's; `previous` is the last of the old one. `commits`
    are those of the two. `nights` is how many records of the series the new level lasted. `age` is how many there were
    since. `worse` is the direction, `recovered` that the newest level is no longer worse than `before`.
    """

    key: Key
    before: float
    after: float
    previous: str
    record: str
    since: str
    commits: tuple[str | None, str | None]
    nights: int
    age: int
    worse: bool
    recovered: bool
    cause: Cause

    @property
    def ratio(self) -> float:
        """The new level over the old one."""
        return self.after / self.before


@dataclass(frozen=True)
class Breakpoint:
    """Place from which on, `record` made at `since`, something differs that may move every series of the machine.

    The series go on across it. `kind` is one of `CAUSES`.
    """

    machine: str
    backend: str
    record: str
    since: str
    kind: CauseKind
    words: str
    environment: str = ""
