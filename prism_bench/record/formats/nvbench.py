"""nvbench's JSON (`--json`, `--jsonbin`) as records, and a record as such a file.

Each device is a record: cold times, and batches as hot times.

What runs on the CPU only has its CPU time as wall time; without a device it is in a record of an unknown machine.
`--jsonbin` keeps every sample in a file next to the JSON; without that file a cold time is the only number of the JSON,
the median where it has a median, else the mean.

An exported file has what nvbench's scripts read (NVIDIA/nvbench, `python/scripts`: `nvbench_compare.py`, its legacy
and robust forms, `nvbench_histogram.py`, `nvbench_json_summary.py`; fields as in `nvbench/json_printer.cu`). nvbench
keeps samples as float32, and of a batch only the mean; so does an exported file.
"""

import hashlib
import struct
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, quantiles, stdev
from typing import Any

from prism_bench.errors import ResultsError
from prism_bench.io.documents import bytes_of, whole_number
from prism_bench.io.files import write_atomically
from prism_bench.record.formats.foreign import (
    Imported,
    ImportedRows,
    case,
    field,
    json_object,
    number,
    record,
    single,
    timing,
    trusted,
    within,
    write_json,
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
    return single(metric, number(summaries[tag].get("value"), f"{place}: {tag}"), tag)


def _numbers(named: dict[str, Any] | None, path: Path, place: str) -> list[float]:
    """Return the numbers in the file that the JSON names, in its folder; none where there is no such file.

    Where nvbench could not write the file, it leaves out name and size.
    """
    if named is None or not {"filename", "size"} & named.keys():
        return []
    file = within(path.parent, named.get("filename"), f"{place}: filename")
    if not file.is_file():
        return []
    promised = whole_number(str(named.get("size")), f"{place}: size")
    content = bytes_of(file, "samples")
    if len(content) != 4 * promised:
        raise ResultsError(f"{file}: {len(content)} bytes; {count_text(promised, 'sample')} of 4 bytes were promised")
    return array("f", content).tolist()


# A record as a file of nvbench.

_JSON_VERSION = {"major": 1, "minor": 0, "patch": 0, "string": "1.0.0"}
_DEVICE = {"sm_version": "compute_capability", "number_of_sms": "sm_count", "l2_cache_size": "l2_bytes"}


def write(record: RunRecord, path: Path) -> Path:
    """Write the kernels' cold and hot times to the file, and the samples into the folder `<file>-bin` next to it.

    A sample file is named after its content and written first, so that a reader of the JSON, old or new, finds the
    samples that belong to it. A ResultsError where the record has no cold or hot time, or a file cannot be written.
    """
    listed = [(result, *trusted(result, ("cold_time", "hot_time"))) for result in record.cases]
    if not any(times for _, times, _ in listed):
        raise ResultsError("the record has no trusted cold or hot time of a kernel, and nvbench's files hold no other")
    facts = {name: record.machine.get(fact) for name, fact in _DEVICE.items()}
    if facts["sm_version"]:
        facts["sm_version"] *= 10  # 900 for compute capability 9.0
    device = {"id": 0, "name": str(record.machine.get("device") or record.machine["id"])}
    device |= {name: value for name, value in facts.items() if value is not None}
    benchmarks: dict[str, list[tuple[CaseResult, dict[str, Any]]]] = {}
    for result, times, reason in listed:
        if times or reason:
            state = _state(result, times, reason, path)
            benchmarks.setdefault(_benchmark(result), []).append((result, state))
    entries = [
        {"name": name, "index": index, "devices": [0], "axes": _axes([result for result, _ in states]),
         "states": [state for _, state in states]}
        for index, (name, states) in enumerate(benchmarks.items())
    ]  # fmt: skip
    meta = {"argv": ["prism-bench", "export"], "version": {"json": _JSON_VERSION}}
    return write_json({"meta": meta, "devices": [device], "benchmarks": entries}, path)


def _benchmark(result: CaseResult) -> str:
    """Return the case's name without its axes; of a case whose name does not end with them, the whole name."""
    return result.name.removesuffix(f"[{result.workload_text}]")


def _kind(values: Iterable[object]) -> str:
    """Return the type of axis that holds the values."""
    kinds = {type(value) for value in values}
    return "int64" if kinds == {int} else "float64" if kinds and kinds <= {int, float} else "string"


def _axes(results: list[CaseResult]) -> list[dict[str, Any]]:
    """Return the axes of one benchmark, each with the values that its cases have."""
    values: dict[str, dict[str, object]] = {}
    for result in results:
        for name, value in result.workload.items():
            values.setdefault(name, {})[str(value)] = value
    return [
        {"name": name, "type": (kind := _kind(known.values())), "flags": "",
         "values": [{"input_string": text, "description": "", "value": text if kind == "string" else value}
                    for text, value in known.items()]}
        for name, known in values.items()
    ]  # fmt: skip


def _state(result: CaseResult, times: list[Measurement], reason: str | None, path: Path) -> dict[str, Any]:
    """Return the state of one case; write its samples."""
    axes = [{"name": name, "type": _kind([value]), "value": str(value)} for name, value in result.workload.items()]
    state = {
        "name": " ".join(["Device=0", *(f"{axis['name']}={axis['value']}" for axis in axes)]),
        "device": 0,
        "axis_values": axes or None,
        "summaries": [summary for time in times for summary in _summaries(time, path)] or None,
        "is_skipped": not times,
    }
    return state if times else {**state, "skip_reason": reason}


def _summaries(time: Measurement, path: Path) -> Iterator[dict[str, Any]]:
    """Yield nvbench's summaries of a cold or hot time; of cold ones with the files of samples and SM clocks."""
    samples = time.samples
    mean = fmean(samples)
    if time.metric == "hot_time":
        yield _summary("nv/batch/sample_size", "Samples", "sample_size", len(samples))
        yield _summary(_HOT[0], "Batch GPU", "duration", mean)
        return
    low, middle, high = quantiles(samples, method="inclusive") if len(samples) > 1 else [mean] * 3
    deviation = stdev(samples) if len(samples) > 1 else None
    gpu = "nv/cold/time/gpu"
    yield _summary("nv/cold/sample_size", "Samples", "sample_size", len(samples))
    yield _summary(f"{gpu}/min", "Min GPU Time", "duration", min(samples))
    yield _summary(f"{gpu}/max", "Max GPU Time", "duration", max(samples))
    yield _summary(f"{gpu}/mean", "GPU Time", "duration", mean)
    yield _summary(f"{gpu}/stdev/absolute", "Noise", "duration", deviation)
    yield _summary(f"{gpu}/stdev/relative", "Noise", "percentage", deviation and deviation / mean)
    yield _summary(f"{gpu}/q1", "Q1 GPU Time", "duration", low)
    yield _summary(f"{gpu}/median", "Median GPU Time", "duration", middle)
    yield _summary(f"{gpu}/q3", "Q3 GPU Time", "duration", high)
    yield _summary(f"{gpu}/iqr/absolute", "IQR GPU Time", "duration", high - low)
    yield _summary(f"{gpu}/iqr/relative", "Relative IQR", "percentage", (high - low) / middle)
    yield _file(_SAMPLES, "file/sample_times", samples, path)
    clocks = [clock for process in time.clocks for clock in process]
    if len(clocks) == len(samples) and all(clocks):
        yield _summary("nv/cold/sm_clock_rate/mean", "Clock Rate", "frequency", fmean(clocks))
        yield _file(_CLOCKS, "file/sample_freqs", clocks, path)


_SHOWN = ("Samples", "GPU Time", "Noise", "Batch GPU")  # what nvbench's tables show


def _summary(tag: str, name: str, hint: str, value: float | None) -> dict[str, Any]:
    """Return one summary; nvbench writes numbers as text, and null for a noise that is not known."""
    kind = "int64" if isinstance(value, int) else "float64"
    hidden = {} if name in _SHOWN and not tag.endswith("absolute") else {"hide": "Hidden by default."}
    number = {"name": "value", "type": kind, "value": None if value is None else repr(value)}
    return {"tag": tag, "name": name, "hint": hint, **hidden, "data": [number]}


def _file(tag: str, hint: str, numbers: Sequence[float], path: Path) -> dict[str, Any]:
    """Write the numbers as little-endian float32 and return the summary that names their file."""
    content = struct.pack(f"<{len(numbers)}f", *numbers)
    name = f"{path.name}-bin/{hashlib.sha256(content).hexdigest()[:16]}.bin"
    try:
        write_atomically(path.parent / name, content)
    except OSError as error:
        raise ResultsError(f"cannot write {path.parent / name}: {error.strerror}") from error
    fields = [
        {"name": "filename", "type": "string", "value": name},
        {"name": "size", "type": "int64", "value": str(len(numbers))},
    ]
    return {"tag": tag, "name": "Samples File", "hint": hint, "hide": "Not needed in table.", "data": fields}
