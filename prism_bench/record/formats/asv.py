"""asv's results (version 2) as records, one for each result file."""

import ast
import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any, cast
from warnings import catch_warnings

from prism_bench.errors import ResultsError
from prism_bench.record.formats.foreign import (
    SECONDS,
    Imported,
    ImportedRows,
    axes_of,
    case,
    catalogue_case,
    field,
    joined,
    json_object,
    read_json,
    record,
    timing,
)
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.units import count_text

# Names of cases and metrics in asv's results, as `suites/` defines them.

# By metric, as in `suites/times.py`; a test holds the two together.
BENCHMARKS = {
    "cold_time": "times.Cold.track_cold_time",
    "hot_time": "times.Hot.track_hot_time",
    "launch_time": "times.Launch.track_launch_time",
    "end_to_end_time": "times.EndToEnd.track_end_to_end_time",
    "wall_time": "times.Wall.track_wall_time",
}
METRICS = {name: metric for metric, name in BENCHMARKS.items()}


def _value_of(text: object) -> object:
    """Return the value of a parameter, which asv writes as its `repr`: a number, a truth, None or a text.

    Anything else stays the text that asv wrote, as does a text that would read like another value without its quotes:
    `'1'` and `1` are two parameters.
    """
    value = _literal(text)
    if isinstance(value, str):
        return value if isinstance(text, str) and _literal(value) is _NO_LITERAL else str(text)
    fits = not isinstance(value, int) or -(2**63) <= value < 2**63
    is_plain = isinstance(value, bool | int | float | None) and fits and str(value) == text
    return value if is_plain and value == value else str(text)  # noqa: PLR0124 - NaN is no value of a record


_NO_LITERAL = object()


def _literal(text: object) -> object:
    """Return the value of a Python literal; _NO_LITERAL for any other text."""
    try:
        with catch_warnings(action="ignore"):  # of the escapes in somebody's text
            return ast.literal_eval(cast("str", text))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return _NO_LITERAL


# asv's results (version 2) as records, one for each result file.
#
# What our own suites measured comes back under its own case and metric. Of other benchmarks those in a unit of time
# come as wall times of the CPU, and those in a unit per time, of which more is better, as the wall time of one unit: 4
# GB/s are 0.25 s, so that a slowdown has one direction. The rest is left out, because the meaning of its numbers is
# unknown. A series must not be joined across versions of a benchmark, so the version is part of a foreign case's name
# unless it is the one that is listed now.

BACKEND = "asv"
_VERSION = 2
_LATEST = 253_402_300_800_000  # the end of the year 9999
_MOST_COMBINATIONS = 100_000
_TIMES = {**SECONDS, "second": 1.0, "sec": 1.0}
_RATE = re.compile(r"(?P<what>.*\S)?\s*(?:/|\bper\b)\s*(?P<time>\S+)", re.IGNORECASE)
_FLOPS = re.compile(r"[kmgtp]?flops", re.IGNORECASE)
_SKIPPED = "asv has no number of it (NaN): its setup skipped it, or its times were not trusted"
_MACHINE = ("machine", "python", "cpu", "os", "arch", "num_cpu", "ram")


def recognised(data: object) -> bool:
    """Return whether the JSON is a result file of asv."""
    return isinstance(data, dict) and {"result_columns", "results", "env_name"} <= set(data)


