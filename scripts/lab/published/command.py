"""`prism-bench published`: published figures, budgets and rules next to what a record measured."""

from pathlib import Path
from typing import Annotated

import typer

from prism_bench.cli import options


def command(
    record: options.RecordArgument = None,
    runs: options.RunsOption = options.DEFAULT_RUNS,
    tuning: Annotated[Path, typer.Option("--tuning", help="Set the folder of measured policies.")] = Path(
        "reports/tuning"
    ),
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Compare a run record with what the design documents claim.

    Figures and budgets of the profiling guide, its rules of thumb, and its choices of form, window and batch. Quoted
    figures bind nobody: a missed one is no finding of a run.
    """
    from lab.published.comparison import comparison_of, published_json
    from lab.published.view import published_view
    from prism_bench.analysis.reading import read
    from prism_bench.record import store

    found = options.open_catalogue(catalogue)
    compared = comparison_of(read(store.read(record or store.newest(runs)), found, must_be_held=False), tuning)
    options.show(lambda: published_json(compared), lambda: published_view(compared), json=json)
