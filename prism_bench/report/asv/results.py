"""Records as asv's results (version 2), so that asv compares and publishes what `prism-bench run` measured.

They are the results that `asv run` would have got from `suites/`: the same names, parameters and versions. asv keeps
one result for a commit and an environment: a later record of the same commit takes the place of the one before.
"""

import json
import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles
from typing import Any, cast

from prism_bench.errors import ResultsError
from prism_bench.io.files import create_file, path_part, write_atomically
from prism_bench.measure.sampling import median_interval
from prism_bench.record.formats.asv import BENCHMARKS
from prism_bench.record.formats.foreign import read_json
from prism_bench.record.run_record import CaseResult, RunRecord

COLUMNS = (
    "result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b", "stats_q_25",
    "stats_q_75", "stats_number", "stats_repeat", "samples", "profile",
)  # fmt: skip
_LISTED = {"type": "track", "unit": "seconds", "param_names": ["case"], "timeout": 120.0, "number": 1, "rounds": 1}


def write(record: RunRecord, folder: Path) -> Path:
    """Write the record's kernels into the results folder of asv; returns the file of results.

    `machine.json` and `benchmarks.json` are written where they are missing; cases that the latter does not list yet are
    added to it. A ResultsError where the record has no commit, by which asv names results.
    """
    if not record.commit:
        raise ResultsError("asv names results by commit, and this record has none; it was measured outside a checkout")
    place = folder / path_part(record.machine["id"])
    environment = record.owner[2] or f"prism-bench-{record.backend}"
    path = place / f"{path_part(f'{record.commit[:8]}-{environment}')}.json"
    try:
        with suppress(FileExistsError):  # asv's own, or what somebody wrote in it, stays
            create_file(place / "machine.json", _text({**_machine(record), "version": 1}))
        _write(folder / "benchmarks.json", _benchmarks(record, folder / "benchmarks.json"))
        _write(path, {**_results(record, environment), "version": 2})
    except OSError as error:
        raise ResultsError(f"cannot write {path}: {error.strerror}") from error
    return path


def _write(path: Path, plain: dict[str, Any]) -> None:
    write_atomically(path, _text(plain))


def _text(plain: dict[str, Any]) -> bytes:
    """Return JSON as asv writes it, with NaN for what could not be measured."""
    return json.dumps(plain, indent=1).encode()


def _machine(record: RunRecord) -> dict[str, str]:
    host = record.machine.get("host") or {}
    return {
        "machine": record.machine["id"],
        "os": f"{host.get('system', '')} {host.get('release', '')}".strip(),
        "arch": str(host.get("processor", "")),
        "cpu": str(record.machine.get("device", "")),
        "num_cpu": str(host.get("cores", "")),
        "ram": "",
    }


def _results(record: RunRecord, environment: str) -> dict[str, Any]:
    began = _milliseconds(record.created)
    python = record.software.get("python", "")
    rows = {name: _row(record, metric, began) for metric, name in BENCHMARKS.items() if _measured(record.cases, metric)}
    return {
        "commit_hash": record.commit,
        "env_name": environment,
        "date": _milliseconds(record.committed or record.created),
        "params": {**_machine(record), "python": python},
        "python": python,
        "requirements": {},
        "env_vars": {},
        "result_columns": COLUMNS,
        "results": rows,
        "durations": {},
    }


def _milliseconds(created: str) -> int:
    return round(datetime.fromisoformat(created).replace(tzinfo=UTC).timestamp() * 1000)


def _measured(cases: Iterable[CaseResult], metric: str) -> list[CaseResult]:
    return [case for case in cases if (measured := case.measurement(metric)) and measured.samples]


def _row(record: RunRecord, metric: str, began: int) -> list[Any]:
    """Return asv's row for one benchmark: a list per column, an entry per case. What is not trusted is `NaN`: n/a."""
    cases = _measured(record.cases, metric)
    measurements = [case.measurement(metric) for case in cases]
    trusted = [measurement.samples if measurement and measurement.valid else () for measurement in measurements]
    stats = [_statistics(samples) if samples else [None] * 6 for samples in trusted]
    results = [median(samples) if samples else math.nan for samples in trusted]
    params = [[repr(case.name) for case in cases]]
    columns = [list(column) for column in zip(*stats, strict=True)]
    samples = [list(taken) or None for taken in trusted]
    return [results, params, _version(record, metric), began, record.duration, *columns, samples]


def _statistics(samples: Sequence[float]) -> list[float]:
    """Return asv's statistics: 99 % interval of the median, quartiles, calls per sample and number of samples."""
    low, high = median_interval(samples, 0.99) or (-math.inf, math.inf)
    quarter, _, three = quantiles(samples, method="inclusive") if len(samples) > 1 else [samples[0]] * 3
    return [low, high, quarter, three, 1, len(samples)]


def _version(record: RunRecord, metric: str) -> str:
    return f"{record.protocol.get('version')} {metric}"


def _listed(path: Path) -> dict[str, Any]:
    """Return the existing list of benchmarks, or an empty one; raise a ResultsError for a file of another kind."""
    read = read_json(path) if path.is_file() else {"version": 2}
    listed = cast("dict[str, Any]", read) if isinstance(read, dict) else {}
    if listed.get("version") != 2:
        raise ResultsError(f"{path}: not asv's list of benchmarks of version 2; remove it, it is made anew")
    for name in BENCHMARKS.values():
        params = listed[name].get("params") if isinstance(listed.get(name), dict) else [[]]
        if name in listed and not (isinstance(params, list) and len(params) == 1 and _are_texts(params[0])):
            raise ResultsError(f"{path}: {name}: 'params' is {params!r:.60}, not one list of cases; remove the file")
        if not isinstance(listed.get(name, {}), dict):
            raise ResultsError(f"{path}: {name} is {listed[name]!r:.40}, not a benchmark; remove the file")
    return listed


def _are_texts(values: object) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def _benchmarks(record: RunRecord, path: Path) -> dict[str, Any]:
    """Return the list of benchmarks, with this record's cases in it."""
    listed = _listed(path)
    for metric, name in BENCHMARKS.items():
        names = [repr(case.name) for case in _measured(record.cases, metric)]
        if names:
            old = listed.get(name, {"params": [[]]})
            params = list(dict.fromkeys([*old["params"][0], *names]))
            own = {"name": name, "version": _version(record, metric), "code": f"# {name}", **_LISTED}
            if record.stand_in:
                own["pretty_name"] = f"{name} (the {record.stand_in.name} on the CPU, no kernel)"
            listed[name] = {**own, **old, "params": [params]}
    return listed
