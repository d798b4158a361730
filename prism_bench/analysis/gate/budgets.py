"""Budgets of the specs and promises of a device: verdicts on budgets, baselines, and the strict reader of their files.

Budgets of a spec hold on any device. The promises of a device are in `suites/budgets/<device>.toml`, with a baseline
next to it. Another catalogue keeps them in its folder `budgets/`, or where the project's configuration has them.
"""

import json
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from difflib import get_close_matches
from pathlib import Path
from statistics import median as middle
from typing import Final, TypeVar, cast, get_origin, overload

from prism_bench.analysis.compare.comparable import device_of, other_host
from prism_bench.analysis.peers import clock_of
from prism_bench.analysis.summary import COLUMNS, TEXT, SummaryRow, number
from prism_bench.catalogue import Catalogue
from prism_bench.errors import ResultsError, UsageError
from prism_bench.io.documents import text_of
from prism_bench.io.files import default_folder, write_atomically
from prism_bench.measure.plausibility import valid_median
from prism_bench.record.identity import slug
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.spec.metric import DERIVED, MEASURED, Budget, BudgetWord, is_host_time
from prism_bench.units import change_text, count_text

# Verdicts on budgets.


@dataclass(frozen=True)
class BudgetVerdict:
    """Verdict on one budget of one case, with the measured `value`.

    `source` is `spec`, or the file of promises of this device. `interval` is that of the value, if the verdict takes
    its error into account.
    """

    case: str
    budget: Budget
    value: float | None
    verdict: BudgetWord
    source: str = "spec"
    interval: tuple[float, float] | None = None

    @property
    def ratio(self) -> float | None:
        """Return the value over the promised limit, which every report prints; None if unknown."""
        return self.value / self.budget.limit if self.value is not None and self.budget.limit else None

    @property
    def use(self) -> float | None:
        """Return the used share of the budget, above 1 if it is missed; None if unknown."""
        if self.value is None:
            return None
        if self.budget.at_most is not None:
            return self.value / self.budget.at_most if self.budget.at_most else None
        return self.budget.at_least / self.value if self.budget.at_least is not None and self.value else None


def budget_verdicts(
    rows: Iterable[SummaryRow],
    catalogue: Catalogue,
    promised: Mapping[str, tuple[Budget, ...]] | None = None,
    source: str = "",
    today: date | None = None,
) -> list[BudgetVerdict]:
    """Return the verdict on every budget of every case of the summary: its spec's, and those `promised` by `source`.

    `absent` adds the budgets of cases that are not in the summary; the verdicts do not consider the values' errors.
    """
    today = today or datetime.now(UTC).date()
    verdicts: list[BudgetVerdict] = []
    for row in rows:
        budgets = [(budget, "spec") for budget in _spec_budgets(row, catalogue)]
        budgets += [(budget, source) for budget in (promised or {}).get(row["case"], ())]
        for budget, origin in budgets:
            value = number(row.get(budget.metric))
            verdicts.append(BudgetVerdict(row["case"], budget, value, budget.verdict(value, today), origin))
    return verdicts


def absent(
    rows: Iterable[SummaryRow], promised: Mapping[str, tuple[Budget, ...]], source: str = ""
) -> list[BudgetVerdict]:
    """Return the promised budgets of cases that are not in the summary, as unmeasured."""
    present = {row["case"] for row in rows}
    missing = [(case, budget) for case, budgets in promised.items() if case not in present for budget in budgets]
    return [BudgetVerdict(case, budget, None, "unmeasured", source) for case, budget in missing]


def _spec_budgets(row: SummaryRow, catalogue: Catalogue) -> tuple[Budget, ...]:
    """Return the budgets of a row's spec; a variant has only the budgets it names: a naive variant need not be fast."""
    spec = catalogue.kernels.get(row["kernel"])
    if spec is None:
        return ()
    variant = spec.variants.get(row["variant"]) if row["variant"] else None
    budgets = spec.budgets
    if row["variant"]:
        budgets = cast("Sequence[Budget]", variant.changes.get("budgets", ())) if variant else ()
    return tuple(budget for budget in budgets if budget.label in (None, row["label"]))


