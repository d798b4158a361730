"""`prism-bench traffic`: does a kernel ask for the bytes that its spec declares?"""

from dataclasses import asdict

from rich.table import Table
from rich.text import Text

from prism_bench import options
from prism_bench.options.limits import CASE_SECONDS, TimeoutOption, limited
from prism_bench.units import bytes_text

NAME = "traffic"


def command(
    filter: options.FilterOption = None,
    label: options.LabelOption = None,
    timeout: TimeoutOption = CASE_SECONDS,
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Count what each kernel's source asks of memory, emulated.

    Bytes, sectors and shared-memory wavefronts. Label S0 by default.
    """
    from prism_bench.studies.traffic import traffic

    found = options.open_catalogue(catalogue)
    cases = found.cases(filter or (), options.chosen_labels(label, ("S0",)))
    rows = []
    with options.err().status("counting") as status:
        for case in cases:
            status.update(case.name)
            with limited(case.name, timeout):
                rows.append(traffic(case))
    if json:
        options.print_json([asdict(row) for row in rows])
    else:
        options.out().print(_table(rows))
        for row in rows:
            if row.complaint:
                options.out().print(f"{row.case}: {row.complaint}", style="red", highlight=False, soft_wrap=True)
    raise SystemExit(1 if found.problems or any(row.complaint for row in rows) else 0)


def _table(rows):
    table = Table(title="traffic of one call, counted on the emulator", title_justify="left")
    table.add_column("case", overflow="fold")
    for name in ("declared", "touched", "requested", "scratch", "sectors/request", "wavefronts/request", "launches"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(Text(row.case), *_cells(row), style="red" if row.complaint else None)
    return table


def _cells(row):
    times = lambda count: f"{count / row.declared:.3g}x" if row.declared and row.launches else "-"  # noqa: E731
    return (bytes_text(row.declared), times(row.touched), times(row.requested), bytes_text(row.scratch),
            f"{row.sectors_per_request:.1f}", f"{row.wavefronts_per_request:.2f}", str(row.launches))  # fmt: skip
