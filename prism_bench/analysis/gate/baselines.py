"""Baseline of a device: medians of one record by case and metric, in TOML next to its budgets.

    device, backend, protocol      what a record must share to be held against it
    record, created, commit        origin of the figures
    [seconds.<metric>]             "case" = median in seconds

Kernels that take much longer than it are degraded: a rule of thumb that needs neither error bars nor a second process.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from prism_bench.analysis.compare.comparable import device_of
from prism_bench.analysis.gate.toml_table import TomlTable, read_table
from prism_bench.analysis.rivals import clock_of
from prism_bench.catalogue import Catalogue
from prism_bench.errors import ResultsError, UsageError
from prism_bench.files import write_atomically
from prism_bench.measure.limits import valid_median
from prism_bench.metric import MEASURED
from prism_bench.run_record import CaseResult, RunRecord

KEPT = ("cold_time", "hot_time", "end_to_end_time", "wall_time")  # times of a kernel; none of what the host did


@dataclass(frozen=True)
class Baseline:
    """Medians (`seconds`) of a record, by case and metric, with their origin."""

    device: str
    backend: str
    protocol: int | None
    record: str
    created: str
    commit: str
    seconds: Mapping[tuple[str, str], float]


def baseline_of(record: RunRecord, name: str) -> Baseline:
    """Return the valid medians of the kernels' own times in the record called `name`; a ResultsError without any."""
    seconds = {
        (case.name, metric): median
        for case in record.cases
        for metric in KEPT
        if case.status == "ok" and (median := valid_median(case, metric)) is not None
    }
    if not seconds:
        raise ResultsError(f"{name}: holds no valid time to make a baseline of")
    return Baseline(
        device_of(record), record.backend, record.protocol.get("version"), name, record.created, record.commit or "",
        seconds,
    )  # fmt: skip


def write_baseline(baseline: Baseline, path: Path) -> Path:
    """Keep the baseline at `path`, whole or not at all; return the path."""
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
    """Return the baseline at `path`; a ResultsError names a key or a value that is not right.

    A case that the catalogue no longer has does no harm: no later record has it either.
    """
    table = read_table(path)
    device, backend, protocol = table.take("device", str), table.take("backend", str), table.take("protocol", int)
    record, created, commit = (table.take(key, str) for key in ("record", "created", "commit"))
    metrics = table.take("seconds", dict[str, object])
    table.finish()
    seconds: dict[tuple[str, str], float] = {}
    for metric, medians in metrics.items():
        if metric not in MEASURED or not isinstance(medians, dict):
            raise ResultsError(f"{path}: seconds: unknown metric '{metric}'; known are {', '.join(MEASURED)}")
        times = TomlTable(cast("dict[str, object]", medians), f"{path}: seconds.{metric}")
        seconds |= {(name, metric): times.number(name) for name in times.keys()}
    return Baseline(device, backend, protocol, record, created, commit, seconds)


def used_by_baselines(folder: Path) -> dict[str, str]:
    """Return the names of the records that the baselines in the folder are of, each with that as the reason to keep it.

    Raise a ResultsError for a baseline that cannot be read.
    """
    paths = sorted(folder.glob("*.baseline.toml"))
    return {Path(read_baseline(path).record).name: f"the record of the baseline {path.name}" for path in paths}


def known_case(name: str, catalogue: Catalogue, where: str) -> str:
    """Return the name, if the catalogue has such a case; a ResultsError with the nearest ones otherwise."""
    try:
        return catalogue.case(name).name
    except UsageError as error:
        raise ResultsError(f"{where}: {error}") from None


FACTOR = 1.5  # half as long again: no noise, control or number of processes makes that a matter of chance


@dataclass(frozen=True)
class Slowdown:
    """A case's median over the baseline's: `ratio`, None where one of them is missing, and the `limit` of the rule."""

    case: str
    metric: str
    ratio: float | None
    limit: float

    @property
    def kept(self) -> bool | None:
        """Whether the rule is kept; None where the ratio is unknown."""
        return None if self.ratio is None else self.ratio <= self.limit


def slowdowns(record: RunRecord, factor: float = FACTOR, baseline: Baseline | None = None) -> list[Slowdown]:
    """Compare every case with the baseline, metric by metric; a case without a baseline has one unknown ratio."""
    before: dict[str, dict[str, float]] = {}
    for (name, metric), seconds in baseline.seconds.items() if baseline else ():
        before.setdefault(name, {})[metric] = seconds
    return [
        slowdown
        for case in record.cases
        if not case.is_edge
        for slowdown in _of_case(case, before.get(case.name) or {clock_of(case): 0.0}, factor)
    ]


def _of_case(case: CaseResult, before: Mapping[str, float], factor: float) -> Iterator[Slowdown]:
    """Yield the ratio of the case's median to each of the baseline's."""
    for metric, seconds in before.items():
        one = case.measurement(metric)
        median = one.median if one and one.valid and one.samples else None
        yield Slowdown(case.name, metric, median / seconds if seconds and median is not None else None, factor)