# Baseline of a device: medians of one record by case and metric, in TOML next to its budgets.
#
#     device, backend, protocol      must be equal in a record that is compared with it
#     record, created, commit        origin of the figures
#     host                           whose clock read the host's times; absent if unknown, or several
#     [seconds.<metric>]             "case" = median in seconds
#
# Kernels that take much longer are degraded: a rule of thumb that needs neither error bars nor a second process. Times
# that the host's clock read are compared only within one host. A factor that most cases have in common there is the
# host's, not a kernel's: it is reported once, and divided out.

_KEPT = ("cold_time", "hot_time", "end_to_end_time", "wall_time")  # times of a kernel, not of the host
FACTOR = 1.5  # a slowdown beyond it is no chance, whatever noise, control or number of processes
ENOUGH = 8  # fewer cases show no common factor
_COMMON = 0.1  # a common factor is worth a note from this share on


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
    """Return the valid medians of the kernels' times in the record called `name`; raise a ResultsError without any."""
    seconds = {
        (case.name, metric): median
        for case in record.cases
        for metric in _KEPT
        if case.status == "ok" and (median := valid_median(case, metric)) is not None
    }
    if not seconds:
        raise ResultsError(f"{name}: holds no valid time to make a baseline of")
    hosts = {record.host_of(case) for case in record.cases if case.measurements}
    return Baseline(
        device_of(record),
        record.backend,
        record.protocol.get("version"),
        name,
        record.created,
        record.commit or "",
        seconds,
        (hosts.pop() if len(hosts) == 1 else None) or "",
    )


def write_baseline(baseline: Baseline, path: Path) -> Path:
    """Write the baseline to `path` atomically; return the path."""
    named = {key: value for key, value in vars(baseline).items() if key != "seconds" and (key != "host" or value)}
    facts = [f"{key} = {json.dumps(value)}" for key, value in named.items()]
    lines = ["# Written by 'prism-bench check --accept'; medians in seconds.", *facts]
    for metric in dict.fromkeys(metric for _, metric in baseline.seconds):
        lines += ["", f"[seconds.{metric}]"]
        lines += [
            f"{json.dumps(case)} = {value:.4g}" for (case, name), value in baseline.seconds.items() if name == metric
        ]
    try:
        write_atomically(path, ("\n".join(lines) + "\n").encode())
    except OSError as error:
        raise ResultsError(f"cannot write {path}: {error.strerror}") from error
    return path


def read_baseline(path: Path) -> Baseline:
    """Return the baseline at `path`; raise a ResultsError that names an invalid key or value.

    A case that is no longer in the catalogue is harmless: no later record has it either.
    """
    table = _read_table(path)
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
    """Return the records behind the baselines in the folder: the reason to keep it by file name.

    Raise a ResultsError for an unreadable baseline.
    """
    paths = sorted(folder.glob("*.baseline.toml"))
    return {Path(read_baseline(path).record).name: f"the record of the baseline {path.name}" for path in paths}


@dataclass(frozen=True)
class Slowdown:
    """A case's median over the baseline's: `ratio`, None if a median is missing, and the `limit` of the rule.

    `shared` is the factor that most cases have in common in a time of the host, by which the ratio is divided.
    """

    case: str
    metric: str
    ratio: float | None
    limit: float
    shared: float = 1.0

    @property
    def kept(self) -> bool | None:
        """Whether the rule is kept; None if the ratio is unknown."""
        return None if self.ratio is None else self.ratio <= self.limit * self.shared


