"""One record as points: per measurement its median and what tells whether, and with what, it may be compared.

The medians are read straight from the checked file. They are those of `Measurement.median`, in a fifth of the time
that it takes to build its objects; a thousand records are read before a trend can be told.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from prism_bench.record_ranges import impossible_beside_times, impossible_times
from prism_bench.record_schema import CaseFile, CodeFile, MeasurementFile, RecordFile
from prism_bench.run_record import uuids_of
from prism_bench.strict_json import json_line

# Columns of text, which repeat, and of numbers with their types. `value` is the median in seconds; `code` sets the
# case's machine code and launches apart from others; `doubt` says why the point cannot be trusted, empty if it can.
WORDS = ("case", "metric", "subject", "code", "doubt")
NUMBERS = {"value": "f8", "clock": "f4", "samples": "i4", "throttled": "i4"}
_MOST, _HIGHEST_CLOCK = 2**31 - 1, 1e30  # what the types of the columns hold


@dataclass(frozen=True)
class Facts:
    """What a record says about itself: whose, when and under which circumstances its points were measured."""

    file: str
    machine: str
    backend: str
    created: str
    commit: str | None
    dirty: bool
    complete: bool
    device: str
    software: dict
    protocol: dict


def points_in(record: RecordFile, file: str) -> tuple[Facts, dict[str, list]]:
    """The facts of a checked record, known as `file`, and its points as columns of equal length.

    Cases and measurements without samples are left out.
    """
    rows = [row for case in record.cases for row in _rows(case)]
    columns = zip(*rows, strict=True) if rows else [()] * len((*WORDS, *NUMBERS))
    return _facts(record, file), dict(zip((*WORDS, *NUMBERS), map(list, columns), strict=True))


def _facts(record: RecordFile, file: str) -> Facts:
    units = uuids_of({"uuid": record.machine.uuid}, [{"uuid": part.uuid} for part in record.parts])
    return Facts(
        file=file,
        machine=record.machine.id,
        backend=record.backend,
        created=utc(record.created),
        commit=record.commit,
        dirty=record.dirty,
        complete=record.complete,
        device="+".join(units) or str(record.machine.device or ""),
        software={name: str(version) for name, version in record.software.items()},
        protocol=record.protocol,
    )


def utc(text: str) -> str:
    """The time in ISO 8601 without a zone, so that times sort as text; one that names no zone is UTC already."""
    time = datetime.fromisoformat(text)
    return (time.astimezone(UTC) if time.tzinfo else time).replace(tzinfo=None).isoformat(timespec="seconds")


def _rows(case: CaseFile) -> Iterator[tuple]:
    code = _code(case.code)
    for one in case.measurements:
        ordered = [(sorted(group.counts), group.unit) for group in one.processes if group.counts]
        if ordered:
            value = _median(sorted(_median(counts) * unit for counts, unit in ordered))
            yield (
                case.name, one.metric, one.subject, code, _doubt(case, one, ordered),
                value if math.isfinite(value) else 0.0, _clock(one.clocks),
                min(sum(len(counts) for counts, _ in ordered), _MOST), min(one.throttled, _MOST),
            )  # fmt: skip


def _median(ordered: Sequence[float]) -> float:
    """The median of ordered values, without the checks of `statistics.median`: there are millions to be found."""
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def _clock(processes: Sequence[Sequence[float]]) -> float:
    """The mean clock in hertz, 0 where none was read: as good as the median here, and ten times as quick."""
    count = sum(map(len, processes))
    mean = sum(map(sum, processes)) / count * 1e6 if count else 0.0
    return mean if abs(mean) < _HIGHEST_CLOCK else 0.0


def _code(code: CodeFile) -> str:
    """What tells one machine code, and the way it is launched, from another; empty where the record does not know."""
    return json_line([code.sass, code.launches, code.shared_bytes]) if code.sass else ""


def _doubt(case: CaseFile, one: MeasurementFile, ordered: Sequence[tuple[list[int], float]]) -> str:
    """Why the measurement, whose samples are `ordered`, cannot be trusted; empty if it can. As `impossible` says it."""
    if case.status != "ok":
        return f"the case is {case.status}: {case.reason or 'the record gives no reason'}"
    if not one.valid:
        return one.reason or "invalid; the record gives no reason"
    for counts, unit in ordered:
        reason = impossible_times(counts[0] * unit, counts[-1] * unit)
        if reason:
            return reason
    return impossible_beside_times(case, one) or ""
