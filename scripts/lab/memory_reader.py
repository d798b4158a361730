"""Reader of memory traces as a subject of the study that damages files."""

import gzip
from pathlib import Path
from random import Random

from lab.bending import Bent, bend_bytes, bend_json
from lab.reader_subjects import Facts, Subject
from prism_bench.extensions.memory import trace


def small_trace(folder: Path) -> Path:
    """Write a trace of four events; return its file."""
    events = (trace.Event(1, 4096, 0), trace.Event(2, 1 << 20, 1), trace.Event(1, 0, 0), trace.Event(2, 0, 1))
    return trace.save(trace.Trace("small", events, {"host": "bench-1"}), folder / "trace.json.gz")


def _facts(path: Path) -> Facts:
    events = trace.read(path).events
    return {f"{i} {name}": value for i, event in enumerate(events) for name, value in event._asdict().items()}


def _bend_packed(path: Path, draw: Random) -> Bent:
    """Bend the JSON in a gzip file."""
    path.write_bytes(gzip.decompress(path.read_bytes()))
    bent = bend_json(path, draw)
    path.write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    return bent


def subjects() -> tuple[Subject, ...]:
    """Return the reader of recorded allocations."""
    return (Subject("trace of allocations", small_trace, (_bend_packed, bend_bytes), _facts, lambda _: None),)