def slowdowns(record: RunRecord, factor: float = FACTOR, baseline: Baseline | None = None) -> list[Slowdown]:
    """Compare every case with the baseline, metric by metric; a case without a baseline has one unknown ratio.

    Times of another host's clock are left out.
    """
    before: dict[str, dict[str, float]] = {}
    for (name, metric), seconds in baseline.seconds.items() if baseline else ():
        before.setdefault(name, {})[metric] = seconds
    slow: list[Slowdown] = []
    ratios: dict[str, list[float]] = {}  # of times of the host, by metric; the wall time is the case's
    for case in record.cases:
        if case.is_edge:
            continue
        for metric, seconds in (before.get(case.name) or {clock_of(case): 0.0}).items():
            if baseline and _other_host(record, case, metric, baseline):
                continue
            measured = case.measurement(metric)
            median = measured.median if measured and measured.valid and measured.samples else None
            ratio = median / seconds if seconds and median is not None else None
            slow.append(Slowdown(case.name, metric, ratio, factor))
            if ratio is not None and is_host_time(metric) and metric != "wall_time":
                ratios.setdefault(metric, []).append(ratio)
    shared = {metric: max(1.0, middle(values)) for metric, values in ratios.items() if len(values) >= ENOUGH}
    return [replace(slowdown, shared=shared.get(slowdown.metric, 1.0)) for slowdown in slow]


def _other_host(record: RunRecord, case: CaseResult, metric: str, baseline: Baseline) -> str | None:
    """Return why the case's time cannot be compared with the baseline's, or None.

    A machine without a GPU is its host, and the baseline is of that machine. The record of the baseline can always be
    compared.
    """
    is_origin = (baseline.created, baseline.commit) == (record.created, record.commit or "")
    if not baseline.host and (is_origin or not record.uuids):
        return None
    why = other_host(metric, (baseline.host or None, record.host_of(case)), ("the baseline", "this record"))
    return f"{why}: 'prism-bench check --accept' writes a baseline with its host" if why and not baseline.host else why


def host_notes(record: RunRecord, slow: Sequence[Slowdown], baseline: Baseline | None) -> Iterator[str]:
    """Yield notes on the host's times: those that are not compared, and the common factor that is divided out."""
    if baseline is None:
        return
    for metric in _KEPT:
        timed = [case for case in record.cases if (case.name, metric) in baseline.seconds and case.measurement(metric)]
        reasons = [reason for case in timed if (reason := _other_host(record, case, metric, baseline))]
        if reasons:
            yield f"not compared: {count_text(len(reasons), 'case')} of {metric.replace('_', ' ')}: {reasons[0]}"
        compared = [slowdown for slowdown in slow if slowdown.metric == metric and slowdown.ratio is not None]
        if compared and compared[0].shared > 1 + _COMMON:
            yield (
                f"{metric.replace('_', ' ')} differs by {change_text(compared[0].shared)} from the baseline's in the "
                f"median of {count_text(len(compared), 'case')}: most have it in common, so it is the host's; it is "
                "divided out"
            )


# Promises of one device, in microseconds: `suites/budgets/<device>.toml`.
#
#     device = "NVIDIA H200"                     # both as in the compared records
#     backend = "cuda"
#     protocol = 1                               # of measuring; times of another protocol have another meaning
#
#     [rules]                                    # optional
#     degraded_over_baseline = 1.3               # a longer time than 1.3 times the baseline's is bad; default 1.5
#
#     [[budget]]
#     case = "softmax[rows=32,cols=1000]"
#     metric = "cold_time"                       # a time, limited by at_most_us; another metric by at_most or at_least
#     at_most_us = 6.5
#     owner = "the responsible team"
#     reason = "the reason for the limit"
#     expires = 2027-06-30                       # optional: the budget does not bind from this day on

_METRICS = tuple(name for name in dict.fromkeys([*MEASURED, *DERIVED, *COLUMNS]) if name not in TEXT)


class PromisesOfOthers(ResultsError):
    """Budgets or a baseline are of another device, backend or protocol than the record. Keep a file for each."""


@dataclass(frozen=True)
class Promises:
    """Budgets of a device by case, the factor from which a case is degraded, and the baseline, if it exists.

    `path` is the device's file, if it exists. `not_held` is the reason if the promises do not apply, else empty.
    """

    path: Path | None = None
    budgets: Mapping[str, tuple[Budget, ...]] = field(default_factory=dict[str, tuple[Budget, ...]])
    degraded: float = FACTOR
    baseline: Baseline | None = None
    baseline_path: Path | None = None
    not_held: str = ""

    @property
    def source(self) -> str:
        """The name of the file, empty without budgets."""
        return self.path.name if self.path and self.budgets else ""


