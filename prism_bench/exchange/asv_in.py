"""asv's results (version 2) as records, one for each result file.

What our own suites measured comes back under its own case and metric. Of other benchmarks those in seconds come as wall
times of the CPU; the rest is left out, because nobody knows here what its numbers mean. A series must not be joined
across versions of a benchmark, so the version is part of a foreign case's name unless it is the one that is listed now.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

from prism_bench.errors import ResultsError
from prism_bench.exchange.asv_names import METRICS, value_of
from prism_bench.exchange.foreign import Imported, case, field, read_json, record, timing
from prism_bench.measurement import Measurement
from prism_bench.run_record import CaseResult, RunRecord

BACKEND = "asv"
VERSION = 2
_MACHINE = ("machine", "python", "cpu", "os", "arch", "num_cpu", "ram")


def recognised(data: object) -> bool:
    """Whether the JSON is a result file of asv's."""
    return isinstance(data, dict) and {"result_columns", "results", "env_name"} <= set(data)


def read(path: Path) -> Imported:
    """The record of one result file; the `benchmarks.json` beside its folder tells what its benchmarks are."""
    data, listed = read_json(path), read_json(path.parent.parent / "benchmarks.json")
    if data.get("version") != VERSION:
        raise ResultsError(f"{path}: version {data.get('version')} of asv's results; {VERSION} is known here")
    columns, left_out, cases = field(data, "result_columns", list, str(path)), [], {}
    for name, values in field(data, "results", dict, str(path)).items():
        row, known = dict(zip(columns, values, strict=False)), listed.get(name, {})
        if name not in METRICS and known.get("unit") != "seconds":
            left_out.append(f"{name} is left out: its unit is {known.get('unit') or 'not listed in benchmarks.json'}")
            continue
        for one in _cases(name, row, known):
            cases.setdefault(one.name, []).append(one)
    return Imported((_record(data, path, [_merged(ones) for ones in cases.values()]),), tuple(left_out))


def _record(data, path, cases) -> RunRecord:
    """The record; made when its first benchmark began, or, where that is not told, when its commit was."""
    params = field(data, "params", dict, str(path))
    columns = data["result_columns"]
    place = columns.index("started_at") if "started_at" in columns else len(columns)
    began = [row[place] for row in data["results"].values() if len(row) > place and row[place]]
    created = datetime.fromtimestamp(min(began, default=field(data, "date", (int, float), str(path))) / 1e3, UTC)
    versions = {name: str(value) for name, value in params.items() if name not in _MACHINE and value}
    facts = {"device": str(params.get("cpu", "")), "host": {name: params.get(name) for name in ("os", "arch", "ram")}}
    software = {"python": str(data.get("python", "")), **versions}
    machine, commit = field(params, "machine", str, f"{path}: params"), data.get("commit_hash")
    return record(BACKEND, machine, created, cases, commit, **facts, software=software, version=VERSION)


def _cases(name: str, row: dict, known: dict) -> Iterator[CaseResult]:
    """One case of one metric for every combination of parameters."""
    combinations = list(product(*row.get("params") or ()))
    axes = known.get("param_names") or [f"param{index}" for index in range(len(row.get("params") or ()))]
    for index, values in enumerate(combinations):
        result, samples = (_at(row.get(column), index) for column in ("result", "samples"))
        metric = METRICS.get(name, "wall_time")
        one = _measured(metric, samples or ([] if result is None else [result]))
        plain = [value_of(value) for value in values]
        changes = {} if result is not None else {"status": "failed", "reason": "asv could not measure it"}
        if name in METRICS:
            yield _own(str(plain[0]), one, changes)
        else:
            yield case(_kernel(name, row, known), dict(zip(axes, plain, strict=True)), one, **changes)


def _at(column, index):
    return column[index] if isinstance(column, list) and index < len(column) else None


def _measured(metric, samples) -> tuple[Measurement, ...]:
    """The measurement, or none where asv had nothing to say (`NaN`)."""
    known = [sample for sample in samples if not math.isnan(sample)]
    return (timing(metric, known),) if known else ()


def _kernel(name, row, known):
    version = row.get("version")
    return name if version in (None, known.get("version")) else f"{name}@{str(version)[:8]}"


def _own(name, one, changes):
    """A case of ours, whose name holds its axes."""
    kernel, _, inside = name.partition("[")
    axes = dict(part.split("=", 1) for part in inside.rstrip("]").split(",") if "=" in part)
    kernel, _, variant = kernel.partition(":")
    return case(kernel, axes, one, name=name, variant=variant or None, **changes)


def _merged(ones: list[CaseResult]) -> CaseResult:
    """One case out of the same one under several metrics; it has failed only where it has no measurement at all."""
    times = tuple(one for case in ones for one in case.measurements)
    best = next((one for one in ones if one.status == "ok"), ones[0])
    return replace(best, measurements=times)
