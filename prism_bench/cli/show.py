"""`prism-bench show`: a record as a table."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prism_bench.cli import options

if TYPE_CHECKING:
    from prism_bench.record.run_record import RunRecord

NAME = "show"


def command(
    record: options.RecordArgument = None,
    filter: options.FilterOption = None,
    all: Annotated[bool, typer.Option("--all", "-a", help="Show all cases and findings, not the worst ten.")] = False,
    why: Annotated[
        str | None, typer.Option(metavar="CASE", help="Show why a case, or a kernel's largest one, takes its time.")
    ] = None,
    runs: options.RunsOption = options.DEFAULT_RUNS,
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Show a run record: its summary and its ten worst cases.

    Times, rates, shares of the measured ceilings, verification, and the kernels against their peers by class of peer.
    With --filter every peer of the chosen cases is shown as well. --why shows the bottleneck of one case, the counters
    that show it, the distance to its limit, and what a fix would bring.
    """
    from prism_bench.analysis.summary import with_cases
    from prism_bench.io.documents import no_collection
    from prism_bench.record import store
    from prism_bench.report.plain import view
    from prism_bench.report.terminal.record import summary_view

    if why:
        _explain(store.read(record or store.newest(runs)), why, runs, json=json)
        return
    with no_collection():
        kernels = options.open_catalogue(catalogue)
        read = with_cases(store.read(record or store.newest(runs)), filter or ())
        if json:
            options.print_json(view(read, kernels, must_be_held=False))
        else:
            shown = summary_view(read, kernels, must_be_held=False, every_peer=bool(filter), everything=all)
            options.out().print(shown)


def _explain(record: "RunRecord", name: str, runs: Path, *, json: bool) -> None:
    """Print why the case takes its time."""
    from prism_bench.report.plain import why_json
    from prism_bench.report.site.context import Places
    from prism_bench.report.terminal.profile import why_view
    from prism_bench.workflows.profiling import why_of

    explanation = why_of(record, name, runs, Places(runs).profiles)
    options.show(lambda: why_json(explanation), lambda: why_view(explanation), json=json)
