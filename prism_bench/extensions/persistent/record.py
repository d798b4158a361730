"""Records of items' times, one JSON file each: the time until an answer, and the share of one of many items."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from prism_bench.errors import ResultsError
from prism_bench.io.files import Schema

SCHEMA = Schema("a record of items' times", 1, "scripts/persistent")
EMPTY = "empty"  # the case of an item without work
GRAPH, LAUNCH = "graph", "launch"  # forms of answer that need no executor: a replayed graph, plain launches


@dataclass(frozen=True)
class ItemSpread:
    """Seconds of `count` samples: their median, quartiles and 99th percentile."""

    median: float
    low: float
    high: float
    p99: float
    count: int

    @classmethod
    def of(cls, samples: Sequence[float]) -> "ItemSpread":
        """Return the spread of at least one sample."""
        low, median, high, p99 = (float(f"{one:.4g}") for one in np.percentile(samples, (25, 50, 75, 99)))
        return cls(median, low, high, p99, len(samples))


@dataclass(frozen=True)
class ItemTimes:
    """Times of a case in a form.

    The form is `persistent`, `launches` (the executor's fallback), `graph` or `launch` (in the host's own process).
    `answer` is the time from the host's request until it knows that all is done, one item at a time; `each` is an
    item's share of many that are submitted at once. `error` is the largest relative one against the reference.
    """

    case: str
    form: str
    answer: ItemSpread
    each: ItemSpread
    error: float | None = None


@dataclass(frozen=True)
class LatencyRecord:
    """Everything that one run measured on one machine."""

    machine: dict[str, Any]
    created: str
    commit: str | None
    rows: tuple[ItemTimes, ...]

    def row(self, case: str, form: str) -> ItemTimes | None:
        """Return the case in that form, or None."""
        return next((row for row in self.rows if (row.case, row.form) == (case, form)), None)

    def write(self, path: Path) -> None:
        """Write the record as JSON, completely or not at all; ResultsError where that fails."""
        SCHEMA.write(path, asdict(self))


def read_latencies(path: Path) -> LatencyRecord:
    """Return the record in that file; ResultsError where it is none."""
    plain = SCHEMA.read(path)
    if plain is None:
        raise ResultsError(f"{path}: no such file")
    return SCHEMA.kind_of(plain, LatencyRecord, path)


def newest(folder: Path) -> Path | None:
    """Return the file of the newest record below `folder`; None where there is none."""
    found = sorted(folder.glob("*/*.json"), key=lambda path: path.name)
    return found[-1] if found else None
