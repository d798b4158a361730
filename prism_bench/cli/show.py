"""`prism-bench show`: a record as a table."""

from pathlib import Path
from typing import Annotated

import typer

from prism_bench import options

NAME = "show"


def command(
    record: Annotated[Path | None, typer.Argument(help="a run record; the newest one without it")] = None,
    runs: options.RunsOption = options.DEFAULT_RUNS,
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Show a run record as a table.

    Times, rates, shares of the measured ceilings, peers, verification.
    """
    from prism_bench import store
    from prism_bench.report.json_view import view
    from prism_bench.report.terminal.record import summary_view

    found, read = options.open_catalogue(catalogue), store.read(record or store.newest(runs))
    if json:
        options.print_json(view(read, found, must_be_held=False))
    else:
        options.out().print(summary_view(read, found, must_be_held=False))
