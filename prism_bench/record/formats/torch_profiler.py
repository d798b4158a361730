"""Traces of PyTorch's profiler (`export_chrome_trace`, `tensorboard_trace_handler`) as one record for each GPU.

As pytorch/kineto writes them (`libkineto/src/output_json.cpp`, `CuptiActivity.cpp`), plain or gzip: a launch of a
kernel is an event of the category `kernel` with its duration `dur` in microseconds and, in `args`, its device, grid and
block; `deviceProperties` has the names of the GPUs. Times of events count from `baseTimeNanoseconds`, in older files
without it from 1970. A trace names neither host nor commit.

A kernel with its grid and block is a case, and each launch a sample, the first ones too. The application decided what
was in the caches: these are neither cold nor hot times.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from prism_bench.errors import ResultsError
from prism_bench.record.formats.foreign import (
    Imported,
    ImportedRows,
    axes_of,
    case,
    field,
    json_object,
    record,
    timing,
)

BACKEND = "torch-profiler"
_NOTE = "in the application's run, with caches as they were"
_EARLIEST, _LATEST = datetime(2016, 1, 1, tzinfo=UTC).timestamp(), datetime(2200, 1, 1, tzinfo=UTC).timestamp()
_Shape = tuple[tuple[str, str], ...]


def recognised(data: object) -> bool:
    """Return whether the JSON is a trace."""
    return isinstance(data, dict) and isinstance(data.get("traceEvents"), list)


def read(path: Path) -> Imported:
    """Return the records of the trace; a ResultsError where it holds no kernel."""
    data, rows = json_object(path), ImportedRows(path)
    launches: dict[tuple[int, str, _Shape], list[float]] = {}
    starts: list[float] = []
    for index, event in enumerate(field(data, "traceEvents", list, str(path))):
        if isinstance(event, dict) and event.get("ph") == "X" and str(event.get("cat")).lower() == "kernel":
            place = f"{path}: traceEvents[{index}]"
            with rows.row(place):
                facts = field(event, "args", dict, place)
                key = field(facts, "device", int, f"{place}: args"), field(event, "name", str, place), _shape(facts)
                launches.setdefault(key, []).append(field(event, "dur", (int, float), place) * 1e-6)
                starts.append(field(event, "ts", (int, float), place))
    if not launches and not rows.left_out:
        raise ResultsError(f"{path}: the trace has no GPU kernel; profile with ProfilerActivity.CUDA")
    for (device, name, shape), durations in launches.items():
        samples = rows.possible(durations, "launches", f"{path}: {name:.80}")
        rows.add(case(name, axes_of(shape), [timing("wall_time", samples, (_NOTE,))]), owner=str(device))
    created = _moment(data.get("baseTimeNanoseconds"), min(starts, default=0.0)) or path
    versions = {name: str(value) for name, value in data.items() if name.endswith("_version") and value}
    records = [
        record(BACKEND, name or None, created, rows.cases(owner), device=name or None, sm_count=multiprocessors,
               software=versions, version=data.get("schemaVersion", 1))
        for owner in rows.owners
        for name, multiprocessors in [_device(data.get("deviceProperties"), owner)]
    ]  # fmt: skip
    return Imported(tuple(records), tuple(rows.left_out))


def _shape(facts: dict[str, Any]) -> _Shape:
    """Return grid and block as the axes' texts, `128x1x1`, where the event has them."""
    known = [(name, facts[name]) for name in ("grid", "block") if isinstance(facts.get(name), list)]
    return tuple((name, "x".join(map(str, sides))) for name, sides in known)


def _moment(base: object, first: float) -> datetime | None:
    """Return when the first kernel began, by `ts` in microseconds; None where that is no time of a profiler."""
    offset = base if isinstance(base, int) else 0
    seconds = offset * 1e-9 + first * 1e-6
    return datetime.fromtimestamp(seconds, UTC) if _EARLIEST <= seconds <= _LATEST else None


def _device(listed: object, owner: str) -> tuple[str, int | None]:
    """Return the GPU's name and number of multiprocessors; without a name it is not known."""
    for entry in cast("list[object]", listed) if isinstance(listed, list) else []:
        if isinstance(entry, dict) and str(entry.get("id")) == owner:
            known = cast("dict[str, Any]", entry)
            return str(known.get("name") or ""), known.get("numSms")
    return "", None
