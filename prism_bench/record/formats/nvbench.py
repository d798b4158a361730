"""nvbench's JSON (`--json`, `--jsonbin`) as one record for each device: cold times, and batches as hot times.

What runs on the CPU only has its CPU time as wall time; without a device it is in a record of an unknown machine.
`--jsonbin` keeps every sample in a file next to the JSON; without that file a cold time is the only number of the JSON,
the median where it has a median, else the mean.
"""

from array import array
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from prism_bench.errors import ResultsError
from prism_bench.io.documents import bytes_of, whole_number
from prism_bench.record.formats.foreign import (
    Imported,
    ImportedRows,
    case,
    field,
    json_object,
    number,
    record,
    timing,
    within,
)
from prism_bench.record.measurement import Measurement
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.units import count_text

BACKEND = "nvbench"
_COLD = ("nv/cold/time/gpu/median", "nv/cold/time/gpu/q2", "nv/cold/time/gpu/mean")
_CPU = ("nv/cpu_only/time/cpu/median", "nv/cpu_only/time/cpu/q2", "nv/cpu_only/time/cpu/mean")
_CPU_SAMPLES = "nv/json/bin:nv/cpu_only/sample_times"
_HOT = ("nv/batch/time/gpu/mean",)
_SAMPLES = "nv/json/bin:nv/cold/sample_times"
_HIGHEST_CLOCK = 1e11
_NO_DEVICE = ""
_CLOCKS = "nv/json/freqs-bin:nv/cold/sample_freqs"


def recognised(data: object) -> bool:
    """Return whether the JSON is nvbench's."""
    return isinstance(data, dict) and "devices" in data and "benchmarks" in data


def read(path: Path) -> Imported:
    """Return the records of the file. nvbench writes no time: the file's last change is the guess."""
    data = json_object(path)
    devices, benchmarks = (field(data, name, list, str(path)) for name in ("devices", "benchmarks"))
    rows = ImportedRows(path)
    known: dict[str, dict[str, Any]] = {_NO_DEVICE: {}}
    for device in devices:
        number = str(field(device, "id", int, f"{path}: devices"))
        if number in known:
            raise ResultsError(f"{path}: devices: two have the id {number}")
        known[number] = {**device, "name": field(device, "name", str, f"{path}: devices")}
    for index, benchmark in enumerate(benchmarks):
        with rows.row(f"{path}: benchmarks[{index}]"):
            name = field(benchmark, "name", str, f"{path}: benchmarks[{index}]")
            for number, state in enumerate(field(benchmark, "states", list, f"{path}: {name}")):
                place = f"{path}: {name}: states[{number}]"
                with rows.row(place):
                    owner = _device(state, list(known), place)
                    rows.add(_case(name, state, path, place), index, owner)
    versions = _versions(data)
    records = [_record(known[owner], path, rows.cases(owner), *versions) for owner in rows.owners]
    return Imported(tuple(records), tuple(rows.left_out))


def _versions(data: dict[str, Any]) -> tuple[str, str]:
    """Return the versions of the JSON and of nvbench; `unknown` where the file lacks one."""
    versions = data["meta"].get("version") if isinstance(data.get("meta"), dict) else None
    tables = [versions.get(name) if isinstance(versions, dict) else None for name in ("json", "nvbench")]
    schema, nvbench = (
        str(table.get("string", "unknown")) if isinstance(table, dict) else "unknown" for table in tables
    )
    return schema, nvbench


def _record(device: dict[str, Any], path: Path, cases: list[CaseResult], schema: str, nvbench: str) -> RunRecord:
    facts = {"sm_count": device.get("number_of_sms"), "l2_bytes": device.get("l2_cache_size")}
    name = device.get("name")
    return record(BACKEND, name, path, cases, device=name, **facts, software={BACKEND: nvbench}, version=schema)


