"""Traces of allocations: recorded, counted, or made up."""

import gzip
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, cast

from prism_bench.errors import ResultsError
from prism_bench.extensions.memory.pool import class_of
from prism_bench.io.documents import content_of, json_of, json_text, keys_in
from prism_bench.io.files import write_atomically

# Tracker of a program's allocations: their number, bytes, repeated sizes, and whether a pool helps.
#
# The counts and their names are the published tracker's. Of its two percentages the second is a hundred less the first,
# so real fragmentation is reported too, if the allocator provides it.

_LEAST = 4096  # bytes; the published tracker looks away from less
_HIGH, _MEDIUM = 50.0, 25.0  # per cent of reuse potential
_TOP_IN_JSON = 10
_PUBLISHED_WARNING = 50.0


@dataclass(frozen=True)
class Tracked:
    """Counts of allocations of at least the tracker's least size, of `unique` sizes in `classes` of powers of two.

    `allocated_bytes` is over all of them, `current` and `peak` are bytes in use. `synthetic` means that no program made
    them.

    `internal` is the share of the memory in use at the peak that rounding adds, `external` the share of the free memory
    that is not in one piece, at its worst; None if the allocator does not report it.
    """

    allocations: int
    repeated: int
    unique: int
    allocated_bytes: int
    current: int
    peak: int
    top: tuple[tuple[int, int], ...]
    classes: int = 0
    ignored: int = 0
    internal: float | None = None
    external: float | None = None
    synthetic: bool = False

    @property
    def reuse_potential(self) -> float:
        """Per cent of the allocations whose size was requested before; 0 without allocations."""
        return 100 * self.repeated / self.allocations if self.allocations else 0.0

    @property
    def class_reuse(self) -> float:
        """Per cent of the allocations whose size class was requested before, which a pool of classes could reuse."""
        return 100 * (1 - self.classes / self.allocations) if self.allocations else 0.0

    @property
    def unique_percent(self) -> float:
        """The published "fragmentation": per cent of the allocations whose size was new. It adds no information."""
        return 100 * self.unique / self.allocations if self.allocations else 0.0

    @property
    def advice(self) -> str:
        """`high`, `medium` or `low`, by the published thresholds: whether keeping blocks pays."""
        if self.reuse_potential > _HIGH:
            return "high"
        return "medium" if self.reuse_potential > _MEDIUM else "low"

    @property
    def warns(self) -> bool:
        """Whether the published tracker would warn of fragmentation."""
        return self.unique_percent > _PUBLISHED_WARNING

    def plain(self) -> dict[str, Any]:
        """Return JSON values, the published keys first."""
        return {
            "total_allocations": self.allocations,
            "repeated_allocations": self.repeated,
            "reuse_potential_percent": self.reuse_potential,
            "unique_sizes": self.unique,
            "fragmentation_percent": self.unique_percent,
            "total_bytes_allocated": self.allocated_bytes,
            "current_memory_bytes": self.current,
            "peak_memory_bytes": self.peak,
            "top_allocation_sizes": [list(pair) for pair in self.top],
            "class_reuse_percent": self.class_reuse,
            "ignored_allocations": self.ignored,
            "internal_fragmentation": self.internal,
            "external_fragmentation": self.external,
            "advice": self.advice,
            "synthetic": self.synthetic,
        }


class Tracker:
    """Counter of allocations and releases; those of sizes below `least` are only counted as ignored."""

    def __init__(self, least: int = _LEAST) -> None:
        self._least, self._ignored = least, 0
        self._sizes: Counter[int] = Counter()
        self._asked = self._held = self._peak = self._held_at_peak = 0
        self._reports = True
        self._external: float | None = None

    def allocated(self, size: int, held: int | None = None) -> None:
        """Count `size` bytes, for which the allocator set `held` aside, if it reports that."""
        if size < self._least:
            self._ignored += 1
            return
        self._sizes[size] += 1
        self._asked += size
        self._held += held or 0
        self._reports &= held is not None
        if self._asked > self._peak:
            self._peak, self._held_at_peak = self._asked, self._held

    def freed(self, size: int, held: int | None = None) -> None:
        """Count the release of an allocation with these numbers."""
        if size >= self._least:
            self._asked -= size
            self._held -= held or 0

    def saw_fragmentation(self, share: float) -> None:
        """Note the share of the allocator's free memory that is not in its largest piece."""
        self._external = max(self._external or 0.0, share)

    def tracked(self, synthetic: bool = False) -> Tracked:
        """Return the counts so far."""
        count = self._sizes.total()
        rounding = 1 - self._peak / self._held_at_peak if self._reports and self._held_at_peak else None
        return Tracked(
            allocations=count,
            repeated=count - len(self._sizes),
            unique=len(self._sizes),
            allocated_bytes=sum(size * times for size, times in self._sizes.items()),
            current=self._asked,
            peak=self._peak,
            top=tuple(self._sizes.most_common(_TOP_IN_JSON)),
            classes=len({class_of(size) for size in self._sizes}),
            ignored=self._ignored,
            internal=rounding,
            external=self._external,
            synthetic=synthetic,
        )