def folder_of(catalogue: Catalogue) -> Path:
    """Return the folder of a catalogue's budgets: the configured folder, else `budgets` in the catalogue.

    The budgets of the built-in catalogue are in `suites/budgets` of the checkout, or of the current folder if the
    catalogue came with an installed package.
    """
    if catalogue.budgets:
        return catalogue.budgets
    folder = catalogue.folder.resolve()
    if folder != default_folder().resolve():
        return folder / "budgets"
    return (folder.parent if (folder.parent / "suites").is_dir() else Path()) / "suites" / "budgets"


def baseline_path(device: str, catalogue: Catalogue) -> Path:
    """Return the path of the device's baseline."""
    return folder_of(catalogue) / f"{slug(device)}.baseline.toml"


def promises_for(record: RunRecord, catalogue: Catalogue) -> Promises:
    """Return the promises of the record's device.

    Raise a ResultsError with place and rule if a file is invalid, PromisesOfOthers if it is for other records.
    """
    if record.imported:
        return Promises()
    device = device_of(record)
    path, baseline_file = folder_of(catalogue) / f"{slug(device)}.toml", baseline_path(device, catalogue)
    baseline = read_baseline(baseline_file) if baseline_file.is_file() else None
    if baseline:
        _require_same(baseline_file, (baseline.device, baseline.backend, baseline.protocol), record)
    degraded, budgets = _read_promises(path, catalogue, record) if path.is_file() else (FACTOR, {})
    return Promises(path if path.is_file() else None, budgets, degraded, baseline, baseline_file if baseline else None)


def promises_or_reason(record: RunRecord, catalogue: Catalogue) -> Promises:
    """Return the promises of the record's device; if they are for other records, none and the reason in `not_held`."""
    try:
        return promises_for(record, catalogue)
    except PromisesOfOthers as error:
        return Promises(not_held=str(error))


def _read_promises(path: Path, catalogue: Catalogue, record: RunRecord) -> tuple[float, dict[str, tuple[Budget, ...]]]:
    """Return the factor from which a case is degraded, and the budgets by case."""
    table = _read_table(path)
    _require_same(path, (table.take("device", str), table.take("backend", str), table.take("protocol", int)), record)
    rules = TomlTable(table.take("rules", dict[str, object], dict[str, object]()), f"{path}: rules")
    degraded = rules.number("degraded_over_baseline", FACTOR)
    rules.finish()
    entries: list[object] = table.take("budget", list[object], list[object]())
    table.finish()
    budgets: dict[str, tuple[Budget, ...]] = {}
    for position, entry in enumerate(entries, 1):
        case, budget = _budget(entry, f"{path}: budget {position}", catalogue)
        if any(other.metric == budget.metric for other in budgets.get(case, ())):
            raise ResultsError(f"{path}: budget {position}: {case} has a budget for {budget.metric} already")
        budgets[case] = (*budgets.get(case, ()), budget)
    return degraded, budgets


def _require_same(path: Path, promised: tuple[str, str, int | None], record: RunRecord) -> None:
    values = device_of(record), record.backend, record.protocol.get("version")
    for name, theirs, mine in zip(("device", "backend", "protocol"), promised, values, strict=True):
        if theirs != mine:
            raise PromisesOfOthers(
                f"{path}: {name} is {theirs!r}, the record's is {mine!r}; "
                "a record is held only to what was promised for its device, backend and protocol"
            )


def _budget(entry: object, where: str, catalogue: Catalogue) -> tuple[str, Budget]:
    if not isinstance(entry, dict):
        raise ResultsError(f"{where}: not a table; write [[budget]]")
    table = TomlTable(cast("dict[str, object]", entry), where)
    case = known_case(table.take("case", str), catalogue, where)
    metric = table.known_word("metric", _METRICS)
    if metric in MEASURED and MEASURED[metric].unit == "s":
        at_most, at_least = table.number("at_most_us") * 1e-6, None
    else:
        at_most, at_least = table.number("at_most", None), table.number("at_least", None)
        if (at_most is None) == (at_least is None):
            raise ResultsError(f"{where}: give exactly one of at_most and at_least")
    budget = Budget(
        metric,
        at_most,
        at_least,
        owner=table.take("owner", str),
        reason=table.take("reason", str),
        expires=table.take("expires", date, None),
    )
    table.finish()
    return case, budget