def _device(state: dict[str, Any], known: list[str], place: str) -> str:
    """Return the id of the state's device as text; _NO_DEVICE where it ran on the CPU only and names none."""
    if isinstance(state, dict) and "device" in state and state["device"] is None:
        return _NO_DEVICE
    device = str(field(state, "device", int, place))
    if device not in known:
        raise ResultsError(f"{place}: device {device} is none of the file's: {', '.join(known[1:])}")
    return device


def _case(benchmark: str, state: dict[str, Any], path: Path, place: str) -> CaseResult:
    axes = _fields(state.get("axis_values") or (), "name", place)
    axes = {name: axis["value"] for name, axis in axes.items()}
    if state.get("is_skipped", False) not in (True, False):
        raise ResultsError(f"{place}: 'is_skipped' is {state['is_skipped']!r:.40}, not true or false")
    if state.get("is_skipped"):
        reason = str(state.get("skip_reason") or "the file gives no reason")
        return case(benchmark, axes, (), status="skipped", reason=reason)
    listed = _fields(field(state, "summaries", (list, type(None)), place) or (), "tag", place)
    summaries = {
        tag: {name: item.get("value") for name, item in _fields(summary["data"], "name", f"{place}: {tag}").items()}
        for tag, summary in listed.items()
    }
    times = [
        _times("cold_time", summaries, path, place),
        _single("hot_time", _HOT, summaries, place),
        _times("wall_time", summaries, path, place),
    ]
    return case(benchmark, axes, [time for time in times if time])


def _fields(plain: Iterable[dict[str, Any]], key: str, place: str) -> dict[str, dict[str, Any]]:
    """Return the objects of a list by their names."""
    named: dict[str, dict[str, Any]] = {}
    for entry in plain:
        name = field(entry, key, str, place)
        if name in named:
            raise ResultsError(f"{place}: '{name:.60}' is there twice")
        named[name] = entry
    return named


def _times(metric: str, summaries: dict[str, dict[str, Any]], path: Path, place: str) -> Measurement | None:
    """Return the samples of cold times, or of wall times of the CPU; without their file the only number of the JSON."""
    is_cold = metric == "cold_time"
    samples = _numbers(summaries.get(_SAMPLES if is_cold else _CPU_SAMPLES), path, place)
    if not samples:
        return _single(metric, _COLD if is_cold else _CPU, summaries, place)
    clocks = _numbers(summaries.get(_CLOCKS), path, place) if is_cold else []
    if clocks and len(clocks) != len(samples):
        raise ResultsError(f"{place}: {count_text(len(clocks), 'clock')} of {count_text(len(samples), 'sample')}")
    if not all(0 < clock < _HIGHEST_CLOCK for clock in clocks):
        raise ResultsError(f"{place}: a clock is outside of 0 to {_HIGHEST_CLOCK:.0e} Hz")
    return replace(timing(metric, samples), clocks=(tuple(clocks),) if clocks else ())


def _single(metric: str, tags: Iterable[str], summaries: dict[str, dict[str, Any]], place: str) -> Measurement | None:
    """Return the only number of the JSON for the metric; None if it is missing."""
    tag = next((tag for tag in tags if tag in summaries), None)
    if tag is None:
        return None
    return timing(metric, [number(summaries[tag].get("value"), f"{place}: {tag}")], (f"one number: {tag}",))


def _numbers(named: dict[str, Any] | None, path: Path, place: str) -> list[float]:
    """Return the numbers in the file that the JSON names, in its folder; none where there is no such file."""
    if named is None:
        return []
    file = within(path.parent, named.get("filename"), f"{place}: filename")
    if not file.is_file():
        return []
    promised = whole_number(str(named.get("size")), f"{place}: size")
    content = bytes_of(file, "samples")
    if len(content) != 4 * promised:
        raise ResultsError(f"{file}: {len(content)} bytes; {count_text(promised, 'sample')} of 4 bytes were promised")
    return array("f", content).tolist()
