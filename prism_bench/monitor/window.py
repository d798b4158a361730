"""From the readings that fell into a window to its evidence."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median

from prism_bench.monitor.quantities import reasons_in
from prism_bench.monitor.reading import DeviceReading
from prism_bench.record.measurement import Evidence

SPANS = ("sm_clock", "memory_clock", "power", "power_average", "temperature", "utilization")
_THROTTLED = {"power_throttled": "power", "thermal_throttled": "thermal", "board_throttled": "board"}
_ERRORS = {"ecc_uncorrected": "uncorrected memory error", "ecc_corrected": "corrected memory error"}
# What a window compares with the state ahead of it, and therefore wants read when it opens.
COMPARED = (*_THROTTLED, *_ERRORS, "processes")


def evidence_in(
    readings: Sequence[DeviceReading],
    before: DeviceReading | None,
    seconds: float,
    *,
    xids: Iterable[int] = (),
    lost: str | None = None,
) -> Evidence:
    """Return the evidence of a window of `seconds`; `before` is the last reading ahead of it, for counters.

    `xids` are the Xids that fell into it; `lost` has the time since which the device does not answer.
    """
    spans = {name: span for name in SPANS if (span := _span(readings, name))}
    if "power" in spans:
        spans.pop("power_average", None)
    neighbours, busy = _neighbours(readings)
    chain = [before, *readings] if before else list(readings)
    return Evidence(
        seconds=seconds,
        readings=len(readings),
        spans=spans,
        reasons=_reasons(readings),
        throttled={word: grown for name, word in _THROTTLED.items() if (grown := _growth(chain, name)) > 0},
        neighbours=neighbours,
        busy_neighbours=busy,
        events=(*(f"Xid {number}" for number in xids), *_memory_errors(chain)),
        missing=_missing(readings, spans),
        lost=lost,
    )


def _span(readings: Sequence[DeviceReading], name: str) -> tuple[float, float, float] | None:
    values = [reading.values[name] for reading in readings if name in reading.values]
    return (min(values), float(median(values)), max(values)) if values else None


def _reasons(readings: Sequence[DeviceReading]) -> dict[str, float]:
    """Return the share of the readings in which each reason was given; a clock at its highest has none."""
    known = [reading for reading in readings if "clock_reasons" in reading.values]
    counts = Counter(word for reading in known for word in reasons_in(reading.values["clock_reasons"]))
    return {word: count / len(known) for word, count in counts.items()}


def _neighbours(readings: Sequence[DeviceReading]) -> tuple[tuple[str, ...], bool]:
    """Other processes, and whether one of them worked; who does not say is taken to work."""
    others = [process for reading in readings for process in reading.processes or () if process.ours is False]
    return tuple(dict.fromkeys(map(str, others))), any(process.busy is not False for process in others)


def _growth(chain: Sequence[DeviceReading], name: str) -> float:
    values = [reading.values[name] for reading in chain if name in reading.values]
    return values[-1] - values[0] if len(values) > 1 else 0.0


def _memory_errors(chain: Sequence[DeviceReading]) -> Iterator[str]:
    for name, words in _ERRORS.items():
        grown = _growth(chain, name)
        if grown > 0:
            yield f"{grown:.0f} {words}{'s' if grown > 1 else ''}"


def _missing(readings: Sequence[DeviceReading], spans: Mapping[str, object]) -> dict[str, str]:
    if not readings:
        return {"readings": "none fell into the window"}
    found = {}
    for reading in readings:
        found |= {name: reason for name, reason in reading.missing.items() if name in (*SPANS, "clock_reasons")}
        found |= {"neighbours": reading.missing["processes"]} if "processes" in reading.missing else {}
    known = {*spans, *(["power_average"] if "power" in spans else [])}
    return {name: reason for name, reason in found.items() if name not in known}
