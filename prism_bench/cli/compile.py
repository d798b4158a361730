"""`prism-bench compile`: whether every kernel compiles, for which architectures, and with which resources."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from prism_bench import options
from prism_bench.catalogue import Catalogue

NAME = "compile"
ShowCut = Annotated[
    bool, typer.Option("--show-cut", help="Show the host code that is cut out of sources, and compile nothing.")
]
TABLE = Path("reports/compile/resources.csv")


def command(
    cases: options.CasesArgument = None,
    filter: options.FilterOption = None,
    arch: Annotated[
        list[str] | None, typer.Option(help="Compile for this compute capability, such as 90; may be repeated.")
    ] = None,
    table: Annotated[Path, typer.Option(help="Compare with this stored table.")] = TABLE,
    update: Annotated[bool, typer.Option("--update", help="Store the new table.")] = False,
    show_cut: ShowCut = False,
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Compile every kernel to machine code, without a GPU.

    For several architectures; no driver is needed either.
    """
    from prism_bench.report.terminal.cases import compile_json, compile_table
    from prism_bench.studies import compile_table as check

    found, words = options.open_catalogue(catalogue), options.patterns(cases, filter)
    if show_cut:
        _show_cut(found, words, json)
    stored = check.read_table(table)
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
        for style, messages in (("dim", left_out), ("red", complaints)):
            for one in messages:
                options.line(f"{one.kernel}: {one.message}", style)
    raise SystemExit(1 if complaints or found.problems else 0)


def _show_cut(catalogue: Catalogue, words: Sequence[str], json: bool) -> NoReturn:
    """Print what is cut out of the sources of the chosen cases; end with 1 where one cannot be cut."""
    from prism_bench.report.terminal.source_cuts import cut_lines, cuts_json
    from prism_bench.studies.source_cuts import source_cuts

    found = source_cuts(catalogue, words)
    if json:
        options.print_json(cuts_json(found))
    else:
        for text, style in cut_lines(found):
            options.line(text, style)
    raise SystemExit(1 if catalogue.problems or any(one.how == "refused" for one in found) else 0)