def read(path: Path) -> Imported:
    """Return the record of one result file, whose benchmarks `benchmarks.json` in the parent folder describes."""
    data, listed = json_object(path), read_json(path.parent.parent / "benchmarks.json")
    if data.get("version") != _VERSION:
        raise ResultsError(f"{path}: version {data.get('version')} of asv's results; {_VERSION} is known here")
    columns: list[str] = field(data, "result_columns", list, str(path))
    if not all(isinstance(name, str) for name in columns) or len(set(columns)) < len(columns):
        raise ResultsError(f"{path}: 'result_columns' are not different names: {columns!r:.80}")
    rows = ImportedRows(path)
    ours: dict[str, list[CaseResult]] = {}
    began: list[datetime] = []
    for name, values in field(data, "results", dict, str(path)).items():
        place = f"{path}: results: {name:.80}"
        with rows.row(place):
            if not isinstance(values, list) or len(values) > len(columns):
                limit = count_text(len(columns), "column")
                raise ResultsError(f"{place} is {values!r:.40}, not a list of at most {limit}")
            # asv leaves out the last columns where they are null.
            row, known = dict(zip(columns, values, strict=False)), _known(listed, name, path)
            if row.get("started_at"):
                began.append(_moment(row["started_at"], f"{place}: started_at"))
            seconds = float if name in METRICS else _seconds(known.get("unit"))
            if seconds is None:
                unit = known.get("unit") or "not listed in benchmarks.json"
                raise ResultsError(f"{name} is left out: its unit is {unit}")
            for index, parameters in enumerate(_combinations(row, place)):
                with rows.row(place):
                    result = _case(name, row, known, index, parameters, seconds, place)
                    if name in METRICS:
                        ours.setdefault(result.name, []).append(result)
                    else:
                        rows.add(result)
    for results in ours.values():
        rows.add(joined(results))
    return Imported((_record(data, path, rows.cases(), began),), tuple(rows.left_out))


def _known(listed: object, name: str, path: Path) -> dict[str, Any]:
    """Return the benchmark's entry in `benchmarks.json`; an empty one where it is not listed."""
    if not isinstance(listed, dict) or not isinstance(listed.get(name, {}), dict):
        raise ResultsError(f"{path.parent.parent / 'benchmarks.json'}: '{name:.80}' is no list of asv's benchmarks")
    return listed.get(name, {})


def _record(data: dict[str, Any], path: Path, cases: list[CaseResult], began: list[datetime]) -> RunRecord:
    """Return the record; its time is that of the first benchmark, or of the commit where that is missing."""
    params = field(data, "params", dict, str(path))
    committed = _moment(data["date"], f"{path}: date") if data.get("date") is not None else None
    created = min(began, default=committed or path)
    facts = {"device": str(params.get("cpu", "")), "host": {name: params.get(name) for name in ("os", "arch", "ram")}}
    commit = field(data, "commit_hash", str, str(path)) if data.get("commit_hash") is not None else None
    machine = field(params, "machine", str, f"{path}: params")
    facts |= {"software": _environment(data, params, str(path)), "committed": committed}
    return record(BACKEND, machine, created, cases, commit, **facts, version=_VERSION)


def _environment(data: dict[str, Any], params: dict[str, Any], place: str) -> dict[str, str]:
    """Return what of asv's environment may change a time: its name, Python, requirements and variables.

    asv has the requirements and variables of its matrix among the `params`, too; a pip requirement begins with `pip+`.
    """
    tables = [field(data, name, dict, place) for name in ("requirements", "env_vars") if data.get(name) is not None]
    named = {name: value for table in (params, *tables) for name, value in table.items() if name not in _MACHINE}
    versions = {str(name).removeprefix("pip+"): str(value) for name, value in named.items() if value}
    return {"python": str(data.get("python", "")), "env_name": str(data.get("env_name", "")), **versions}


def _moment(milliseconds: object, place: str) -> datetime:
    """Return the time that asv counts in milliseconds since 1970."""
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float) or not 0 <= milliseconds < _LATEST:
        raise ResultsError(f"{place} is {milliseconds!r:.40}, not a time in milliseconds since 1970")
    return datetime.fromtimestamp(milliseconds / 1e3, UTC)


