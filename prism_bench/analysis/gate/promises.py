"""Promises on one device, in microseconds: `suites/budgets/<device>.toml`, and the baseline next to it.

    device = "NVIDIA H200"                     # both as in the records that are held to this
    backend = "cuda"
    protocol = 1                               # of measuring; other times mean something else

    [rules]                                    # 1.5 where it is left out
    degraded_over_baseline = 1.3               # a longer time than so many times the baseline's is bad

    [[budget]]
    case = "softmax[rows=32,cols=1000]"
    metric = "cold_time"                       # a time, held by at_most_us; another metric by at_most or at_least
    at_most_us = 6.5
    owner = "who answers for it"
    reason = "why it is what it is"
    expires = 2027-06-30                       # optional: from then on it binds nobody

Another catalogue keeps them in its folder `budgets/`, or where the project's configuration has them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import cast

from prism_bench.analysis.compare.comparable import device_of
from prism_bench.analysis.gate.baselines import FACTOR, Baseline, known_case, read_baseline
from prism_bench.analysis.gate.toml_table import TomlTable, read_table
from prism_bench.analysis.summary import COLUMNS, TEXT
from prism_bench.catalogue import Catalogue
from prism_bench.errors import ResultsError
from prism_bench.io.files import default_folder
from prism_bench.record.identity import slug
from prism_bench.record.run_record import RunRecord
from prism_bench.spec.metric import DERIVED, MEASURED, Budget

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
    table = read_table(path)
    _require_same(path, (table.take("device", str), table.take("backend", str), table.take("protocol", int)), record)
    degraded = _degraded(TomlTable(table.take("rules", dict[str, object], dict[str, object]()), f"{path}: rules"))
    entries: list[object] = table.take("budget", list[object], list[object]())
    table.finish()
    budgets: dict[str, tuple[Budget, ...]] = {}
    for number, entry in enumerate(entries, 1):
        case, budget = _budget(entry, f"{path}: budget {number}", catalogue)
        if any(one.metric == budget.metric for one in budgets.get(case, ())):
            raise ResultsError(f"{path}: budget {number}: {case} has a budget for {budget.metric} already")
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
        metric, at_most, at_least, owner=table.take("owner", str), reason=table.take("reason", str),
        expires=table.take("expires", date, None),
    )  # fmt: skip
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
