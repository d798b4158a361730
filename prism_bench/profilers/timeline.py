"""What a tracer saw: work on devices, calls on the host that caused it, and named ranges; arrays, so that millions fit.

Times are nanoseconds (int64) on one clock. Work and calls belong together where correlation id AND process agree: two
processes number their calls alike.
"""

from dataclasses import dataclass, field

import numpy as np

KERNEL, COPY, SET = 0, 1, 2


@dataclass(frozen=True)
class Work:
    """Kernels, copies and sets, in no order: one element each; `name` indexes the timeline's names (-1: none)."""

    start: np.ndarray
    end: np.ndarray
    device: np.ndarray
    kind: np.ndarray
    name: np.ndarray
    bytes: np.ndarray
    correlation: np.ndarray
    process: np.ndarray

    def __len__(self):
        return len(self.start)

    def where(self, chosen: np.ndarray) -> "Work":
        """The chosen elements: a mask or indices."""
        return Work(**{name: column[chosen] for name, column in vars(self).items()})


@dataclass(frozen=True)
class Calls:
    """Calls of the CUDA runtime and driver; of a runtime call and the driver call inside it, either or both."""

    start: np.ndarray
    end: np.ndarray
    name: np.ndarray
    correlation: np.ndarray
    process: np.ndarray
    thread: np.ndarray

    def __len__(self):
        return len(self.start)


@dataclass(frozen=True)
class Ranges:
    """Named ranges (NVTX) of a thread; `name` indexes the timeline's names."""

    start: np.ndarray
    end: np.ndarray
    name: np.ndarray
    process: np.ndarray
    thread: np.ndarray

    def __len__(self):
        return len(self.start)


WORK_TYPES = {
    "start": "i8",
    "end": "i8",
    "device": "i2",
    "kind": "i1",
    "name": "i4",
    "bytes": "i8",
    "correlation": "i4",
    "process": "i2",
}
CALL_TYPES = {"start": "i8", "end": "i8", "name": "i4", "correlation": "i4", "process": "i2", "thread": "i4"}
RANGE_TYPES = {"start": "i8", "end": "i8", "name": "i4", "process": "i2", "thread": "i4"}


@dataclass(frozen=True)
class Timeline:
    """One capture. `untraced_graphs` are graph launches whose kernels the capture does not hold one by one.

    `source` says which file or process, `tool` and `version` who made it; `notes` are what one must know.
    """

    work: Work
    calls: Calls
    ranges: Ranges
    names: tuple[str, ...]
    source: str
    tool: str
    version: str | None = None
    untraced_graphs: int = 0
    overhead: int = 0
    notes: tuple[str, ...] = field(default=())

    def named(self, *words: str) -> np.ndarray:
        """Which names hold one of the words, whatever their case: a mask over `names`."""
        return np.array([any(word in name.lower() for word in words) for name in self.names], bool)


def empty(types: dict[str, str], count: int = 0) -> dict[str, np.ndarray]:
    """Columns of those types, to be filled."""
    return {name: np.zeros(count, kind) for name, kind in types.items()}


def columns(rows, types: dict[str, str]) -> dict[str, np.ndarray]:
    """Columns from rows of integers in the order of `types`."""
    table = np.array(list(rows), np.int64).reshape(-1, len(types))
    return {name: table[:, i].astype(kind) for i, (name, kind) in enumerate(types.items())}