# Traces: every allocation and release of a run, in order, so that allocators can be sent the same requests.

_SCHEMA = 1
_LARGEST = 1 << 62
_MOST_STREAMS = 1 << 20


class Event(NamedTuple):
    """An allocation of `size` bytes on the stream numbered `stream`, or with `size` 0 the release of `id` there."""

    id: int
    size: int
    stream: int


@dataclass(frozen=True)
class Trace:
    """Requests of one run, with its `name` and the `facts` of where it was recorded."""

    name: str
    events: tuple[Event, ...]
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def allocations(self) -> int:
        return sum(event.size > 0 for event in self.events)

    @property
    def streams(self) -> int:
        """The number of streams."""
        return 1 + max((event.stream for event in self.events), default=0)

    def tracked(self, least: int = 1) -> Tracked:
        """Return the tracker's counts over the whole trace."""
        tracker, sizes = Tracker(least), {}
        for event in self.events:
            if event.size:
                sizes[event.id] = event.size
                tracker.allocated(event.size)
            else:
                tracker.freed(sizes.pop(event.id))
        return tracker.tracked()

    def balanced(self) -> "Trace":
        """Return the trace with a release at its end of each allocation that is still in use, in their order."""
        live: dict[int, int] = {}
        for event in self.events:
            if event.size:
                live[event.id] = event.stream
            else:
                live.pop(event.id, None)
        rest = tuple(Event(id, 0, stream) for id, stream in live.items())
        return Trace(self.name, self.events + rest, self.facts)


def save(trace: Trace, path: Path) -> Path:
    """Write the trace as compressed JSON, whole or not at all."""
    plain = {
        "schema": _SCHEMA,
        "name": trace.name,
        "facts": trace.facts,
        "events": [list(event) for event in trace.events],
    }
    text = json_text(plain)
    try:
        write_atomically(path, gzip.compress(text.encode(), 9, mtime=0))
    except OSError as error:
        raise ResultsError(f"cannot write {path}: {error.strerror}") from error
    return path


def trace_title(path: Path) -> str | None:
    """Return what the file is where it is a trace of allocations; else None."""
    return "a trace of allocations" if {"events", "facts"} <= keys_in(content_of(path, "JSON")) else None


def read(path: Path) -> Trace:
    """Return the trace at `path`; a ResultsError names it where it is missing, cut or inconsistent."""
    try:
        plain = cast("dict[str, Any]", json_of(path, "a readable trace"))
        if plain["schema"] > _SCHEMA:
            raise ResultsError(
                f"{path}: schema {plain['schema']} is newer than {_SCHEMA}; upgrade prism-bench to read it"
            )
        events = tuple(map(_event, plain["events"]))
        trace = Trace(str(plain["name"]), events, dict(plain["facts"]))
    except FileNotFoundError:
        raise ResultsError(f"{path}: no such trace") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ResultsError(f"{path}: not a readable trace ({type(error).__name__}: {error})") from error
    live: set[int] = set()
    for place, event in enumerate(trace.events):  # an id is allocated before its release, and once at a time
        if event.size < 0 or (event.id in live) == (event.size > 0):
            raise ResultsError(f"{path}: event {place} does not follow from those before it: {tuple(event)}")
        (live.add if event.size else live.remove)(event.id)
    return trace


def _event(plain: object) -> Event:
    """Return the event of three whole numbers; ValueError for anything else, or numbers that are too large."""
    if not isinstance(plain, list) or not all(type(item) is int and -_LARGEST < item < _LARGEST for item in plain):
        raise ValueError(f"an event is {plain!r:.60}, not [id, size, stream]")
    event = Event(*plain)
    if not 0 <= event.stream < _MOST_STREAMS:
        raise ValueError(f"stream {event.stream}; there are fewer than {_MOST_STREAMS}")
    return event


# A synthetic trace: sizes and life times at random, so that no allocator can be tuned for it.

_SMALLEST, LARGEST = 9, 23  # powers of two: 512 B to 8 MiB
IN_USE = 200


def random_trace(allocations: int = 5000, seed: int = 0) -> Trace:
    """Return a trace of `allocations`, about `IN_USE` of them in use at a time, all of them released at the end."""
    random, live, events = Random(seed), [], []
    for id in range(allocations):
        size = int(2 ** random.uniform(_SMALLEST, LARGEST))
        events.append(Event(id, size, 0))
        live.append(id)
        while live and random.random() < len(live) / (2 * IN_USE):
            place = random.randrange(len(live))
            live[place], live[-1] = live[-1], live[place]
            events.append(Event(live.pop(), 0, 0))
    return Trace("random", tuple(events), {"synthetic": True, "seed": seed}).balanced()
