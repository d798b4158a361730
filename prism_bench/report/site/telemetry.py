"""What was read of the device over a run, in as many columns as a picture has room for."""

from collections.abc import Iterator, Sequence
from statistics import median
from typing import TypedDict

from prism_bench.record.measurement import Evidence, Span
from prism_bench.record.run_record import RunRecord

COLUMNS = 160  # of a picture; a run has thousands of windows
_QUANTITIES = ("sm_clock", "memory_clock", "power", "power_average", "temperature", "utilization")


class Telemetry(TypedDict):
    """The windows of a run in `columns` of several, in the record's order.

    A column names its first and its last case. `quantities` holds for each column the lowest reading, the median of the
    windows' medians and the highest reading; None where nothing was read.
    """

    windows: int
    columns: list[tuple[str, str]]
    quantities: dict[str, list[Span | None]]


def telemetry(record: RunRecord) -> Telemetry:
    """Return the telemetry of all windows but those of launch times."""
    windows = list(_windows(record))
    columns = [windows[start:end] for start, end in _cuts(len(windows))]
    quantities = [name for name in _QUANTITIES if any(name in evidence.spans for _, evidence in windows)]
    return {
        "windows": len(windows), "columns": [(column[0][0], column[-1][0]) for column in columns],
        "quantities": {name: [band_of([evidence.spans.get(name) for _, evidence in column]) for column in columns]
                       for name in quantities},
    }  # fmt: skip


def _windows(record: RunRecord) -> Iterator[tuple[str, Evidence]]:
    for case in record.cases:
        for one in case.measurements:
            if one.metric != "launch_time":
                yield from ((case.name, evidence) for evidence in one.evidence)


def _cuts(count: int) -> list[tuple[int, int]]:
    """Return where each column starts and ends: at most `COLUMNS` of equal width, give or take one."""
    wide = min(count, COLUMNS)
    places = [count * column // wide for column in range(wide + 1)] if wide else []
    return list(zip(places, places[1:], strict=False))


def band_of(spans: Sequence[Span | None]) -> Span | None:
    """Return the lowest reading, the median of the windows' medians and the highest; None where none is known."""
    known = [span for span in spans if span is not None]
    if not known:
        return None
    return min(span[0] for span in known), median(span[1] for span in known), max(span[2] for span in known)
