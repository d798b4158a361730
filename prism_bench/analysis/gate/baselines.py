"""Baseline of a device: medians of one record by case and metric, in TOML next to its budgets.

    device, backend, protocol      what a record must share to be held against it
    record, created, commit        origin of the figures
    host                           whose clock read the host's times; absent where it is unknown or there are several
    [seconds.<metric>]             "case" = median in seconds

Kernels that take much longer than it are degraded: a rule of thumb that needs neither error bars nor a second process.
Times that the host's clock read are compared only within one host. What most cases have in common there is no kernel's:
it is reported once, and divided out.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median as middle
from typing import cast

from prism_bench.analysis.compare.comparable import device_of, other_host
from prism_bench.analysis.gate.toml_table import TomlTable, read_table
from prism_bench.analysis.rivals import clock_of
from prism_bench.catalogue import Catalogue
from prism_bench.errors import ResultsError, UsageError
from prism_bench.io.files import write_atomically
from prism_bench.measure.limits import valid_median
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.spec.metric import MEASURED, is_host_time
from prism_bench.units import count_text, ratio_text

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
    host: str = ""


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
    hosts = {record.host_of(case) for case in record.cases if case.measurements}
    return Baseline(
        device_of(record), record.backend, record.protocol.get("version"), name, record.created, record.commit or "",
        seconds, (hosts.pop() if len(hosts) == 1 else None) or "",
    )  # fmt: skip


def write_baseline(baseline: Baseline, path: Path) -> Path:
    """Keep the baseline at `path`, whole or not at all; return the path."""
    named = {key: value for key, value in vars(baseline).items() if key != "seconds" and (key != "host" or value)}
    facts = [f"{key} = {json.dumps(value)}" for key, value in named.items()]
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
    host, metrics = table.take("host", str, ""), table.take("seconds", dict[str, object])
    table.finish()
    seconds: dict[tuple[str, str], float] = {}
    for metric, medians in metrics.items():
        if metric not in MEASURED or not isinstance(medians, dict):
            raise ResultsError(f"{path}: seconds: unknown metric '{metric}'; known are {', '.join(MEASURED)}")
        times = TomlTable(cast("dict[str, object]", medians), f"{path}: seconds.{metric}")
        seconds |= {(name, metric): times.number(name) for name in times.keys()}
    return Baseline(device, backend, protocol, record, created, commit, seconds, host)


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
ENOUGH = 8  # cases: fewer show no factor that most have in common
COMMON = 0.1  # what most cases have in common is worth a note from this share on


@dataclass(frozen=True)
class Slowdown:
    """A case's median over the baseline's: `ratio`, None where one of them is missing, and the `limit` of the rule.

    `shared` is the factor that most cases have in common in a time of the host's, by which the ratio is divided.
    """

    case: str
    metric: str
    ratio: float | None
    limit: float
    shared: float = 1.0

    @property
    def kept(self) -> bool | None:
        """Whether the rule is kept; None where the ratio is unknown."""
        return None if self.ratio is None else self.ratio <= self.limit * self.shared


def slowdowns(record: RunRecord, factor: float = FACTOR, baseline: Baseline | None = None) -> list[Slowdown]:
    """Compare every case with the baseline, metric by metric; a case without a baseline has one unknown ratio.

    Times of another host's clock are left out.
    """
    before: dict[str, dict[str, float]] = {}
    for (name, metric), seconds in baseline.seconds.items() if baseline else ():
        before.setdefault(name, {})[metric] = seconds
    found = [
        slowdown
        for case in record.cases
        if not case.is_edge
        for slowdown in _of_case(case, before.get(case.name) or {clock_of(case): 0.0}, factor)
        if not (baseline and _other_host(record, case, slowdown.metric, baseline))
    ]
    copies = [one for one in found if is_host_time(one.metric) and one.metric != "wall_time"]  # which is a case's own
    shared = {
        metric: _shared([one for one in copies if one.metric == metric]) for metric in {one.metric for one in copies}
    }
    return [replace(one, shared=shared.get(one.metric, 1.0)) for one in found]


def _of_case(case: CaseResult, before: Mapping[str, float], factor: float) -> Iterator[Slowdown]:
    """Yield the ratio of the case's median to each of the baseline's."""
    for metric, seconds in before.items():
        one = case.measurement(metric)
        median = one.median if one and one.valid and one.samples else None
        yield Slowdown(case.name, metric, median / seconds if seconds and median is not None else None, factor)


def _other_host(record: RunRecord, case: CaseResult, metric: str, baseline: Baseline) -> str | None:
    """Return why the case's time does not compare with the baseline's; None where it does.

    A machine without a GPU is its host, and the baseline is of that machine; the baseline's own record compares anyway.
    """
    own = (baseline.created, baseline.commit) == (record.created, record.commit or "")
    if not baseline.host and (own or not record.uuids):
        return None
    why = other_host(metric, (baseline.host or None, record.host_of(case)), ("the baseline", "this record"))
    return f"{why}: 'prism-bench baseline' writes a baseline with its host" if why and not baseline.host else why


def _shared(found: Sequence[Slowdown]) -> float:
    """Return the factor that most cases have in common: the median ratio, 1 below it or for fewer than ENOUGH cases."""
    ratios = [one.ratio for one in found if one.ratio is not None]
    return max(1.0, middle(ratios)) if len(ratios) >= ENOUGH else 1.0


def host_notes(record: RunRecord, slow: Sequence[Slowdown], baseline: Baseline | None) -> Iterator[str]:
    """Yield what a reader should know of the host's times: which are not compared, and what most have in common."""
    if baseline is None:
        return
    for metric in KEPT:
        timed = [case for case in record.cases if (case.name, metric) in baseline.seconds and case.measurement(metric)]
        reasons = [reason for case in timed if (reason := _other_host(record, case, metric, baseline))]
        if reasons:
            yield f"not compared: {count_text(len(reasons), 'case')} of {metric.replace('_', ' ')}: {reasons[0]}"
        own = [one for one in slow if one.metric == metric and one.ratio is not None]
        if own and own[0].shared > 1 + COMMON:
            yield (
                f"{metric.replace('_', ' ')} takes {ratio_text(own[0].shared)} the baseline's in the median of "
                f"{count_text(len(own), 'case')}: most have it in common, so it is the host's; it is divided out"
            )
