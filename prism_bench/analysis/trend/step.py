"""What a trend is made of: steps, with their causes, and breakpoints."""

from dataclasses import dataclass

# In the order in which they are believed: what changed first in this list is named as the cause of a step.
CAUSES = {
    "protocol": "the way of measuring changed",
    "device": "another device of the same name",
    "toolchain": "compiler or runtime changed",
    "library": "the library changed",
    "code": "the kernel's machine code changed",
    "driver": "the driver changed",
    "clock": "the device ran at another clock",
    "unexplained": "nothing that the records know changed",
}


@dataclass(frozen=True)
class Key:
    """What makes numbers one series."""

    machine: str
    backend: str
    case: str
    metric: str
    subject: str


@dataclass(frozen=True)
class Cause:
    """Why a level changed: its `kind` (of `CAUSES`), what changed in words, and what else changed in the same night."""

    kind: str
    words: str
    also: tuple[str, ...] = ()


@dataclass(frozen=True)
class Step:
    """A series changed its level: from `before` to `after` (medians of the two pieces, in the metric's unit).

    `record` is the first record of the new level and `previous` the last of the old one (file names, UTC times in
    `since` and `until`); `nights` is how many records the new level has lasted. `recovered` is true where the newest
    level is no longer worse than `before`. `commits` are those of `previous` and `record`.
    """

    key: Key
    before: float
    after: float
    previous: str
    record: str
    until: str
    since: str
    nights: int
    cause: Cause
    commits: tuple[str | None, str | None] = (None, None)
    higher_is_better: bool = False
    recovered: bool = False

    @property
    def ratio(self) -> float:
        """The new level over the old one."""
        return self.after / self.before

    @property
    def worse(self) -> bool:
        """Whether the change is to the worse."""
        return (self.after < self.before) == self.higher_is_better


@dataclass(frozen=True)
class Breakpoint:
    """Between two successive records of a machine something changed that may move every series; they go on."""

    machine: str
    backend: str
    record: str
    since: str
    kind: str
    words: str
