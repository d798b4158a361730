"""What the catalogue defines, launches, verifies and times, next to the claims of the design documents.

Ends with 1 where a definition is unused, or a kernel of the record is not verified or not timed.
"""

import argparse
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.table import Table
from rich.text import Text

from lab import REPOSITORY
from prism_bench.catalogue import Catalogue, discover
from prism_bench.cli import options
from prism_bench.errors import PrismBenchError, unknown
from prism_bench.record import store
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.report.terminal.tables import FittedColumn, FittedTable, Row, fitted
from prism_bench.spec.case import Case
from prism_bench.spec.kernel import KernelSpec
from prism_bench.units import count_text
from prism_bench.workflows.compile_table import launched

# Figures of the design documents for an earlier source tree.
CLAIMS = {
    "kernels": ("61", "infrastructure status report"),
    "definitions": ("170", "GPU optimisation master plan"),
    "entries loaded": ("73", "GPU optimisation master plan"),
    "kernels in chains": ("about 22", "GPU optimisation master plan"),
    "definitions unused": ("34", "GPU optimisation master plan"),
}
_DEFINITION = re.compile(r"__global__\s+void\s+(?:__launch_bounds__\s*\((?:[^()]|\([^()]*\))*\)\s*)?(\w+)\s*\(")
_NAME = re.compile(r"\w+")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_COLUMNS = (
    FittedColumn("kernel"), FittedColumn("family", goes=5), FittedColumn("definitions", numbers=True, goes=2),
    FittedColumn("instances", numbers=True, goes=3), FittedColumn("variants", numbers=True, goes=4),
    FittedColumn("verified", numbers=True), FittedColumn("timed"), FittedColumn("replaces", goes=1),
    FittedColumn("gaps"),
)  # fmt: skip


@dataclass(frozen=True)
class InventoryItem:
    """One kernel: its `__global__` definitions, the instances that its cases launch, and what a record knows of it.

    `verified` and `checks` count cases (edges and golden ones too) that came out right and that there are; `timed` and
    `labels` are the labels with a trusted time and those with a workload; both empty without a record.
    """

    kernel: str
    family: str
    definitions: tuple[str, ...]
    launched: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()
    verified: int = 0
    checks: int = 0
    timed: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    measures_machine: bool = False

    @property
    def unused(self) -> tuple[str, ...]:
        """Definitions that no case launches, nor names as a part of what it launches."""
        names = {name for instance in self.launched for name in _NAME.findall(instance)}
        return tuple(name for name in self.definitions if name not in names)

    @property
    def gaps(self) -> tuple[str, ...]:
        """What is missing, in words."""
        found = [f"unused: {', '.join(self.unused)}"] if self.unused else []
        found += [] if self.launched else ["launches nothing"]
        if self.checks and self.verified < self.checks:
            found.append(f"{self.checks - self.verified} of {count_text(self.checks, 'case')} not verified")
        untimed = [label for label in self.labels if label not in self.timed]
        return tuple(found + ([f"no time at {', '.join(untimed)}"] if self.checks and untimed else []))


def inventory(catalogue: Catalogue, record: RunRecord | None = None) -> list[InventoryItem]:
    """Return an item per kernel of the catalogue, those that measure the machine too; count shared definitions once.

    A definition in a shared header belongs to the first kernel that launches it; what no kernel launches is an own
    item, under the header's name.
    """
    entries: dict[Path, set[str]] = {}
    for request in launched(catalogue):
        entries.setdefault(request.source, set()).update(map(str, request.instances))
    claimed: set[str] = set()
    results = {case.name: case for case in record.cases} if record else {}
    cases: dict[str, list[Case]] = {}
    for case in (*catalogue.cases(), *catalogue.edges()):
        cases.setdefault(case.spec.name, []).append(case)
    items = [
        _item(spec, cases.get(spec.name, []), entries.get(spec.source_path or Path(), set()), results, claimed)
        for spec in catalogue.kernels.values()
    ]
    headers = sorted((catalogue.folder / "include").rglob("*.cuh"))
    lonely = {path.name: [name for name in _definitions(path.read_text()) if name not in claimed] for path in headers}
    return items + [InventoryItem(header, "include", tuple(names)) for header, names in lonely.items() if names]


def chosen_items(items: Sequence[InventoryItem], names: Sequence[str]) -> list[InventoryItem]:
    """Return the items of the kernels and families that are named, all without names; a UsageError for unknown ones."""
    known = {word for item in items for word in (item.kernel, item.family)}
    for name in names:
        if name not in known:
            raise unknown("kernel or family", name, known)
    return [item for item in items if not names or {item.kernel, item.family} & set(names)]


