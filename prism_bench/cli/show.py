"""`prism-bench show`: a record as a table."""

from pathlib import Path
from typing import Annotated

import typer

from prism_bench.cli import options

NAME = "show"


def command(
    record: Annotated[Path | None, typer.Argument(help="a run record; the newest one without it")] = None,
    runs: options.RunsOption = options.DEFAULT_RUNS,
    json: options.JsonOption = False,
) -> None:
    """Show a run record: times, rates, shares of the measured ceilings, peers, verification."""
    from prism_bench import store
    from prism_bench.report.json_view import json_view
    from prism_bench.report.terminal import print_record

    read = store.read(record or store.newest(runs))
    if json:
        options.print_json(json_view(read))
    else:
        print_record(read, options.out())
