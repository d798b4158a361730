"""Google Benchmark's JSON (`--benchmark_format=json`) as a record, and a record as such a file.

Real time has one sample for each repetition.

A benchmark is known by its name and its place among those that were registered (`family_index`,
`per_family_instance_index`). Files before 1.5 have neither these nor `run_type`: there, rows of one name are
repetitions, and the ending of a name shows an aggregate. Fits of complexity (`BigO`, `RMS`) are no times.

An exported file has what `tools/compare.py` reads (google/benchmark, `tools/gbench/report.py` and `util.py`; fields as
in `src/json_reporter.cc`). A sample is a repetition, and the name of a benchmark is the case with its metric:
`softmax[rows=8192,cols=1024]/cold_time`.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any, cast

from prism_bench.errors import ResultsError
from prism_bench.record.formats.foreign import (
    COMMIT,
    SECONDS,
    Imported,
    ImportedRows,
    axes_of,
    case,
    catalogue_case,
    field,
    joined,
    json_object,
    moment,
    record,
    timing,
    trusted,
    write_json,
)
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.spec.metric import MEASURED

BACKEND = "google-benchmark"
_AGGREGATES = ("mean", "median", "stddev", "cv")
_Key = tuple[object, ...]


def recognised(data: object) -> bool:
    """Return whether the JSON is Google Benchmark's."""
    return isinstance(data, dict) and isinstance(data.get("context"), dict) and "benchmarks" in data


def read(path: Path) -> Imported:
    """Return the record of the file. Aggregates are left out when the file has their repetitions."""
    data = json_object(path)
    context, plain = field(data, "context", dict, str(path)), field(data, "benchmarks", list, str(path))
    ours: dict[str, list[CaseResult]] = {}
    names = {row["name"] for row in plain if isinstance(row, dict) and isinstance(row.get("name"), str)}
    rows = ImportedRows(path)
    runs: dict[_Key, list[dict[str, Any]]] = {}
    for index, row in enumerate(plain):
        with rows.row(f"{path}: benchmarks[{index}]"):
            key, known = _known(row, names, f"{path}: benchmarks[{index}]")
            runs.setdefault(key, []).append(known)
    debug = ("built for debugging",) if context.get("library_build_type") == "debug" else ()
    for key, repetitions in runs.items():
        place = f"{path}: {key[0]}"
        with rows.row(place):
            timed = _repetitions(repetitions, rows, place)
            if timed and context.get("executable") == _EXECUTABLE:
                result = _own_case(str(key[0]), timed, rows, place)
                ours.setdefault(result.name, []).append(result)
            elif timed:
                rows.add(_case(str(key[0]), timed, debug, rows, place), key[1:])
    for results in ours.values():
        rows.add(joined(results))
    return Imported((_record(context, path, rows.cases()),), tuple(rows.left_out))


def _record(context: dict[str, Any], path: Path, cases: list[CaseResult]) -> RunRecord:
    """Return the record; files before 1.4 have no name of the host."""
    place = f"{path}: context"
    machine = field(context, "host_name", str, place) if "host_name" in context else None
    created = moment(field(context, "date", str, place), f"{place}: date") if "date" in context else path
    host = {"cores": context.get("num_cpus"), "mhz": context.get("mhz_per_cpu")}
    software = {"google-benchmark": str(context.get("library_version", "unknown"))}
    version, commit = context.get("json_schema_version", 1), str(context.get("commit"))
    known = commit if COMMIT.fullmatch(commit) else None  # by --benchmark_context=commit=HASH, and in exported files
    return record(BACKEND, machine, created, cases, known, host=host, software=software, version=version)


def _known(row: object, names: set[str], place: str) -> tuple[_Key, dict[str, Any]]:
    """Return the key of the benchmark that the row is of, its name first, and the row with its kind."""
    name = field(row, "name", str, place)
    plain = dict(cast("dict[str, Any]", row))
    if "big_o" in plain or "rms" in plain or plain.get("aggregate_name") in ("BigO", "RMS"):
        raise ResultsError(f"{place}: {name:.80} is left out: a fit of complexity, and no time")
    base, _, ending = name.rpartition("_")
    if "run_type" not in plain and ending in _AGGREGATES and {f"{base}_mean", f"{base}_stddev"} <= names:
        plain |= {"run_type": "aggregate", "aggregate_name": ending, "run_name": base}
    kind = plain.setdefault("run_type", "iteration")
    if kind not in ("iteration", "aggregate"):
        raise ResultsError(f"{place}: run_type is {kind!r:.40}, not 'iteration' or 'aggregate'")
    run_name = field(plain, "run_name", str, place) if "run_name" in plain else name
    return (run_name, plain.get("family_index"), plain.get("per_family_instance_index")), plain


def _repetitions(rows: list[dict[str, Any]], left_out: ImportedRows, place: str) -> list[dict[str, Any]]:
    """Return the rows that make the time: repetitions, else the median or the mean of them; each with its `seconds`.

    An odd repetition costs itself; where all are odd, the list is empty. Two of one index are no repetitions of one
    benchmark.
    """
    kinds = [("run_type", "iteration"), ("aggregate_name", "median"), ("aggregate_name", "mean")]
    chosen = next((same for name, kind in kinds if (same := [row for row in rows if row.get(name) == kind])), [])
    if not chosen:
        raise ResultsError(f"{place}: no repetition, and no median or mean of any")
    indices = [row.get("repetition_index") for row in chosen if row.get("repetition_index") is not None]
    if any(indices.count(index) > 1 for index in indices):
        raise ResultsError(
            f"{place}: two rows have one repetition_index, and nothing in the file sets them apart; none is imported"
        )
    timed: list[dict[str, Any]] = []
    for row in chosen:
        with left_out.row(place):
            without = row.get("error_occurred") or row.get("skipped")
            timed.append(row if without else {**row, "seconds": _seconds(row, place)})
    return timed


