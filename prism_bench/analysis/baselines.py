"""What a device needed when a record was made its baseline: medians by case and metric, beside its budgets in TOML.

device, backend, protocol      what a record must share to be held against it
record, created, commit        where the figures are from
[seconds.<metric>]             "case" = median in seconds
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from prism_bench.analysis.comparable import device_of
from prism_bench.analysis.toml_table import TomlTable, read_table
from prism_bench.catalogue import Catalogue
from prism_bench.errors import ResultsError, UsageError
from prism_bench.files import write_atomically
from prism_bench.metric import MEASURED
from prism_bench.run_record import RunRecord

KEPT = ("cold_time", "hot_time", "end_to_end_time", "wall_time")  # what a kernel is; not what the host happened to do


_FACTS = {"device": str, "backend": str, "protocol": int, "record": str, "created": str, "commit": str}


@dataclass(frozen=True)
class Baseline:
    """The medians (`seconds`) of a record, by case and metric, with where they are from."""

    device: str
    backend: str
    protocol: int
    record: str
    created: str
    commit: str
    seconds: Mapping[tuple[str, str], float]


def baseline_of(record: RunRecord, name: str) -> Baseline:
    """The valid medians of the kernels' own times in the record called `name`; a ResultsError where it has none."""
    seconds = {
        (case.name, metric): one.median
        for case in record.cases
        for metric in KEPT
        if case.status == "ok" and (one := case.measurement(metric)) and one.valid and one.samples
    }
    if not seconds:
        raise ResultsError(f"{name}: holds no valid time to make a baseline of")
    return Baseline(
        device_of(record), record.backend, record.protocol.get("version"), name, record.created, record.commit or "",
        seconds,
    )  # fmt: skip


def write_baseline(baseline: Baseline, path: Path) -> Path:
    """Keep the baseline at `path`, whole or not at all; returns the path."""
    facts = [f"{key} = {json.dumps(value)}" for key, value in vars(baseline).items() if key != "seconds"]
    lines = ["# Written by 'prism-bench baseline'; medians in seconds.", *facts]
    for metric in dict.fromkeys(metric for _, metric in baseline.seconds):
        lines += ["", f"[seconds.{metric}]"]
        lines += [
            f"{json.dumps(case)} = {value:.4g}" for (case, one), value in baseline.seconds.items() if one == metric
        ]
    try:
        write_atomically(path, ("\n".join(lines) + "\n").encode())
    except OSError as error:
        raise ResultsError(f"cannot write {path}: {error.strerror}") from error
    return path


def read_baseline(path: Path) -> Baseline:
    """The baseline at `path`; a ResultsError names a key or a value that is not right.

    A case that the catalogue has no more harms nobody: it is in no later record either.
    """
    table = read_table(path)
    facts = {key: table.take(key, kind) for key, kind in _FACTS.items()}
    metrics = table.take("seconds", dict)
    table.finish()
    seconds = {}
    for metric, medians in metrics.items():
        if metric not in MEASURED or not isinstance(medians, dict):
            raise ResultsError(f"{path}: seconds: unknown metric '{metric}'; known are {', '.join(MEASURED)}")
        times = TomlTable(medians, f"{path}: seconds.{metric}")
        seconds |= {(name, metric): times.number(name) for name in medians}
    return Baseline(**facts, seconds=seconds)


def known_case(name: str, catalogue: Catalogue, where: str) -> str:
    """The name, if the catalogue has such a case; a ResultsError with the nearest ones otherwise."""
    try:
        return catalogue.case(name).name
    except UsageError as error:
        raise ResultsError(f"{where}: {error}") from None
