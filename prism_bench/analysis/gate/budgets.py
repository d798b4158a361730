"""Budgets, promises and baselines of a device: their files, read strictly, and the verdicts on them."""

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
from prism_bench.units import count_text, ratio_text

# Verdicts on budgets: those of the specs, which hold anywhere, and those of a device.


@dataclass(frozen=True)
class BudgetVerdict:
    """Verdict on one budget of one case, with the measured `value`.

    `source` is `spec`, or the file that promises it on this device. `interval` is that of the value, where the verdict
    takes its error into account.
    """

    case: str
    budget: Budget
    value: float | None
    verdict: BudgetWord
    source: str = "spec"
    interval: tuple[float, float] | None = None

    @property
    def ratio(self) -> float | None:
        """Return the value over what was promised, which every report prints; None if unknown."""
        return self.value / self.budget.limit if self.value is not None and self.budget.limit else None

    @property
    def use(self) -> float | None:
        """Return how much of what the budget allows is used, above 1 where it is missed; None if unknown."""
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

    Budgets of cases that the summary does not have are left to `absent`, the values' errors to `uncertainty`.
    """
    today = today or datetime.now(UTC).date()
    found: list[BudgetVerdict] = []
    for row in rows:
        own = [(budget, "spec") for budget in _budgets(row, catalogue)]
        own += [(budget, source) for budget in (promised or {}).get(row["case"], ())]
        found += [_verdict(row, budget, origin, today) for budget, origin in own]
    return found


def absent(
    rows: Iterable[SummaryRow], promised: Mapping[str, tuple[Budget, ...]], source: str = ""
) -> list[BudgetVerdict]:
    """Return the promised budgets of cases that the summary does not have: unmeasured, every one."""
    there = {row["case"] for row in rows}
    missing = [(case, budget) for case, budgets in promised.items() if case not in there for budget in budgets]
    return [BudgetVerdict(case, budget, None, "unmeasured", source) for case, budget in missing]


def _verdict(row: SummaryRow, budget: Budget, source: str, today: date) -> BudgetVerdict:
    value = number(row.get(budget.metric))
    return BudgetVerdict(row["case"], budget, value, budget.verdict(value, today), source)


def _budgets(row: SummaryRow, catalogue: Catalogue) -> tuple[Budget, ...]:
    """Return the budgets of a row's spec; a variant has only those it names: a naive one need not be fast."""
    spec = catalogue.kernels.get(row["kernel"])
    if spec is None:
        return ()
    variant = spec.variants.get(row["variant"]) if row["variant"] else None
    budgets = spec.budgets
    if row["variant"]:
        budgets = cast("Sequence[Budget]", variant.changes.get("budgets", ())) if variant else ()
    return tuple(budget for budget in budgets if budget.label in (None, row["label"]))


# Strict reader of TOML files: every error names the file, the table and what would have been right.

_Kind = TypeVar("_Kind")
_Default = TypeVar("_Default")


class _Required:
    """Mark of a key without a default."""


_REQUIRED: Final = _Required()


