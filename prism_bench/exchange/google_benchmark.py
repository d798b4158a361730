"""Google Benchmark's JSON (`--benchmark_format=json`) as a record: real time, one sample for each repetition."""

from pathlib import Path
from typing import Any

from prism_bench.errors import ResultsError
from prism_bench.exchange.foreign import SECONDS, Imported, case, field, moment, read_json, record, timing
from prism_bench.run_record import CaseResult

BACKEND = "google-benchmark"


def recognised(data: object) -> bool:
    """Return whether the JSON is Google Benchmark's."""
    if not isinstance(data, dict):
        return False
    context = data.get("context")
    return isinstance(context, dict) and "host_name" in context and "benchmarks" in data


def read(path: Path) -> Imported:
    """Return the record of the file. Aggregates are left out when the file has their repetitions."""
    data = read_json(path)
    context, rows = field(data, "context", dict, str(path)), field(data, "benchmarks", list, str(path))
    runs: dict[str, list[dict[str, Any]]] = {}
    for index, row in enumerate(rows):
        place = f"{path}: benchmarks[{index}]"
        own = field(row, "name", str, place)
        runs.setdefault(field(row, "run_name", str, place) if "run_name" in row else own, []).append(row)
    debug = ("built for debugging",) if context.get("library_build_type") == "debug" else ()
    cases = [_case(name, rows, f"{path}: {name}", debug) for name, rows in runs.items()]
    created = moment(field(context, "date", str, f"{path}: context"), f"{path}: context: date")
    version = context.get("json_schema_version", 1)
    host = {"cores": context.get("num_cpus"), "mhz": context.get("mhz_per_cpu")}
    software = {"google-benchmark": str(context.get("library_version", "unknown"))}
    machine = field(context, "host_name", str, f"{path}: context")
    return Imported((record(BACKEND, machine, created, cases, host=host, software=software, version=version),))


def _case(name: str, rows: list[dict[str, Any]], place: str, notes: tuple[str, ...]) -> CaseResult:
    kernel, *axes = name.split("/")
    workload = dict(_axis(index, text) for index, text in enumerate(axes))
    odd = next((row for row in rows if row.get("run_type", "iteration") not in ("iteration", "aggregate")), None)
    if odd:
        raise ResultsError(f"{place}: run_type is {odd['run_type']!r:.40}, not 'iteration' or 'aggregate'")
    failed = next((row for row in rows if row.get("error_occurred")), None)
    if failed:
        reason = str(failed.get("error_message") or "the file gives no reason")
        return case(kernel, workload, (), status="failed", reason=reason)
    single = [row for row in rows if row.get("run_type", "iteration") == "iteration"]
    single = single or [row for row in rows if row.get("aggregate_name") == "median"]
    single = single or [row for row in rows if row.get("aggregate_name") == "mean"]
    samples = [_seconds(row, place) for row in single]
    if not samples:
        raise ResultsError(f"{place}: no repetition, and no median or mean of any")
    return case(kernel, workload, [timing("wall_time", samples, notes)])


def _axis(index: int, text: str) -> tuple[str, str]:
    """Return name and value of an axis: `n:1024` names it, a bare number is the argument at its place."""
    name, colon, value = text.partition(":")
    return (name, value) if colon else (f"arg{index}", text)


def _seconds(row: dict[str, Any], place: str) -> float:
    unit = row.get("time_unit", "ns")
    if not isinstance(unit, str) or unit not in SECONDS:
        raise ResultsError(f"{place}: time_unit {unit!r:.40} is none of {', '.join(SECONDS)}")
    return field(row, "real_time", (int, float), place) * SECONDS[unit]