def known_case(name: str, catalogue: Catalogue, where: str) -> str:
    """Return the name if the catalogue has the case; else raise a ResultsError with the nearest names."""
    try:
        return catalogue.case(name).name
    except UsageError as error:
        raise ResultsError(f"{where}: {error}") from None


# Strict reader of TOML files: every error names the file, the table and a valid value.

_Kind = TypeVar("_Kind")
_Default = TypeVar("_Default")


class _Required:
    """Mark of a key without a default."""


_REQUIRED: Final = _Required()


class TomlTable:
    """Table of a file. Values are taken key by key; `finish` rejects the remaining keys."""

    def __init__(self, data: Mapping[str, object], where: str) -> None:
        self._data, self._left, self.where = data, dict(data), where
        self._known: list[str] = []

    def keys(self) -> list[str]:
        """Return all keys of the table."""
        return list(self._data)

    @overload
    def take(self, key: str, kind: type[_Kind]) -> _Kind: ...

    @overload
    def take(self, key: str, kind: type[_Kind], default: _Default) -> _Kind | _Default: ...

    def take(self, key: str, kind: type[_Kind], default: _Default | _Required = _REQUIRED) -> _Kind | _Default:
        """Return the value of `key`; raise a ResultsError if it is missing without a default, or of another kind."""
        if key not in self._data and not isinstance(default, _Required):
            self._known.append(key)
            return default
        value = self._required(key)
        plain = get_origin(kind) or kind
        if isinstance(value, bool) or not isinstance(value, plain):
            raise ResultsError(f"{self.where}: '{key}' is {value!r}, not {plain.__name__}")
        return cast("_Kind", value)

    def _required(self, key: str) -> object:
        self._known.append(key)
        if key not in self._data:
            raise ResultsError(f"{self.where}: '{key}' is missing")
        return self._left.pop(key)

    @property
    def left(self) -> Collection[str]:
        """The keys that no caller has taken."""
        return self._left.keys()

    @overload
    def number(self, key: str) -> float: ...

    @overload
    def number(self, key: str, default: _Default) -> float | _Default: ...

    def number(self, key: str, default: _Default | _Required = _REQUIRED) -> float | _Default:
        """Return a number that is not negative; raise a ResultsError as `take` does."""
        if key not in self._data and not isinstance(default, _Required):
            return self.take(key, float, default)
        value = self._required(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ResultsError(f"{self.where}: '{key}' is {value!r}, not int or float")
        if not 0 <= value < float("inf"):
            raise ResultsError(f"{self.where}: '{key}' is {value}; it must be a number from 0 upwards")
        return value

    def known_word(self, key: str, known: Collection[str]) -> str:
        """Return a string that must be among `known`."""
        word = self.take(key, str)
        if word not in known:
            raise ResultsError(f"{self.where}: {key} '{word}' is unknown{_near(word, known)}")
        return word

    def finish(self) -> None:
        """Raise a ResultsError if a key is left that no caller took."""
        for key in self._left:
            raise ResultsError(f"{self.where}: unknown key '{key}'{_near(key, self._known)}")


def _read_table(path: Path) -> TomlTable:
    """Return the file at `path` as a table; raise a ResultsError with the malformed line."""
    try:
        return TomlTable(tomllib.loads(text_of(path, "readable TOML")), str(path))
    except (OSError, ValueError, RecursionError) as error:
        raise ResultsError(f"{path}: not readable TOML ({error})") from error


def _near(word: str, known: Iterable[str]) -> str:
    near = get_close_matches(word, list(known), n=3, cutoff=0.4)
    return f"; did you mean {', '.join(near)}?" if near else ""
