"""`prism-bench compile`: whether every kernel compiles, for which architectures, and with which resources."""

from pathlib import Path
from typing import Annotated

import typer

from prism_bench import options

NAME = "compile"
TABLE = Path("reports/compile/resources.csv")


def command(
    cases: options.CasesArgument = None,
    filter: options.FilterOption = None,
    arch: Annotated[
        list[str] | None, typer.Option(help="Compile for this compute capability, such as 90; may be repeated.")
    ] = None,
    table: Annotated[Path, typer.Option(help="Compare with this stored table.")] = TABLE,
    update: Annotated[bool, typer.Option("--update", help="Store the new table.")] = False,
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Compile every kernel to machine code, without a GPU.

    For several architectures; no driver is needed either.
    """
    from prism_bench.report.terminal.cases import compile_json, compile_table
    from prism_bench.studies import compile_table as check

    found, stored, words = options.open_catalogue(catalogue), check.read_table(table), options.patterns(cases, filter)
    architectures = tuple(arch) if arch else check.ARCHITECTURES
    check.require_known(architectures)
    chosen = check.whole_kernels(found, words) if update and words else words
    with options.err().status("compiling") as status:
        rows, complaints = check.compile_check(found, chosen, architectures, status.update)
    complaints += [] if update else check.worsened(rows, stored)
    if update:
        check.write_table(table, check.merged_table(stored, rows, found.kernels))
    left_out = check.left_out(found, chosen, architectures)
    if json:
        options.print_json(compile_json(rows, complaints, left_out))
    else:
        options.out().print(compile_table(rows, architectures))
        for one in left_out:
            options.line(f"{one.kernel}: {one.message}", "dim")
        for one in complaints:
            options.line(f"{one.kernel}: {one.message}", "red")
    raise SystemExit(1 if complaints or found.problems else 0)
