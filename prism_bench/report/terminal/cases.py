"""Cases of the catalogue as a table: sizes, and what each traffic and compilation study found of them."""

from collections.abc import Collection, Sequence
from dataclasses import asdict

from rich.console import Group, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from prism_bench.report.terminal.fitted_table import FittedTable
from prism_bench.report.terminal.fitting import middle_cut
from prism_bench.spec.case import Case
from prism_bench.units import bytes_text, count_text, rate_text
from prism_bench.workflows.compile_table import CompileRow, Complaint
from prism_bench.workflows.traffic import CaseTraffic

_SIDES: dict[str, JustifyMethod] = {"bytes": "right", "operations": "right", "peers": "left"}
_DISPENSABLE = ("operations", "peers", "bytes")  # the first to go first


def cases_json(cases: Sequence[Case]) -> list[dict[str, object]]:
    """Return what `prism-bench list --json` prints."""
    return [
        {
            "name": case.name,
            "kernel": case.spec.name,
            "variant": case.variant,
            "family": case.spec.family,
            "label": case.label,
            "workload": dict(case.workload),
            "bytes": case.sizes.bytes_moved,
            "flops": case.sizes.flops,
            "aliases": list(case.spec.aliases),
            "peers": list(case.spec.peers),
            "looked_at": dict(case.spec.looked_at),
            "before": case.spec.before,
            "edges": len(case.spec.edges) + len(case.spec.golden),
            "source": str(case.spec.source),
        }
        for case in cases
    ]


def kernels_table(cases: Sequence[Case]) -> Group:
    """Return a line for each kernel, by family: its variants, the labels of its cases, the most bytes, its peers.

    The last line counts kernels, variants, languages, cases and edges.
    """
    by_kernel: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        by_kernel.setdefault((case.spec.family, case.spec.name), []).append(case)
    table = Table(caption="a kernel's name, or --all, lists cases")
    for name in ("kernel", "variants", "cases", "bytes", "peers"):
        folded = name in ("variants", "peers")
        table.add_column(name, justify="right" if name == "bytes" else "left", no_wrap=not folded)
    family = None
    for (group, kernel), own in sorted(by_kernel.items()):
        if group != family:
            table.add_section()
            table.add_row(Text(group, "bold"))
            family = group
        variants = dict.fromkeys(case.variant for case in own if case.variant)
        labels = sorted({case.label for case in own})
        peers = dict.fromkeys(peer for case in own for peer in case.spec.peers)
        most = bytes_text(max(case.sizes.bytes_moved for case in own))
        table.add_row(f"  {kernel}", " ".join(variants), " ".join(labels), most, " ".join(peers))
    return Group(table, Text(_totals(list(by_kernel.values()))))


def _totals(kernels: Sequence[Sequence[Case]]) -> str:
    """Return how many kernels, variants, languages, cases and edges there are; `kernels` are the cases of each."""
    variants = sum(len({case.variant for case in cases if case.variant}) for cases in kernels)
    languages = {case.spec.written_in for cases in kernels for case in cases}
    edges = sum(len(cases[0].spec.edges) + len(cases[0].spec.golden) for cases in kernels)
    counts = [(len(kernels), "kernel"), (variants, "variant"), (len(languages), "language"),
              (sum(map(len, kernels)), "case"), (edges, "edge")]  # fmt: skip
    return ", ".join(count_text(count, noun) for count, noun in counts)


def cases_table(cases: Sequence[Case]) -> FittedTable:
    """Return the cases, sorted by family, kernel and label; a long name loses its middle, then columns go."""
    ordered = sorted(cases, key=lambda case: (case.spec.family, case.kernel, case.label))
    title = f"{count_text(len({case.spec.name for case in cases}), 'kernel')}, {count_text(len(cases), 'case')}"

    def make(dropped: Collection[str], longest: int) -> Table:
        table = Table(title=title, title_justify="left")
        for name in ("kernel", "label", "workload"):
            table.add_column(name, no_wrap=True)
        for name, side in _SIDES.items():
            if name not in dropped:
                table.add_column(name, justify=side, no_wrap=True)
        for case in ordered:
            before = [f"(before {case.spec.before})"] if case.spec.before else []
            cells = {
                "bytes": bytes_text(case.sizes.bytes_moved),
                "operations": rate_text(case.sizes.flops, ""),
                "peers": " ".join([*case.spec.peers, *before]),
            }
            kept = [cell for name, cell in cells.items() if name not in dropped]
            table.add_row(Text(middle_cut(case.kernel, longest)), case.label, str(case.workload), *kept)
        return table

    return FittedTable(
        make, {name: name for name in _DISPENSABLE}, max((len(case.kernel) for case in cases), default=0)
    )


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
    return (bytes_text(row.declared), multiple(row.touched), multiple(row.requested), bytes_text(row.scratch),
            f"{row.sectors_per_request:.1f}", f"{row.wavefronts_per_request:.2f}", str(row.launches))  # fmt: skip


def compile_json(
    rows: Sequence[CompileRow], complaints: Sequence[Complaint], left_out: Sequence[Complaint]
) -> dict[str, list[dict[str, object]]]:
    """Return what `prism-bench compile --json` prints."""
    parts = {"entries": rows, "complaints": complaints, "left_out": left_out}
    return {name: [asdict(one) for one in part] for name, part in parts.items()}


def compile_table(rows: Sequence[CompileRow], architectures: Sequence[str]) -> Table:
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
    for (kernel, entry), found in sorted(by_entry.items()):
        shared = max(row.shared_bytes for row in found.values())
        table.add_row(kernel, Text(entry), *(_registers(found.get(one)) for one in architectures), f"{shared} B")
    return table


def _registers(row: CompileRow | None) -> str | Text:
    if row is None:
        return "-"
    return Text(f"{row.registers} ({row.spill_bytes})", "red") if row.spill_bytes else str(row.registers)