def _seconds(unit: object) -> Callable[[float], float] | None:
    """Return the function that makes seconds of a value in the unit; None where it is no unit of time.

    A rate, such as `GB/s`, becomes the seconds that one of its units takes.
    """
    text = unit.strip() if isinstance(unit, str) else ""
    if text in _TIMES:
        return lambda value: value * _TIMES[text]
    rate = _RATE.fullmatch(text)
    if rate and rate["time"] in _TIMES:
        return lambda value: _TIMES[rate["time"]] / value
    return (lambda value: 1 / value) if _FLOPS.fullmatch(text) else None


def _case(
    name: str,
    row: dict[str, Any],
    known: dict[str, Any],
    index: int,
    parameters: tuple[object, ...],
    seconds: Callable[[float], float],
    place: str,
) -> CaseResult:
    """Return the case of one combination of parameters, the `index`-th, in the benchmark's metric."""
    axes = known.get("param_names") or []
    if not isinstance(axes, list) or not all(isinstance(axis, str) for axis in axes):
        raise ResultsError(f"{place}: 'param_names' in benchmarks.json is {axes!r:.40}, not a list of names")
    if len(axes) != len(parameters):  # an older version of the benchmark had others
        axes = [f"param{number}" for number in range(len(parameters))]
    result, samples = (
        column[index] if isinstance(column := row.get(name), list) else column for name in ("result", "samples")
    )
    values = _values(samples or ([] if result is None else [result]), place)
    metric = METRICS.get(name, "wall_time")
    unit = str(known.get("unit"))
    notes = () if name in METRICS or unit in _TIMES else (f"one over a rate in {unit}",)
    times = (timing(metric, map(seconds, values), notes),) if values else ()
    changes: dict[str, Any] = {}
    if result is None:
        changes = {"status": "failed", "reason": "asv could not measure it"}
    elif not values:
        changes = {"status": "skipped", "reason": _SKIPPED}
    plain = [_value_of(value) for value in parameters]
    if name not in METRICS:
        version = row.get("version")
        kernel = name if version in (None, known.get("version")) else f"{name}@{str(version)[:8]}"
        return case(kernel, axes_of(zip(axes, plain, strict=True)), times, **changes)
    if len(plain) != 1:
        raise ResultsError(f"{place}: {count_text(len(plain), 'parameter')}; our own benchmarks have one, the case")
    return catalogue_case(str(plain[0]), times, **changes)


def _combinations(row: dict[str, Any], place: str) -> list[tuple[object, ...]]:
    """Return every combination of parameters, as many as there are results."""
    params = row.get("params") or []
    if not isinstance(params, list) or not all(isinstance(values, list) for values in params):
        raise ResultsError(f"{place}: 'params' is {params!r:.40}, not a list of lists")
    if any(len(set(map(repr, values))) < len(values) for values in params):
        raise ResultsError(f"{place}: a parameter has one value twice: {params!r:.80}")
    count = math.prod(len(values) for values in params)
    if count > _MOST_COMBINATIONS:
        raise ResultsError(
            f"{place}: {count_text(count, 'combination')} of parameters; {_MOST_COMBINATIONS} is the limit"
        )
    for column in ("result", "samples"):
        if isinstance(row.get(column), list) and len(row[column]) != count:
            raise ResultsError(
                f"{place}: {len(row[column])} of '{column}' for {count_text(count, 'combination')} of parameters"
            )
        if row.get(column) is not None and not isinstance(row[column], list) and count != 1:
            raise ResultsError(f"{place}: '{column}' is {row[column]!r:.40}, not a list")
    return list(product(*params))


def _values(samples: object, place: str) -> list[float]:
    """Return the numbers among the samples, without asv's `NaN` for no value."""
    if not isinstance(samples, list):
        raise ResultsError(f"{place}: samples are {samples!r:.40}, not a list")
    for sample in samples:
        if isinstance(sample, bool) or not isinstance(sample, int | float):
            raise ResultsError(f"{place}: a sample is {sample!r:.40}, not a number of seconds")
    return [sample for sample in samples if not math.isnan(sample)]
