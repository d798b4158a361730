"""Verified cases of several backends: the largest relative error of each kernel, and every case that failed."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.report.terminal.fitting import Alike, alike, few_lines, names_text
from prism_bench.run.record_builder import NOT_TIMED
from prism_bench.units import count_text


def verification_json(records: Mapping[str, RunRecord]) -> list[dict[str, object]]:
    """Return what `prism-bench verify --json` prints."""
    return [
        {"backend": backend, "name": case.name, "label": case.label, "status": case.status, "reason": case.reason,
         "verification": list(case.verification)}
        for backend, record in records.items() for case in record.cases
    ]  # fmt: skip


def verification_view(records: Mapping[str, RunRecord], *, verbose: bool = False) -> RenderableType:
    """Return a table with a column for each backend, then counts, and each complaint once with a few of its lines.

    With `verbose`, every case that did not pass has its whole text.
    """
    table = Table(title="largest relative error, and where", title_justify="left")
    table.add_column("kernel", overflow="fold")
    for backend in records:
        table.add_column(backend, overflow="fold")
    by_backend = [_by_kernel(record) for record in records.values()]
    for kernel in sorted({kernel for groups in by_backend for kernel in groups}):
        table.add_row(kernel, *(_cell(groups.get(kernel)) for groups in by_backend))
    rest = [line for backend, record in records.items() for line in _failures(backend, record, verbose)]
    return Group(table, *rest)


def _failures(backend: str, record: RunRecord, verbose: bool) -> list[Text]:
    """Return the counts by status, lines for the cases that failed, and one for each reason of skipped ones."""
    counts = Counter(case.status for case in record.cases)
    lines = [Text(f"{backend}: " + ", ".join(f"{count} {status}" for status, count in counts.items()))]
    failed = [(case.status, case.name, case.reason or "the record gives no reason") for case in record.cases
              if case.status not in ("ok", "skipped")]  # fmt: skip
    each = [Alike(status, text, [case]) for status, case, text in failed]
    for one in each if verbose else alike(failed, NOT_TIMED):
        lines += _complaint(one, verbose)
    return lines + [Text.assemble(("skipped", "yellow"), f" {words}") for words in skipped_reasons(record.cases)]


def _complaint(one: Alike, verbose: bool) -> Iterator[Text]:
    first, *rest = few_lines(one.text, verbose=verbose)
    yield Text.assemble((one.kind, "red"), f" {first}")
    yield from (Text(f"    {line}") for line in rest)
    more = [f"{len(one.cases) - 1} more like it"] if len(one.cases) > 1 else []
    more += [f"{names_text(one.untimed)} not timed because of it"] if one.untimed else []
    if more:
        yield Text(f"    {'; '.join(more)}: --verbose shows all", style="dim")


def skipped_reasons(cases: Iterable[CaseResult]) -> Iterator[str]:
    """Yield the reason of skipped cases, once for all that share it: `2 cases of softmax:triton: ...`."""
    groups: dict[str, list[CaseResult]] = {}
    for case in cases:
        if case.status == "skipped":
            reason = (case.reason or "the record gives no reason").removeprefix(f"{case.name}: ")
            groups.setdefault(reason, []).append(case)
    for reason, own in groups.items():
        yield f"{_named(own)}: {reason}"


def _named(cases: Sequence[CaseResult]) -> str:
    """Return the case, or how many there are and the kernels that they are of."""
    kernels = list(dict.fromkeys(case.name.partition("[")[0] for case in cases))
    return cases[0].name if len(cases) == 1 else f"{count_text(len(cases), 'case')} of {names_text(kernels)}"


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
        return Text(f"{len(wrong)} of {count_text(len(cases), 'case')} {wrong[0].status}", "red")
    usual = [case for case in cases if case.label != "edge" or case.name.endswith(f"[{case.workload_text}]")]
    entries = [(entry, case) for case in usual for entry in case.verification if entry.get("compared")]
    if not entries:
        return Text(f"{cases[0].status}, nothing to compare", "dim")
    entry, case = max(entries, key=lambda pair: float(pair[0]["max_relative"]))
    if not float(entry["max_relative"]):
        return f"exact in {count_text(len(cases), 'case')}"
    place = ", ".join(str(index) for index in entry["place"])
    error = f"{float(entry['max_relative']):.1e} "
    return Text.assemble(error, (f"{case.workload_text} {entry['output']}[{place}]", "dim"))