class TomlTable:
    """One table of a file. Values are taken out key by key; `finish` rejects the keys that are left."""

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
        """Return the value of `key`; a ResultsError where it is missing without a default, or of another kind."""
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
        """Return a number that is not negative; a ResultsError as of `take`."""
        if key not in self._data and not isinstance(default, _Required):
            return self.take(key, float, default)
        value = self._required(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ResultsError(f"{self.where}: '{key}' is {value!r}, not int or float")
        if not 0 <= value < float("inf"):
            raise ResultsError(f"{self.where}: '{key}' is {value}; it must be a number from 0 upwards")
        return value

    def known_word(self, key: str, known: Collection[str]) -> str:
        """Return a word among `known`."""
        word = self.take(key, str)
        if word not in known:
            raise ResultsError(f"{self.where}: {key} '{word}' is unknown{_near(word, known)}")
        return word

    def finish(self) -> None:
        """Raise a ResultsError where a key is left that no caller took."""
        for key in self._left:
            raise ResultsError(f"{self.where}: unknown key '{key}'{_near(key, self._known)}")


def _read_table(path: Path) -> TomlTable:
    """Return the file at `path` as a table; a ResultsError with the line where it is malformed."""
    try:
        return TomlTable(tomllib.loads(text_of(path, "readable TOML")), str(path))
    except (OSError, ValueError, RecursionError) as error:
        raise ResultsError(f"{path}: not readable TOML ({error})") from error


def _near(word: str, known: Iterable[str]) -> str:
    near = get_close_matches(word, list(known), n=3, cutoff=0.4)
    return f"; did you mean {', '.join(near)}?" if near else ""


# Baseline of a device: medians of one record by case and metric, in TOML next to its budgets.
#
#     device, backend, protocol      what a record must share to be held against it     record, created, commit
# origin of the figures     host                           whose clock read the host's times; absent where it is unknown
# or there are several     [seconds.<metric>]             "case" = median in seconds
#
# Kernels that take much longer than it are degraded: a rule of thumb that needs neither error bars nor a second
# process. Times that the host's clock read are compared only within one host. What most cases have in common there is
# no kernel's: it is reported once, and divided out.

_KEPT = ("cold_time", "hot_time", "end_to_end_time", "wall_time")  # times of a kernel; none of what the host did


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
_COMMON = 0.1  # what most cases have in common is worth a note from this share on


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
    for metric in _KEPT:
        timed = [case for case in record.cases if (case.name, metric) in baseline.seconds and case.measurement(metric)]
        reasons = [reason for case in timed if (reason := _other_host(record, case, metric, baseline))]
        if reasons:
            yield f"not compared: {count_text(len(reasons), 'case')} of {metric.replace('_', ' ')}: {reasons[0]}"
        own = [one for one in slow if one.metric == metric and one.ratio is not None]
        if own and own[0].shared > 1 + _COMMON:
            yield (
                f"{metric.replace('_', ' ')} takes {ratio_text(own[0].shared)} the baseline's in the median of "
                f"{count_text(len(own), 'case')}: most have it in common, so it is the host's; it is divided out"
            )


# Promises on one device, in microseconds: `suites/budgets/<device>.toml`, and the baseline next to it.
#
#     device = "NVIDIA H200"                     # both as in the records that are held to this
#     backend = "cuda"
#     protocol = 1                               # of measuring; other times mean something else
#
#     [rules]                                    # 1.5 where it is left out
#     degraded_over_baseline = 1.3               # a longer time than so many times the baseline's is bad
#
#     [[budget]]
#     case = "softmax[rows=32,cols=1000]"
#     metric = "cold_time"                       # a time, held by at_most_us; another metric by at_most or at_least
#     at_most_us = 6.5
#     owner = "who answers for it"
#     reason = "why it is what it is"
#     expires = 2027-06-30                       # optional: from then on it binds nobody
#
# Another catalogue keeps them in its folder `budgets/`, or where the project's configuration has them.

_METRICS = tuple(name for name in dict.fromkeys([*MEASURED, *DERIVED, *COLUMNS]) if name not in TEXT)


class PromisesOfOthers(ResultsError):
    """Budgets or a baseline are of another device, backend or protocol than the record. Keep one for each of them."""


@dataclass(frozen=True)
class Promises:
    """Budgets of a device by case, the factor from which a case is degraded, and the baseline, where one exists.

    `path` is the device's file, None where it has none. `not_held` is why nothing was compared with them, empty where
    they apply.
    """

    path: Path | None = None
    budgets: Mapping[str, tuple[Budget, ...]] = field(default_factory=dict[str, tuple[Budget, ...]])
    degraded: float = FACTOR
    baseline: Baseline | None = None
    baseline_path: Path | None = None
    not_held: str = ""

    @property
    def source(self) -> str:
        """The name of the file of budgets, empty where it has none."""
        return self.path.name if self.path and self.budgets else ""


def folder_of(catalogue: Catalogue) -> Path:
    """Return the folder of a catalogue's budgets: the configured one, else `budgets` in the catalogue.

    Those of the built-in catalogue are in `suites/budgets` of the checkout.

    Where the catalogue came with an installed package there is no checkout: the current folder takes its place.
    """
    if catalogue.budgets:
        return catalogue.budgets
    own = catalogue.folder.resolve()
    if own != default_folder().resolve():
        return own / "budgets"
    return (own.parent if (own.parent / "suites").is_dir() else Path()) / "suites" / "budgets"


def baseline_path(device: str, catalogue: Catalogue) -> Path:
    """Return the path of the baseline of the device of that name."""
    return folder_of(catalogue) / f"{slug(device)}.baseline.toml"


def promises_for(record: RunRecord, catalogue: Catalogue) -> Promises:
    """Return the promises of the record's device.

    Raise a ResultsError with place and rule where a file is not right or is not about such records.
    """
    if record.imported:
        return Promises()
    device = device_of(record)
    path, past = folder_of(catalogue) / f"{slug(device)}.toml", baseline_path(device, catalogue)
    baseline = read_baseline(past) if past.is_file() else None
    if baseline:
        _require_same(past, (baseline.device, baseline.backend, baseline.protocol), record)
    degraded, budgets = _read(path, catalogue, record) if path.is_file() else (FACTOR, {})
    return Promises(path if path.is_file() else None, budgets, degraded, baseline, past if baseline else None)


def promises_or_reason(record: RunRecord, catalogue: Catalogue) -> Promises:
    """Return what the record's device is held to; where that is about other records, nothing and `not_held`."""
    try:
        return promises_for(record, catalogue)
    except PromisesOfOthers as error:
        return Promises(not_held=str(error))


def _read(path: Path, catalogue: Catalogue, record: RunRecord) -> tuple[float, dict[str, tuple[Budget, ...]]]:
    table = _read_table(path)
    _require_same(path, (table.take("device", str), table.take("backend", str), table.take("protocol", int)), record)
    degraded = _degraded(TomlTable(table.take("rules", dict[str, object], dict[str, object]()), f"{path}: rules"))
    entries: list[object] = table.take("budget", list[object], list[object]())
    table.finish()
    budgets: dict[str, tuple[Budget, ...]] = {}
    for position, entry in enumerate(entries, 1):
        case, budget = _budget(entry, f"{path}: budget {position}", catalogue)
        if any(one.metric == budget.metric for one in budgets.get(case, ())):
            raise ResultsError(f"{path}: budget {position}: {case} has a budget for {budget.metric} already")
        budgets[case] = (*budgets.get(case, ()), budget)
    return degraded, budgets


def _degraded(rules: TomlTable) -> float:
    """Return the factor from which a case is degraded."""
    degraded = rules.number("degraded_over_baseline", FACTOR)
    rules.finish()
    return degraded


def _require_same(path: Path, promised: tuple[str, str, int | None], record: RunRecord) -> None:
    own = device_of(record), record.backend, record.protocol.get("version")
    for word, theirs, mine in zip(("device", "backend", "protocol"), promised, own, strict=True):
        if theirs != mine:
            raise PromisesOfOthers(
                f"{path}: {word} is {theirs!r}, the record's is {mine!r}; "
                "a record is held only to what was promised for its device, backend and protocol"
            )


def _budget(entry: object, where: str, catalogue: Catalogue) -> tuple[str, Budget]:
    if not isinstance(entry, dict):
        raise ResultsError(f"{where}: not a table; write [[budget]]")
    table = TomlTable(cast("dict[str, object]", entry), where)
    case = known_case(table.take("case", str), catalogue, where)
    metric = table.known_word("metric", _METRICS)
    at_most, at_least = _limits(table, metric)
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


def _limits(table: TomlTable, metric: str) -> tuple[float | None, float | None]:
    """Return `at_most` and `at_least` in SI units, exactly one of them; times are written in microseconds."""
    if metric in MEASURED and MEASURED[metric].unit == "s":
        return table.number("at_most_us") * 1e-6, None
    limits = table.number("at_most", None), table.number("at_least", None)
    if (limits[0] is None) == (limits[1] is None):
        raise ResultsError(f"{table.where}: give exactly one of at_most and at_least")
    return limits
