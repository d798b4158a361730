"""Shared parts of the readers of other tools' results: checked JSON, and records made of few facts."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from prism_bench.errors import ResultsError
from prism_bench.files import confined
from prism_bench.foreign_files import bytes_of
from prism_bench.identity import slug, timestamp
from prism_bench.measurement import Measurement
from prism_bench.run_record import IMPORTED, CaseResult, RunRecord
from prism_bench.units import count_text

_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?|[+-]?(inf|nan)", re.IGNORECASE)
SECONDS = {"s": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


@dataclass(frozen=True)
class Imported:
    """The `records` that a file or folder held, and what was `left_out` of them, in words with the place."""

    records: tuple[RunRecord, ...]
    left_out: tuple[str, ...] = ()


def read_json(path: Path) -> object:
    """Return the JSON in the file, with `NaN` and `Infinity`, as asv writes it; raise a ResultsError for other text."""
    data = bytes_of(path, "JSON")
    try:
        return json.loads(data, object_pairs_hook=_distinct)
    except (ValueError, RecursionError) as error:
        raise ResultsError(f"{path}: not readable JSON ({error})") from error


def json_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in the file; raise a ResultsError for other content."""
    found = read_json(path)
    if not isinstance(found, dict):
        raise ResultsError(f"{path}: not a JSON object")
    return cast("dict[str, Any]", found)


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return the object of these fields; refuse a repeated one, which has two values."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"the field '{twice:.40}' is there twice in one object")
    return found


def number(value: object, place: str) -> float:
    """Return a number, or one written as text as C++ writes it; a ResultsError names the place of anything else."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return float(value)
    raise ResultsError(f"{place} is {value!r:.40}, not a number")


def within(folder: Path, name: object, place: str) -> Path:
    """Return the file `name` in the folder or below; a ResultsError where the name leads out of it."""
    if not isinstance(name, str) or not name or Path(name).is_absolute():
        raise ResultsError(f"{place} is {name!r:.80}, not a name in the folder {folder}")
    try:
        return confined(folder, name)
    except ResultsError as error:
        raise ResultsError(f"{place}: {error}") from None


def field(plain: object, name: str, kind: type | tuple[type, ...], place: str) -> Any:
    """Return the field of a JSON object; a ResultsError names the place where it is missing or of another kind."""
    if not isinstance(plain, dict) or name not in plain:
        raise ResultsError(f"{place}: '{name}' is missing")
    value: object = plain[name]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ResultsError(f"{place}: '{name}' is {value!r:.40}")
    return value


def record(
    backend: str, machine: str, created: datetime, cases: Iterable[CaseResult], commit: str | None = None, **facts: Any
) -> RunRecord:
    """Return a record of another tool's results; `facts` are facts of the machine, `software` and `version`.

    `committed`, a datetime, is when the commit was made.
    """
    software, version, committed = facts.pop("software", {}), facts.pop("version"), facts.pop("committed", None)
    return RunRecord(
        created=timestamp(created), backend=backend, machine={"id": slug(machine), **facts}, software=software,
        protocol={"version": f"{backend} {version}"}, cases=tuple(cases), commit=commit, catalogue=backend,
        committed=timestamp(committed) if committed else None,
    )  # fmt: skip


def case(kernel: str, axes: Mapping[str, object], measurements: Iterable[Measurement], **changes: Any) -> CaseResult:
    """Return a case of a foreign benchmark, `kernel[axis=value,...]`, whose bytes and operations are unknown."""
    inside = ",".join(f"{axis}={value}" for axis, value in axes.items())
    fields = {
        "name": f"{kernel}[{inside}]", "kernel": kernel, "family": IMPORTED, "label": IMPORTED,
        "workload": dict(axes), "bytes": 0, "flops": None, "status": "ok", "measurements": tuple(measurements),
    }  # fmt: skip
    return CaseResult(**{**fields, **changes})


def timing(metric: str, samples: Iterable[float], notes: tuple[str, ...] = ()) -> Measurement:
    """Return a measurement of one process; invalid, and with the reason, where a sample is no time."""
    found = tuple(float(sample) for sample in samples)
    sound = tuple(sample for sample in found if math.isfinite(sample) and sample > 0)
    if len(sound) == len(found):
        return Measurement(metric, "kernel", (found,) if found else (), notes=notes)
    reason = f"{len(found) - len(sound)} of {count_text(len(found), 'sample')} are no times above zero"
    return Measurement(metric, "kernel", (sound,) if sound else (), valid=False, reason=reason, notes=notes)


def moment(text: str, place: str) -> datetime:
    """Return the time in ISO 8601; one without a zone is taken for UTC."""
    try:
        found = datetime.fromisoformat(re.sub(r"([+-]\d\d)(\d\d)$", r"\1:\2", text))
    except ValueError:
        raise ResultsError(f"{place}: '{text}' is no time of ISO 8601") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
