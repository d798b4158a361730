"""pytest-benchmark's JSON (`--benchmark-json`, `--benchmark-save`) as a record: the wall times of each test.

As ionelmc/pytest-benchmark writes it (`plugin.py`: `pytest_benchmark_generate_json`, `_machine_info`, `_commit_info`;
`fixture.py`, `stats.py`): a benchmark has its test's id as `fullname`, the values of its parameters in `params`, and in
`stats` seconds of one call. `--benchmark-json` has every round in `data`; a saved file has it with
`--benchmark-save-data` only, and there the median is the only number. Values that JSON cannot hold are texts with the
address of an object; such a test is known by the id of its parameters.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from prism_bench.record.formats.foreign import (
    COMMIT,
    Imported,
    ImportedRows,
    case,
    field,
    json_object,
    moment,
    record,
    runs_of,
)
from prism_bench.record.run_record import CaseResult, RunRecord

BACKEND = "pytest-benchmark"
_WALL_CLOCKS = ("perf_counter", "time", "monotonic")
_NO_VALUE = "UNSERIALIZABLE["


def recognised(data: object) -> bool:
    """Return whether the JSON is pytest-benchmark's."""
    return isinstance(data, dict) and "machine_info" in data and isinstance(data.get("benchmarks"), list)


def read(path: Path) -> Imported:
    """Return the record of the file: one case for each test."""
    data, rows = json_object(path), ImportedRows(path)
    for index, row in enumerate(field(data, "benchmarks", list, str(path))):
        place = f"{path}: benchmarks[{index}]"
        with rows.row(place):
            rows.add(_case(row, place))
    return Imported((_record(data, path, rows.cases()),), tuple(rows.left_out))


def _record(data: dict[str, Any], path: Path, cases: list[CaseResult]) -> RunRecord:
    machine, commits = (_table(data, name) for name in ("machine_info", "commit_info"))
    node, hashed, committed = machine.get("node"), str(commits.get("id")), commits.get("time")
    cpu = machine.get("cpu")
    known = cast("dict[str, Any]", cpu) if isinstance(cpu, dict) else {}
    created = moment(field(data, "datetime", str, str(path)), f"{path}: datetime") if "datetime" in data else path
    facts: dict[str, Any] = {
        "device": str(known.get("brand_raw") or known.get("brand") or ""),
        "host": {"system": machine.get("system"), "release": machine.get("release"), "cores": known.get("count")},
        "software": {"python": str(machine.get("python_version", "")), BACKEND: str(data.get("version", ""))},
        "dirty": commits.get("dirty") is True,
        "committed": moment(committed, f"{path}: commit_info: time") if isinstance(committed, str) else None,
    }
    name, commit = node if isinstance(node, str) and node else None, hashed if COMMIT.fullmatch(hashed) else None
    return record(BACKEND, name, created, cases, commit, **facts, version="1")


def _table(data: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a part of the file that a hook of the user may have replaced; empty for anything but an object."""
    return cast("dict[str, Any]", data[name]) if isinstance(data.get(name), dict) else {}


def _case(row: object, place: str) -> CaseResult:
    fullname = field(row, "fullname", str, place)
    statistics = field(row, "stats", dict, place)
    known = cast("dict[str, Any]", row)
    id_of_parameters, options = known.get("param"), known.get("options")
    test = fullname.removesuffix(f"[{id_of_parameters}]")
    timer = str(options.get("timer", "")) if isinstance(options, dict) else ""
    runs = runs_of(statistics, "data", place)
    if timer and timer.rpartition(".")[2] not in _WALL_CLOCKS:
        runs = replace(runs, notes=(*runs.notes, f"timed by {timer}"))
    return case(test, _axes(known.get("params"), id_of_parameters), [runs])


def _axes(parameters: object, identifier: object) -> Mapping[str, object]:
    """Return the parameters by name; by their common id where a value is no plain one."""
    named = cast("dict[str, object]", parameters) if isinstance(parameters, dict) else {}
    if named and all(map(_is_plain, named.values())):
        return named
    return {} if identifier is None else {"param": str(identifier)}


def _is_plain(value: object) -> bool:
    if isinstance(value, str):
        return not value.startswith(_NO_VALUE)
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, bool) or (isinstance(value, int) and abs(value) < 2**62)
