"""`prism-bench report`: a record as one page that opens anywhere."""

from pathlib import Path
from typing import Annotated

import typer

from prism_bench.cli import options
from prism_bench.errors import ResultsError

NAME = "report"


def command(
    record: Annotated[Path | None, typer.Argument(help="a run record; the newest one without it")] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="the page to write")] = Path("reports/site/index.html"),
    runs: options.RunsOption = options.DEFAULT_RUNS,
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Write a self-contained HTML page for a run record and say where it is."""
    from prism_bench import store
    from prism_bench.report.html import write_report

    source = record or store.newest(runs)
    read = store.read(source)
    found = options.open_catalogue(catalogue)
    try:
        page = write_report(read, output, found)
    except OSError as error:
        raise ResultsError(f"cannot write {output}: {error.strerror}") from error
    if json:
        options.print_json({"record": str(source), "page": str(page)})
    else:
        options.out().print(f"page: {page}", highlight=False, soft_wrap=True)
