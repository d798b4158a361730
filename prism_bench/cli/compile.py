"""`prism-bench compile`: does every kernel compile, for which architectures, and what does it take?"""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from prism_bench import options

NAME = "compile"
TABLE = Path("reports/compile/resources.csv")


def command(
    filter: options.FilterOption = None,
    arch: Annotated[list[str] | None, typer.Option(help="compute capability such as 90; may be repeated")] = None,
    table: Annotated[Path, typer.Option(help="the stored table to compare with")] = TABLE,
    update: Annotated[bool, typer.Option(help="store what was found as the new table")] = False,
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Compile every kernel to machine code; no GPU needed.

    For several architectures; no driver is needed either.
    """
    from prism_bench.studies import compile_table as check

    found, stored = options.open_catalogue(catalogue), check.read_table(table)
    architectures = tuple(arch) if arch else check.ARCHITECTURES
    check.require_known(architectures)
    chosen = check.whole_kernels(found, filter) if update and filter else filter or ()
    with options.err().status("compiling") as status:
        rows, complaints = check.compile_check(found, chosen, architectures, status.update)
    complaints += [] if update else check.worsened(rows, stored)
    if update:
        check.write_table(table, check.merged_table(stored, rows, found.kernels))
    _tell(rows, complaints, check.left_out(found, chosen, architectures), architectures, json)
    raise SystemExit(1 if complaints or found.problems else 0)


def _tell(rows, complaints, left_out, architectures, json):
    if json:
        said = {"entries": rows, "complaints": complaints, "left_out": left_out}
        options.print_json({name: [asdict(one) for one in all_of] for name, all_of in said.items()})
        return
    console = options.out()
    console.print(_table(rows, architectures))
    for one in left_out:
        console.print(f"{one.kernel}: {one.message}", style="dim", highlight=False, soft_wrap=True)
    for complaint in complaints:
        console.print(f"{complaint.kernel}: {complaint.message}", style="red", highlight=False, soft_wrap=True)


def _table(rows, architectures):
    table = Table(
        title=f"registers (spilled bytes) of {len({row.kernel for row in rows})} kernels", title_justify="left"
    )
    table.add_column("kernel")
    table.add_column("entry", overflow="fold")
    for architecture in architectures:
        table.add_column(f"sm_{architecture}", justify="right")
    table.add_column("shared", justify="right")
    by_entry = {}
    for row in rows:
        by_entry.setdefault((row.kernel, row.entry), {})[row.architecture] = row
    for (kernel, entry), found in sorted(by_entry.items()):
        shared = max(row.shared_bytes for row in found.values())
        table.add_row(kernel, Text(entry), *(_cell(found.get(one)) for one in architectures), f"{shared} B")
    return table


def _cell(row):
    if row is None:
        return "-"
    if row.spill_bytes:
        return Text(f"{row.registers} ({row.spill_bytes})", "red")
    return Text(str(row.registers))
