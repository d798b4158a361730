"""Traces: every allocation and release of a run, in order, so that allocators can be asked for the same again."""

import gzip
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, cast

from prism_bench.errors import ResultsError
from prism_bench.extensions.memory.tracker import Tracked, Tracker
from prism_bench.io.documents import json_of, json_text
from prism_bench.io.files import write_atomically

SCHEMA = 1
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
        """How many streams it uses."""
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
        """Return the same, with what is still in use at its end released there in the order of its allocation."""
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
    plain = {"schema": SCHEMA, "name": trace.name, "facts": trace.facts, "events": [list(one) for one in trace.events]}
    text = json_text(plain)
    try:
        write_atomically(path, gzip.compress(text.encode(), 9, mtime=0))
    except OSError as error:
        raise ResultsError(f"cannot write {path}: {error.strerror}") from error
    return path


def read(path: Path) -> Trace:
    """Return the trace at `path`; a ResultsError naming it where it is missing, cut, or none that holds together."""
    try:
        plain = cast("dict[str, Any]", json_of(path, "a readable trace"))
        if plain["schema"] > SCHEMA:
            raise ResultsError(
                f"{path}: schema {plain['schema']} is newer than {SCHEMA}; upgrade prism-bench to read it"
            )
        events = tuple(_event(one) for one in plain["events"])
        trace = Trace(str(plain["name"]), events, dict(plain["facts"]))
    except FileNotFoundError:
        raise ResultsError(f"{path}: no such trace") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ResultsError(f"{path}: not a readable trace ({type(error).__name__}: {error})") from error
    _refuse_broken(trace, path)
    return trace


def _event(plain: object) -> Event:
    """Return the event of three whole numbers; a ValueError where they are none or too large."""
    if not isinstance(plain, list) or not all(type(one) is int and -_LARGEST < one < _LARGEST for one in plain):
        raise ValueError(f"an event is {plain!r:.60}, not [id, size, stream]")
    event = Event(*plain)
    if not 0 <= event.stream < _MOST_STREAMS:
        raise ValueError(f"stream {event.stream}; there are fewer than {_MOST_STREAMS}")
    return event


def _refuse_broken(trace: Trace, path: Path) -> None:
    """Require that what is released was allocated before, once, and that nothing is allocated twice under one id."""
    live: set[int] = set()
    for place, event in enumerate(trace.events):
        known = event.id in live
        if event.size < 0 or known == (event.size > 0):
            raise ResultsError(f"{path}: event {place} does not follow from those before it: {tuple(event)}")
        (live.add if event.size else live.remove)(event.id)
