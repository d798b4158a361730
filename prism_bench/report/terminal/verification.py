"""What studies found of the catalogue's cases, in the terminal: traffic, compilation, verification, code changes."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from prism_bench.record.run_record import NOT_TIMED, CaseResult, RunRecord
from prism_bench.report.plain import (
    Alike,
    EntryDifferenceJson,
    FirstDifferenceJson,
    alike,
    changes_of,
    code_difference_json,
)
from prism_bench.report.terminal.tables import FittedColumn, few_lines, fitted, names_text
from prism_bench.units import bytes_text, count_text
from prism_bench.workflows.traffic import CaseTraffic

if TYPE_CHECKING:
    from prism_bench.workflows.compile_table import CodeChange, CodeComparison, CompileRow, Complaint, SourceCuts

# Traffic and compilation of each case, as a table.


def traffic_view(rows: Sequence[CaseTraffic]) -> RenderableType:
    """Return the traffic of each case, multiples of its declared bytes, and complaints in red."""
    table = Table(title="traffic of one call, counted on the emulator", title_justify="left")
    table.add_column("case", overflow="fold")
    for name in ("declared", "touched", "requested", "scratch", "sectors/request", "wavefronts/request", "launches"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(Text(row.case), *_traffic_cells(row), style="red" if row.complaint else None)
    complaints = [Text(f"{row.case}: {row.complaint}", style="red") for row in rows if row.complaint]
    left_out = [Text(f"{row.case}: left out: {row.left_out}", style="dim") for row in rows if row.left_out]
    return Group(table, *left_out, *complaints)


def _traffic_cells(row: CaseTraffic) -> tuple[str, ...]:
    def multiple(count: int) -> str:
        return f"{count / row.declared:.3g}x" if row.declared and row.launches else "-"

    if row.left_out:
        return bytes_text(row.declared), *("-",) * 6
    return (
        bytes_text(row.declared),
        multiple(row.touched),
        multiple(row.requested),
        bytes_text(row.scratch),
        f"{row.sectors_per_request:.1f}",
        f"{row.wavefronts_per_request:.2f}",
        str(row.launches),
    )


def compile_json(
    rows: "Sequence[CompileRow]", complaints: "Sequence[Complaint]", left_out: "Sequence[Complaint]"
) -> dict[str, list[dict[str, object]]]:
    """Return what `prism-bench compile --json` prints."""
    parts = {"entries": rows, "complaints": complaints, "left_out": left_out}
    return {name: [asdict(row) for row in part] for name, part in parts.items()}


def compile_table(rows: "Sequence[CompileRow]", architectures: Sequence[str]) -> Table:
    """Return registers and spilled bytes of every entry by architecture, and the most shared memory."""
    title = f"registers (spilled bytes) of {count_text(len({row.kernel for row in rows}), 'kernel')}"
    table = Table(title=title, title_justify="left")
    table.add_column("kernel")
    table.add_column("entry", overflow="fold")
    for architecture in architectures:
        table.add_column(f"sm_{architecture}", justify="right")
    table.add_column("shared", justify="right")
    by_entry: dict[tuple[str, str], dict[str, CompileRow]] = {}
    for row in rows:
        by_entry.setdefault((row.kernel, row.entry), {})[row.architecture] = row
    for (kernel, entry), by_architecture in sorted(by_entry.items()):
        shared = max(row.shared_bytes for row in by_architecture.values())
        table.add_row(
            kernel,
            Text(entry),
            *(_registers(by_architecture.get(architecture)) for architecture in architectures),
            f"{shared} B",
        )
    return table


def _registers(row: "CompileRow | None") -> str | Text:
    if row is None:
        return "-"
    return Text(f"{row.registers} ({row.spill_bytes})", "red") if row.spill_bytes else str(row.registers)


# Verified cases of several backends: the largest relative error of each kernel, and every case that failed.


def verification_json(records: Mapping[str, RunRecord]) -> list[dict[str, object]]:
    """Return what `prism-bench verify --json` prints."""
    return [
        {
            "backend": backend,
            "name": case.name,
            "label": case.label,
            "status": case.status,
            "reason": case.reason,
            "verification": list(case.verification),
        }
        for backend, record in records.items()
        for case in record.cases
    ]


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
    return Group(*([table] if table.rows else []), *rest)


def _failures(backend: str, record: RunRecord, verbose: bool) -> list[Text]:
    """Return the counts by status, lines for the cases that failed, and one for each reason of skipped ones."""
    counts = Counter(case.status for case in record.cases)
    texts = [f"{count} {status}" for status, count in counts.items()] or ["stopped before the first case ended"]
    lines = [Text(f"{backend}: " + ", ".join(texts))]
    failed = [
        (case.status, case.name, case.reason or "the record gives no reason")
        for case in record.cases
        if case.status not in ("ok", "skipped")
    ]
    failed.sort(
        key=lambda complaint: complaint[0] == "wrong"
    )  # a bad access is the cause of the values it leaves wrong
    each = [Alike(status, text, [case]) for status, case, text in failed]
    for group in each if verbose else alike(failed, NOT_TIMED):
        lines += _complaint(group, verbose)
    return lines + [
        Text.assemble((title, "yellow"), f" {reason}")
        for title, status in (("skipped", "skipped"), ("note", "ok"))
        for reason in reasons_of(record.cases, status)
    ]


def _complaint(group: Alike, verbose: bool) -> Iterator[Text]:
    first, *rest = few_lines(group.text, verbose=verbose)
    yield Text.assemble((group.kind, "red"), f" {first}")
    yield from (Text(f"    {line}") for line in rest)
    more = [f"{len(group.cases) - 1} more like it"] if len(group.cases) > 1 else []
    more += [f"{names_text(group.untimed)} not timed because of it"] if group.untimed else []
    if more:
        yield Text(f"    {'; '.join(more)}: --verbose shows all", style="dim")


def reasons_of(cases: Iterable[CaseResult], status: str) -> Iterator[str]:
    """Yield the reason of skipped cases, once for all that share it: `2 cases of softmax:triton: ...`.

    A case that is ok has one where the backend did not see all that it looks for.
    """
    groups: dict[str, list[CaseResult]] = {}
    for case in cases:
        if case.status == status and (case.reason or status == "skipped"):
            reason = (case.reason or "the record gives no reason").removeprefix(f"{case.name}: ")
            groups.setdefault(reason, []).append(case)
    for reason, skipped in groups.items():
        yield f"{_named(skipped)}: {reason}"


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


# Checks of bits: a row for each case and peer, a column for each check, and what differs with its likely cause.

_CHECKS = ("repeated", "order", "configurations", "batch", "contention", "boards")
_AFTER_PROMISES = ("configurations", "batch", "contention")  # checks of cases that keep the promises before
_NOTHING = "-"


def bitwise_view(records: Mapping[str, RunRecord]) -> RenderableType:
    """Return a table of each backend with the launches whose bits were the same, then what differs unpromised.

    Broken promises are among the failures of `verification_view`. Checks that compared nothing have no column.
    """
    from prism_bench.run.bitwise import difference_text

    parts: list[RenderableType] = []
    for backend, record in records.items():
        rows: list[tuple[str | Text, ...]] = []
        lines: list[Text] = []
        for case in record.cases:
            by_subject: dict[str, list[Mapping[str, Any]]] = {}
            for entry in case.verification:
                if entry.get("check"):
                    by_subject.setdefault(str(entry.get("subject", "")), []).append(entry)
            for subject, entries in by_subject.items():
                name = f"{case.name} {subject}".strip()
                rows.append((name, *(_bits_cell(entries, check) for check in _CHECKS)))
                differing = [entry for entry in entries if entry["same"] is False and entry["passed"]]
                lines += [Text(f"{name}: {difference_text(entry)}\n    {entry['cause']}") for entry in differing]
        places = [place for place in range(1, len(_CHECKS) + 1) if any(row[place] != _NOTHING for row in rows)]
        columns = [FittedColumn("case"), *(FittedColumn(_CHECKS[place - 1], numbers=True) for place in places)]
        title = f"bits on {backend}: launches that were compared"
        table = fitted(title, columns, [((row[0], *(row[place] for place in places)), None) for row in rows])
        empty = ", ".join(check for place, check in enumerate(_CHECKS, 1) if place not in places)
        parts += [table, *([Text(f"  nothing to compare: {empty}", "dim")] if empty else []), *lines] if rows else []
    return Group(*parts)


def _bits_cell(entries: Sequence[Mapping[str, Any]], check: str) -> str | Text:
    """Return `differs` for the first check that differs, else the launches; a dash where nothing was compared.

    A check that was left out because a promise broke before is `not done`.
    """
    chosen = [entry for entry in entries if entry["check"] == check]
    if not chosen and check in _AFTER_PROMISES and not all(entry["passed"] for entry in entries):
        return "not done"
    bad = [entry for entry in chosen if entry["same"] is False]
    if bad:
        return Text("differs", "red" if not all(entry["passed"] for entry in bad) else "yellow")
    launches = sum(int(entry["launches"]) for entry in chosen)
    return f"{launches} same" if launches else _NOTHING


# What is cut out of sources, for the terminal and as JSON.


def cut_lines(sources: "Sequence[SourceCuts]") -> Iterator[tuple[str, str]]:
    """Yield lines with their style: a source with its kernels, then what is cut out of it."""
    for source in sources:
        yield f"{_short(source.source)} ({', '.join(source.kernels)})", "bold"
        yield f"  {source.meaning}", "red" if source.how == "refused" else ""
        for cut in source.cuts:
            lines = str(cut.first) if cut.first == cut.last else f"{cut.first}-{cut.last}"
            place = "" if cut.path == source.source.resolve() else f"{_short(cut.path)}:"
            yield f"    {place}{lines}  {cut.what}", "dim"


def cuts_json(sources: "Sequence[SourceCuts]") -> list[dict[str, Any]]:
    """Return the same as plain values."""
    return [
        {
            "source": str(source.source),
            "kernels": list(source.kernels),
            "how": source.how,
            "message": source.meaning,
            "cuts": [
                {"file": str(cut.path), "first": cut.first, "last": cut.last, "what": cut.what} for cut in source.cuts
            ],
        }
        for source in sources
    ]


def _short(path: Path) -> str:
    """Return the path relative to the current folder, where that is shorter."""
    return min(str(path), os.path.relpath(path), key=len)


# A difference of machine code in the terminal: what changed of each entry, and where the code first differs.

_SAME_NUMBERS = "the same counts, registers, spills and shared memory; other operands or another order"


def code_difference_view(entries: Sequence[EntryDifferenceJson], note: str | None = None) -> RenderableType:
    """Return two lines an entry and a few lines of its code; `note` is why instructions are not listed."""
    parts: list[RenderableType] = [line for entry in entries for line in _entry(entry)]
    parts += [Text(note, style="yellow")] if note and entries else []
    return Padding(Group(*parts), (0, 0, 0, 2), expand=False)


def _entry(entry: EntryDifferenceJson) -> list[RenderableType]:
    head = Text(f"{entry['entry']}: ", style="bold")
    head.append(entry["state"] if entry["state"] != "changed" else "", style="yellow")
    head.append("; " if entry["state"] != "changed" else "", style="not bold")
    head.append(", ".join(changes_of(entry)) or _SAME_NUMBERS, style="not bold")
    return [head, *(_first(entry["first_difference"]) if entry["first_difference"] else ())]


def _first(difference: FirstDifferenceJson) -> list[RenderableType]:
    lines = [Text(f"first difference, in block {difference['block']}:", style="dim")]
    lines += [Text(f"{sign} {line}", style=style) for sign, line, style in _marked(difference)]
    return [Padding(Group(*lines), (0, 0, 0, 2), expand=False)]


def _marked(difference: FirstDifferenceJson) -> list[tuple[str, str, str]]:
    """Return the lines of both sides with their sign and style; those that begin both are shown once."""
    before, after = difference["before"], difference["after"]
    pairs = enumerate(zip(before, after, strict=False))
    shared = next((number for number, (was, now) in pairs if was != now), min(len(before), len(after)))
    return [
        *((" ", line, "dim") for line in before[:shared]),
        *(("-", line, "red") for line in before[shared:]),
        *(("+", line, "green") for line in after[shared:]),
    ]


# Cases that changed since another build, in the terminal and as plain values.

_REASONS = {"code": "machine code", "gone": "no longer there"}  # others are their own words


class _CodeChangeJson(TypedDict):
    """Cases of one kernel on one architecture that changed alike, with the differences of their entries."""

    kernel: str
    architecture: str
    reasons: list[str]
    cases: list[str]
    spills_grew: bool
    code_difference: list[EntryDifferenceJson]
    code_note: str | None


def changes_json(against: str, comparison: "CodeComparison", left_out: "Sequence[Complaint]" = ()) -> dict[str, object]:
    """Return what `prism-bench compile --against --json` prints."""
    return {
        "against": against,
        "verdict": _verdict(against, comparison, left_out),
        "changes": [
            _CodeChangeJson(
                kernel=change.kernel,
                architecture=change.architecture,
                reasons=list(change.reasons),
                cases=list(change.cases),
                spills_grew=change.spills_grew,
                code_difference=code_difference_json(change.entries),
                code_note=change.note,
            )
            for change in comparison.changes
        ],
        "complaints": [asdict(complaint) for complaint in comparison.complaints],
        "uncompared": [asdict(complaint) for complaint in comparison.uncompared],
        "left_out": [asdict(complaint) for complaint in left_out],
    }


def changes_view(against: str, comparison: "CodeComparison", left_out: "Sequence[Complaint]" = ()) -> RenderableType:
    """Return each kernel with what changed of it, what could not be compared and why, and the verdict."""
    from prism_bench.workflows.compile_table import together

    parts: list[RenderableType] = []
    alike_on: dict[tuple[object, ...], list[CodeChange]] = {}
    for change in comparison.changes:  # a launch changes on every architecture: one line for all
        what = change.kernel, change.reasons, change.cases, change.note, repr(change.entries)
        alike_on.setdefault(what, []).append(change)
    for changes in alike_on.values():
        change, places = changes[0], ", ".join(f"sm_{change.architecture}" for change in changes)
        style = "bold red" if change.spills_grew else "bold"
        what = ", ".join(_REASONS.get(reason, reason) for reason in change.reasons)
        cases = f" ({names_text(change.cases)})" if change.cases else ""
        parts.append(Text.assemble((f"{change.kernel} on {places}", style), f": {what}{cases}"))
        if change.entries:
            parts.append(code_difference_view(code_difference_json(change.entries)))
        parts += [Text(f"  {change.note}", style="dim")] if change.note else []
    parts += [Text(line, style="red") for line in complaint_lines(comparison.complaints)]
    parts += [Text(line, style="yellow") for line in complaint_lines(comparison.uncompared)]
    parts += [Text(text, style="dim") for text in together(left_out)]
    return Group(*parts, Text(_verdict(against, comparison, left_out)))


def complaint_lines(complaints: "Sequence[Complaint]") -> list[str]:
    """Return each cause once, with the kernels that it is of."""
    groups = alike(("", complaint.kernel, complaint.message) for complaint in complaints)
    return [f"{names_text(list(dict.fromkeys(group.cases)))}: {group.text}" for group in groups]


def _verdict(against: str, comparison: "CodeComparison", left_out: "Sequence[Complaint]") -> str:
    """Return the sentence of what changed; that nothing did only where everything was compiled and compared."""
    code = {change.kernel for change in comparison.changes if "code" in change.reasons}
    others = [change for change in comparison.changes if "code" not in change.reasons]
    cases = {case for change in others for case in change.cases if not {"new", "gone"} & {*change.reasons}}
    alone = {case for change in others for case in change.cases} - cases
    unknown = {complaint.kernel for complaint in (*comparison.complaints, *comparison.uncompared, *left_out)}
    parts = [f"machine code of {count_text(len(code), 'kernel')} changed since {against}"] if code else []
    if cases:
        parts.append(f"launch or inputs of {count_text(len(cases), 'case')} changed since {against}, not the code")
    if alone:
        parts.append(f"{count_text(len(alone), 'case')} on one side only")
    if unknown:
        parts.append(f"{count_text(len(unknown), 'kernel')} not compared with {against}: {names_text(sorted(unknown))}")
    if not parts and not comparison.compared:
        parts.append(f"nothing to compare with {against}")
    elif not parts and not comparison.limit:
        parts.append(f"no kernels changed since {against}: {comparison.facts} are the same")
    elif not parts:
        parts.append(f"{comparison.facts} of all that {against} has are the same")
    return "; ".join([*parts, *([comparison.limit] if comparison.limit else [])])