def totals(items: list[InventoryItem]) -> Mapping[str, int]:
    """Return the catalogue's figures by the names of `CLAIMS`; kernels that measure the machine are not counted."""
    return {
        "kernels": sum(not item.measures_machine and item.family != "include" for item in items),
        "definitions": sum(len(item.definitions) for item in items),
        "entries loaded": sum(len(item.launched) for item in items),
        "kernels in chains": len({name for item in items for name in (item.kernel, *item.replaces) if item.replaces}),
        "definitions unused": sum(len(item.unused) for item in items),
    }


def _item(
    spec: KernelSpec, cases: Sequence[Case], entries: set[str], results: Mapping[str, CaseResult], claimed: set[str]
) -> InventoryItem:
    instances = sorted(entries)
    text = spec.source_path.read_text("utf-8", "replace") if spec.source_path else ""
    own = [name for name in _definitions(text) if name not in claimed]
    shared = {instance.split("<")[0] for instance in instances} - set(own) - claimed
    claimed.update(own, shared)
    known = {case.name: results[case.name] for case in cases if case.name in results} if results else {}
    return InventoryItem(
        kernel=spec.name,
        family=spec.family,
        definitions=(*own, *sorted(shared)),
        launched=tuple(instances),
        variants=tuple(spec.variants),
        replaces=spec.replaces,
        verified=sum(result.status == "ok" for result in known.values()),
        checks=len(cases) if results else 0,
        timed=tuple(label for label in spec.workloads if _has_time(known.values(), label)),
        labels=tuple(spec.only_labels or spec.workloads),
        measures_machine=spec.ceiling is not None,
    )


def _definitions(text: str) -> list[str]:
    return list(dict.fromkeys(_DEFINITION.findall(_COMMENT.sub("", text))))


def _has_time(results: Iterable[CaseResult], label: str) -> bool:
    """Return whether the kernel itself, not a variant, has a trusted time at that label."""
    found = [result.measurement("cold_time") for result in results if result.label == label and not result.variant]
    return any(one is not None and one.valid and one.samples for one in found)


def items_table(items: Sequence[InventoryItem], record: Path | None) -> FittedTable:
    """Return a row for each kernel, with its gaps."""
    rows: list[Row] = []
    for item in items:
        verified = f"{item.verified}/{item.checks}" if item.checks else "-"
        counts = (str(len(item.definitions)), str(len(item.launched)), str(len(item.variants)), verified)
        words = (" ".join(item.timed) or "-", " ".join(item.replaces), Text("; ".join(item.gaps), style="yellow"))
        rows.append(((item.kernel, item.family, *counts, *words), None))
    return fitted(f"verified and timed: {record or 'no record'}", _COLUMNS, rows)


def claims_table(counts: Mapping[str, int]) -> Table:
    """Return the documents' figures next to those of the catalogue."""
    table = Table(title="figures of the documents and of the catalogue", title_justify="left")
    for name in ("", "documents", "here", "source"):
        table.add_column(name, justify="right" if name in ("documents", "here") else "left")
    for name, (quoted, source) in CLAIMS.items():
        table.add_row(name, quoted, str(counts[name]), source)
    return table


def main(words: Sequence[str] | None = None) -> int:
    """Print the inventory; return 1 where something is unused, unverified or untimed, 2 on an unreadable file."""
    parser = argparse.ArgumentParser(prog="inventory", description=__doc__)
    parser.add_argument("kernels", nargs="*", help="kernels or families; all unless named")
    parser.add_argument("--record", type=Path, help="read this run record; the newest one unless named")
    parser.add_argument("--runs", type=Path, default=REPOSITORY / "reports" / "runs")
    parser.add_argument("--catalogue", type=Path, default=REPOSITORY / "kernels")
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")
    chosen = parser.parse_args(words)
    try:
        return _print_inventory(chosen)
    except PrismBenchError as error:
        print(f"inventory: {error}", file=sys.stderr)
        return 2


def _print_inventory(chosen: argparse.Namespace) -> int:
    path = chosen.record or next(reversed(store.records_in(chosen.runs)), None)
    catalogue = discover(chosen.catalogue)
    for problem in catalogue.problems:
        print(f"catalogue: {problem}", file=sys.stderr)
    everything = inventory(catalogue, store.read(path) if path else None)
    counts, items = totals(everything), chosen_items(everything, chosen.kernels)
    if chosen.json:
        kernels = [asdict(item) | {"unused": item.unused, "gaps": item.gaps} for item in items]
        claims = {
            name: {"documents": quoted, "source": source, "here": counts[name]}
            for name, (quoted, source) in CLAIMS.items()
        }
        options.print_json({"record": str(path) if path else None, "claims": claims, "kernels": kernels})
    else:
        options.out().print(items_table(items, path), claims_table(counts))
    return 1 if catalogue.problems or any(item.gaps for item in items) else 0
