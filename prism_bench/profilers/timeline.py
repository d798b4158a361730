"""Timelines: work on devices, the host calls that brought it, and named ranges, as arrays, so that millions fit.

Times are nanoseconds on one clock. Work and calls are in the order of their start. They belong together where
correlation id AND process agree: two processes number their calls alike (`Caller` joins them).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

KERNEL, COPY, SET, GRAPH = 0, 1, 2, 3
NO_CALL = -1


@dataclass(frozen=True)
class Work:
    """Kernels, copies, sets, and executions of graphs that were traced as a whole.

    Each has `start` (int64) and `length`; `name` indexes the timeline's names (-1: none), `call` its calls (-1: none).
    `bytes` are only those of copies and sets, in their order.
    """

    start: np.ndarray
    length: np.ndarray
    device: np.ndarray
    kind: np.ndarray
    name: np.ndarray
    call: np.ndarray
    bytes: np.ndarray

    def __len__(self) -> int:
        return len(self.start)

    @property
    def transfers(self) -> np.ndarray:
        """The indices that `bytes` belong to."""
        return np.flatnonzero(is_transfer(self.kind))


@dataclass(frozen=True)
class Calls:
    """Calls of the CUDA runtime and driver. `outer` is false for a driver call inside a runtime call that is here."""

    start: np.ndarray
    length: np.ndarray
    name: np.ndarray
    process: np.ndarray
    thread: np.ndarray
    outer: np.ndarray

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True)
class Ranges:
    """Named ranges (NVTX) of a thread; `name` indexes the timeline's names."""

    start: np.ndarray
    end: np.ndarray
    name: np.ndarray
    process: np.ndarray
    thread: np.ndarray

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True)
class Timeline:
    """One capture.

    `source` is the file or process, `tool` and `version` made it; `notes` are what one must know.
    """

    work: Work
    calls: Calls
    ranges: Ranges
    names: tuple[str, ...]
    source: str
    tool: str
    version: str | None = None
    overhead: int = 0
    notes: tuple[str, ...] = field(default=())

    def named(self, *words: str) -> np.ndarray:
        """Which names hold one of the words, whatever their case: a mask over `names`."""
        return np.array([any(word in name.lower() for word in words) for name in self.names], bool)


class Caller:
    """Finds the call that brought a piece of work, by process and correlation id; of several with one id, the outer."""

    def __init__(self, process: np.ndarray, correlation: np.ndarray) -> None:
        """Of calls in the order of their start, so that a runtime call comes before the driver call inside it."""
        self._keys, self._order = _keys(process, correlation), None
        if len(self._keys) > 1 and not (self._keys[1:] >= self._keys[:-1]).all():
            order = np.argsort(self._keys, kind="stable")
            self._keys, self._order = self._keys[order], order.astype(np.int32)

    def of(self, process: np.ndarray, correlation: np.ndarray) -> np.ndarray:
        """Return the index of each piece of work's call; NO_CALL where there is none."""
        wanted = _keys(process, correlation)
        if not len(self._keys):
            return np.full(len(wanted), NO_CALL, np.int32)
        place = np.searchsorted(self._keys, wanted)
        place[place == len(self._keys)] = 0
        found = place if self._order is None else self._order[place]
        return np.where(self._keys[place] == wanted, found, NO_CALL).astype(np.int32)

    def outer(self) -> np.ndarray:
        """Which calls are the first of their id."""
        first = np.ones(len(self._keys), bool)
        first[1:] = self._keys[1:] != self._keys[:-1]
        if self._order is None:
            return first
        outer = np.empty_like(first)
        outer[self._order] = first
        return outer


def is_transfer(kinds: np.ndarray) -> np.ndarray:
    """Return which kinds of work are copies or sets."""
    return (kinds == COPY) | (kinds == SET)


def _keys(process: np.ndarray, correlation: np.ndarray) -> np.ndarray:
    return (process.astype(np.int64) << 32) | correlation


def columns(rows: Iterable[Sequence[int]], names: str) -> dict[str, np.ndarray]:
    """Columns of those names from rows of integers, in the order of the first column."""
    table = np.array(list(rows), np.int64).reshape(-1, len(names.split()))
    table = table[np.argsort(table[:, 0], kind="stable")]
    return {name: table[:, i] for i, name in enumerate(names.split())}


def timeline_of(
    work: Iterable[Sequence[int]],
    calls: Iterable[Sequence[int]],
    ranges: Iterable[Sequence[int]],
    names: Iterable[str],
    **facts: Any,
) -> Timeline:
    """Return a timeline from rows, in nanoseconds, with exclusive ends.

    Work is (start, end, device, kind, name, bytes, correlation, process), calls are (start, end, name, correlation,
    process, thread), ranges (start, end, name, process, thread).
    """
    called = columns(calls, "start end name correlation process thread")
    done = columns(work, "start end device kind name bytes correlation process")
    caller = Caller(called["process"], called["correlation"])
    sized = done["bytes"][is_transfer(done["kind"])]
    return Timeline(
        Work(done["start"], done["end"] - done["start"], done["device"], done["kind"], done["name"],
             caller.of(done["process"], done["correlation"]), sized),
        Calls(called["start"], called["end"] - called["start"], called["name"], called["process"], called["thread"],
              caller.outer()),
        Ranges(**columns(ranges, "start end name process thread")), tuple(names), **facts,
    )  # fmt: skip
