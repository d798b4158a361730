"""Kernels and cases of the catalogue in the terminal, as `prism-bench list` prints them.

It imports neither records nor analysis: `list` is the first command of a newcomer, and starts fast.
"""

from collections.abc import Collection, Sequence

from rich.console import Group, JustifyMethod
from rich.table import Table
from rich.text import Text

from prism_bench.report.terminal.tables import FittedTable, middle_cut
from prism_bench.spec.case import Case
from prism_bench.units import bytes_text, count_text, rate_text

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
    for (group, kernel), cases_of_kernel in sorted(by_kernel.items()):
        if group != family:
            table.add_section()
            table.add_row(Text(group, "bold"))
            family = group
        variants = dict.fromkeys(case.variant for case in cases_of_kernel if case.variant)
        labels = sorted({case.label for case in cases_of_kernel})
        peers = dict.fromkeys(peer for case in cases_of_kernel for peer in case.spec.peers)
        most = bytes_text(max(case.sizes.bytes_moved for case in cases_of_kernel))
        table.add_row(f"  {kernel}", " ".join(variants), " ".join(labels), most, " ".join(peers))
    return Group(table, Text(_totals(list(by_kernel.values()))))


def _totals(kernels: Sequence[Sequence[Case]]) -> str:
    """Return how many kernels, variants, languages, cases and edges there are; `kernels` are the cases of each."""
    variants = sum(len({case.variant for case in cases if case.variant}) for cases in kernels)
    languages = {case.spec.written_in for cases in kernels for case in cases}
    edges = sum(len(cases[0].spec.edges) + len(cases[0].spec.golden) for cases in kernels)
    counts = [
        (len(kernels), "kernel"),
        (variants, "variant"),
        (len(languages), "language"),
        (sum(map(len, kernels)), "case"),
        (edges, "edge"),
    ]
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
