"""A timeline in one file (NumPy's .npz), so that one process may record it and another read it."""

import json
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from prism_bench.errors import ResultsError
from prism_bench.io.documents import json_text
from prism_bench.profilers.nsys_checks import LATEST, LONGEST, MOST_DEVICES
from prism_bench.profilers.timeline import GRAPH, KERNEL, Calls, Ranges, Timeline, Work

LARGEST = 256_000_000  # bytes of arrays, unpacked: some five million kernels with their calls
_PARTS = {"work": Work, "calls": Calls, "ranges": Ranges}


def save(timeline: Timeline, path: Path) -> None:
    """Write the timeline to `path`."""
    arrays = {f"{part}.{name}": column for part in _PARTS for name, column in vars(getattr(timeline, part)).items()}
    facts = {name: value for name, value in vars(timeline).items() if name not in _PARTS}
    with path.open("wb") as file:
        np.savez_compressed(file, facts=json_text(facts), **arrays)


def load(path: Path) -> Timeline:
    """Return the timeline in `path`; a ResultsError where it is none, is damaged, or would take too much memory."""
    try:
        _require_size(path)
        with np.load(path, allow_pickle=False) as found:
            parts = {part: kind(**_columns(found, part)) for part, kind in _PARTS.items()}
            facts = json.loads(str(found["facts"]))
        timeline = Timeline(**parts, **{**facts, "names": tuple(facts["names"]), "notes": tuple(facts["notes"])})
        _refuse_broken(timeline)
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError, MemoryError) as error:
        raise ResultsError(f"{path}: not a recorded timeline ({error})") from error
    except (ArithmeticError, AttributeError, LookupError, RecursionError, RuntimeError, TypeError, ValueError) as error:
        raise ResultsError(f"{path}: not a recorded timeline ({type(error).__name__}: {error})") from error
    return timeline


def _require_size(path: Path) -> None:
    """Require that the unpacked file fits: each member declares its size, and NumPy reads no more than that."""
    with zipfile.ZipFile(path) as packed:
        size = sum(member.file_size for member in packed.infolist())
    if size > LARGEST:
        raise ValueError(f"{size / 1e6:.0f} MB of data; the limit is {LARGEST / 1e6:.0f} MB")


def _columns(found: Mapping[str, np.ndarray], part: str) -> dict[str, np.ndarray]:
    return {key.removeprefix(f"{part}."): found[key] for key in found if key.startswith(f"{part}.")}


def _refuse_broken(timeline: Timeline) -> None:
    """Raise a ValueError for columns that do not fit together, and for impossible times and places."""
    _columns_of(timeline.work, bytes=len(timeline.work.transfers))
    _columns_of(timeline.calls)
    _columns_of(timeline.ranges)
    names, calls = len(timeline.names), len(timeline.calls)
    for part in (timeline.work, timeline.calls, timeline.ranges):
        _within(part.name, -1, names - 1, "a name")
        _within(part.start, -LATEST, LATEST, "a start")
    for part in (timeline.work, timeline.calls):
        _within(part.length, 0, LONGEST, "a length")
    _within(timeline.ranges.end - timeline.ranges.start, 0, LONGEST, "a range's length")
    _within(timeline.work.call, -1, calls - 1, "a call")
    _within(timeline.work.kind, KERNEL, GRAPH, "a kind of work")
    _within(timeline.work.device, 0, MOST_DEVICES - 1, "a device")
    _within(timeline.work.bytes, 0, 1 << 50, "a number of bytes")
    if not isinstance(timeline.overhead, int) or timeline.overhead < 0:
        raise ValueError("the overhead is no number of nanoseconds")
    words = (*timeline.names, *timeline.notes, timeline.source, timeline.tool, timeline.version or "")
    if not all(isinstance(word, str) for word in words):
        raise ValueError("a name is no text")


def _columns_of(part: Work | Calls | Ranges, **lengths: int) -> None:
    """Columns of whole numbers, each as long as the first unless `lengths` has another length for it."""
    for name, column in vars(part).items():
        wanted = lengths.get(name, len(part))
        if column.ndim != 1 or column.dtype.kind not in "iub" or len(column) != wanted:
            raise ValueError(f"column '{name}' is not one of {wanted} whole numbers")


def _within(column: np.ndarray, least: int, most: int, words: str) -> None:
    if len(column) and not (least <= int(column.min()) and int(column.max()) <= most):
        raise ValueError(f"{words} is outside of {least} to {most}")