def _case(
    name: str, rows: list[dict[str, Any]], notes: tuple[str, ...], left_out: ImportedRows, place: str
) -> CaseResult:
    kernel, *axes = name.split("/")
    parts = [(index, *text.partition(":")) for index, text in enumerate(axes)]  # a bare number has no name
    workload = axes_of((name, value) if colon else (f"arg{index}", name) for index, name, colon, value in parts)
    if changes := _stopped(rows):
        return case(kernel, workload, (), **changes)
    return case(kernel, workload, [timing("wall_time", _samples(rows, left_out, place), notes)])


def _own_case(name: str, rows: list[dict[str, Any]], left_out: ImportedRows, place: str) -> CaseResult:
    """Return the case of a benchmark in an exported file; one that has failed has no metric in its name."""
    if changes := _stopped(rows):
        return catalogue_case(name, (), **changes)
    known, _, metric = name.rpartition("/")
    if metric not in MEASURED:
        raise ResultsError(f"'{name:.80}' ends with no metric, such as /cold_time, in a file of {_EXECUTABLE}")
    return catalogue_case(known, [timing(metric, _samples(rows, left_out, place))])


def _samples(rows: list[dict[str, Any]], left_out: ImportedRows, place: str) -> Sequence[float]:
    return left_out.possible([row["seconds"] for row in rows], "repetitions", place)


def _stopped(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return status and reason of a benchmark that failed or was skipped; empty for one with times."""
    for status, flag, message in (
        ("failed", "error_occurred", "error_message"),
        ("skipped", "skipped", "skip_message"),
    ):
        stopped = next((row for row in rows if row.get(flag)), None)
        if stopped:
            return {"status": status, "reason": str(stopped.get(message) or "the file gives no reason")}
    return {}


def _seconds(row: dict[str, Any], place: str) -> float:
    unit = row.get("time_unit", "ns")
    if not isinstance(unit, str) or unit not in SECONDS:
        raise ResultsError(f"{place}: time_unit {unit!r:.40} is none of {', '.join(SECONDS)}")
    return field(row, "real_time", (int, float), place) * SECONDS[unit]


# A record as a file of Google Benchmark.

_EXECUTABLE = "prism-bench"
_STATISTICS: dict[str, Callable[[Sequence[float]], float]] = {
    "mean": fmean,
    "median": median,
    "stddev": stdev,
    "cv": lambda samples: stdev(samples) / fmean(samples),
}


def write(record: RunRecord, path: Path) -> Path:
    """Write the kernels' times to the file, whole or not at all; return the path.

    `compare.py` passes over rows without `cpu_time`, which Prism Bench does not measure: it is 0. A case that has
    failed is a row with its reason, and times of 0 as Google Benchmark writes them. A ResultsError where the record has
    no time, or the file cannot be written.
    """
    rows = [row for index, case in enumerate(record.cases) for row in _rows(case, index)]
    if not any("repetition_index" in row for row in rows):
        raise ResultsError("the record has no trusted time of a kernel: nothing to export")
    context = {
        "date": f"{record.created}+00:00",
        "host_name": record.machine["id"],
        "executable": _EXECUTABLE,
        "num_cpus": (record.machine.get("host") or {}).get("cores"),
        "json_schema_version": 1,
        "backend": record.backend,
        "device": record.machine.get("device"),
        "commit": record.commit,
    }
    known = {name: value for name, value in context.items() if value is not None}
    return write_json({"context": known, "benchmarks": rows}, path)


def _rows(case: CaseResult, family: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of one case: by metric its samples, and statistics of several."""
    times, reason = trusted(case, MEASURED)
    if reason:
        flag, message = ("skipped", "skip_message") if case.status == "skipped" else ("error_occurred", "error_message")
        unfinished = {**_row(case.name, 0.0, family, 0), "run_type": "iteration", "iterations": 0}
        yield {**unfinished, flag: True, message: reason}
    for instance, time in enumerate(times):
        name, samples = f"{case.name}/{time.metric}", time.samples
        for index, sample in enumerate(samples):
            row = _row(name, sample * 1e9, family, instance)
            yield {**row, "run_type": "iteration", "repetitions": len(samples), "repetition_index": index}
        for aggregate, of in _STATISTICS.items() if len(samples) > 1 else ():
            scale, unit = (1.0, "percentage") if aggregate == "cv" else (1e9, "time")
            row = _row(name, of(samples) * scale, family, instance)
            row |= {"name": f"{name}_{aggregate}", "run_type": "aggregate", "repetitions": len(samples)}
            yield {**row, "aggregate_name": aggregate, "aggregate_unit": unit}


def _row(name: str, real_time: float, family: int, instance: int) -> dict[str, Any]:
    place = {"name": name, "run_name": name, "family_index": family, "per_family_instance_index": instance}
    return {**place, "real_time": real_time, "cpu_time": 0.0, "time_unit": "ns"}
