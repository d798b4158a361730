"""`prism-bench report`: the records of a machine as a static site."""

from pathlib import Path
from typing import Annotated

import typer

from prism_bench.cli import options
from prism_bench.errors import UsageError
from prism_bench.units import count_text

NAME = "report"


def command(
    record: Annotated[
        Path | None, typer.Argument(help="Show this run record and its machine; default: the newest one.")
    ] = None,
    output: options.SiteOption = Path("reports/site"),
    runs: options.RunsOption = options.DEFAULT_RUNS,
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Write the static site of one machine's records.

    Only files that changed are written; the command prints the path of the first page.
    """
    from prism_bench.report.site import build_site

    if output.suffix == ".html":
        raise UsageError(f"--output {output}: the report is a site of many pages; name a folder, such as reports/site")
    kernels = options.open_catalogue(catalogue)
    with options.err().status("reading records") as status, options.records_of(record):
        built = build_site(runs, output, kernels, record, status.update)
    written = built.written
    if json:
        options.print_json(
            {
                "record": str(built.record),
                "page": str(built.page),
                "files": written.files,
                "changed": list(written.changed),
                "removed": list(written.removed),
            }
        )
    else:
        options.out().print(f"{count_text(written.files, 'file')}, {len(written.changed)} of them changed", style="dim")
        options.line(f"page: {built.page}")
