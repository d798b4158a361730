"""Google Benchmark's JSON (`--benchmark_format=json`) as a record: real time, one sample for each repetition.

A benchmark is known by its name and its place among those that were registered (`family_index`,
`per_family_instance_index`). Files before 1.5 have neither these nor `run_type`: there, rows of one name are
repetitions, and the ending of a name shows an aggregate. Fits of complexity (`BigO`, `RMS`) are no times.
"""

from pathlib import Path
from typing import Any, cast

from prism_bench.errors import ResultsError
from prism_bench.record.formats.foreign import (
    SECONDS,
    Imported,
    ImportedRows,
    axes_of,
    case,
    field,
    json_object,
    moment,
    record,
    timing,
)
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.record.schema import LONGEST, SHORTEST
from prism_bench.units import count_text

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
            if timed := _repetitions(repetitions, rows, place):
                rows.add(_case(str(key[0]), timed, debug), key[1:])
    return Imported((_record(context, path, rows.cases()),), tuple(rows.left_out))


def _record(context: dict[str, Any], path: Path, cases: list[CaseResult]) -> RunRecord:
    """Return the record; files before 1.4 have no name of the host."""
    place = f"{path}: context"
    machine = field(context, "host_name", str, place) if "host_name" in context else None
    created = moment(field(context, "date", str, place), f"{place}: date") if "date" in context else path
    host = {"cores": context.get("num_cpus"), "mhz": context.get("mhz_per_cpu")}
    software = {"google-benchmark": str(context.get("library_version", "unknown"))}
    version = context.get("json_schema_version", 1)
    return record(BACKEND, machine, created, cases, host=host, software=software, version=version)


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
    sound = [row for row in timed if SHORTEST <= row.get("seconds", 0) <= LONGEST]
    if sound and len(sound) < len(timed) and all("seconds" in row for row in timed):
        count = count_text(len(timed), "repetition")
        left_out.left_out.append(f"{place}: {len(timed) - len(sound)} of {count} are left out: no time above zero")
        return sound
    return timed


def _case(name: str, rows: list[dict[str, Any]], notes: tuple[str, ...]) -> CaseResult:
    kernel, *axes = name.split("/")
    parts = [(index, *text.partition(":")) for index, text in enumerate(axes)]  # a bare number has no name
    workload = axes_of((name, value) if colon else (f"arg{index}", name) for index, name, colon, value in parts)
    for status, flag, message in (
        ("failed", "error_occurred", "error_message"),
        ("skipped", "skipped", "skip_message"),
    ):
        stopped = next((row for row in rows if row.get(flag)), None)
        if stopped:
            reason = str(stopped.get(message) or "the file gives no reason")
            return case(kernel, workload, (), status=status, reason=reason)
    return case(kernel, workload, [timing("wall_time", [row["seconds"] for row in rows], notes)])


def _seconds(row: dict[str, Any], place: str) -> float:
    unit = row.get("time_unit", "ns")
    if not isinstance(unit, str) or unit not in SECONDS:
        raise ResultsError(f"{place}: time_unit {unit!r:.40} is none of {', '.join(SECONDS)}")
    return field(row, "real_time", (int, float), place) * SECONDS[unit]
