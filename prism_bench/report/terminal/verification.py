"""Verified cases of several backends: the largest relative error of each kernel, and every case that failed."""

from collections import Counter
from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prism_bench.run_record import CaseResult, RunRecord


def verification_json(records: Mapping[str, RunRecord]) -> list[dict[str, object]]:
    """Return what `prism-bench verify --json` prints."""
    return [
        {"backend": backend, "name": case.name, "label": case.label, "status": case.status, "reason": case.reason,
         "verification": list(case.verification)}
        for backend, record in records.items() for case in record.cases
    ]  # fmt: skip


def verification_view(records: Mapping[str, RunRecord]) -> RenderableType:
    """Return a table with a column for each backend, then counts and every case that did not pass."""
    table = Table(title="largest relative error, and where", title_justify="left")
    table.add_column("kernel", overflow="fold")
    for backend in records:
        table.add_column(backend, overflow="fold")
    by_backend = [_by_kernel(record) for record in records.values()]
    for kernel in sorted({kernel for groups in by_backend for kernel in groups}):
        table.add_row(kernel, *(_cell(groups.get(kernel)) for groups in by_backend))
    rest = [line for backend, record in records.items() for line in _failures(backend, record)]
    return Group(table, *rest)


def _failures(backend: str, record: RunRecord) -> list[Text]:
    """Return the counts by status, and a line for every case that did not pass."""
    counts = Counter(case.status for case in record.cases)
    lines = [Text(f"{backend}: " + ", ".join(f"{count} {status}" for status, count in counts.items()))]
    failed = [case for case in record.cases if case.status != "ok"]
    return lines + [Text.assemble((case.status, "red"), f" {case.reason}") for case in failed]


def _by_kernel(record: RunRecord) -> dict[str, list[CaseResult]]:
    groups: dict[str, list[CaseResult]] = {}
    for case in record.cases:
        groups.setdefault(f"{case.kernel}:{case.variant}" if case.variant else case.kernel, []).append(case)
    return groups


def _cell(cases: Sequence[CaseResult] | None) -> str | Text:
    """Return the largest relative error with usual values; near 0, those of an input regime mean nothing."""
    if cases is None:
        return "-"
    wrong = [case for case in cases if case.status not in ("ok", "skipped")]
    if wrong:
        return Text(f"{len(wrong)} of {len(cases)} cases {wrong[0].status}", "red")
    usual = [case for case in cases if case.label != "edge" or case.name.endswith(f"[{case.workload_text}]")]
    entries = [(entry, case) for case in usual for entry in case.verification if entry.get("compared")]
    if not entries:
        return Text(f"{cases[0].status}, nothing to compare", "dim")
    entry, case = max(entries, key=lambda pair: float(pair[0]["max_relative"]))
    if not float(entry["max_relative"]):
        return f"exact in {len(cases)} cases"
    place = ", ".join(str(index) for index in entry["place"])
    error = f"{float(entry['max_relative']):.1e} "
    return Text.assemble(error, (f"{case.workload_text} {entry['output']}[{place}]", "dim"))
