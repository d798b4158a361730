"""`prism-bench list`: what is in the catalogue."""

from rich.table import Table

from prism_bench import options
from prism_bench.units import bytes_text, rate_text

NAME = "list"


def command(
    filter: options.FilterOption = None,
    label: options.LabelOption = None,
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """List kernels and cases: bytes to move, operations to do."""
    found = options.open_catalogue(catalogue)
    cases = found.cases(filter or (), options.chosen_labels(label))
    if json:
        options.print_json([_plain(case) for case in cases])
    else:
        options.out().print(_table(cases))
    if found.problems:
        raise SystemExit(1)


def _plain(case):
    spec = case.spec
    return {
        "name": case.name,
        "kernel": spec.name,
        "variant": case.variant,
        "family": spec.family,
        "label": case.label,
        "workload": dict(case.workload),
        "bytes": case.sizes.bytes_moved,
        "flops": case.sizes.flops,
        "aliases": list(spec.aliases),
        "peers": list(spec.peers),
        "edges": len(spec.edges) + len(spec.golden),
        "source": str(spec.source),
    }


def _table(cases):
    table = Table(title=f"{len({c.spec.name for c in cases})} kernels, {len(cases)} cases", title_justify="left")
    for name in ("family", "kernel", "label", "workload"):
        table.add_column(name, overflow="fold")
    for name in ("bytes", "operations", "peers"):
        table.add_column(name, justify="right" if name != "peers" else "left")
    for case in sorted(cases, key=lambda case: (case.spec.family, case.kernel, case.label)):
        table.add_row(case.spec.family, case.kernel, case.label, str(case.workload), bytes_text(case.sizes.bytes_moved),
                      rate_text(case.sizes.flops, ""), " ".join(case.spec.peers))  # fmt: skip
    return table
