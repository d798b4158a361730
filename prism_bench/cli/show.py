"""`prism-bench show`: a record as a table."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prism_bench.cli import measuring, options
from prism_bench.io import project

if TYPE_CHECKING:
    from prism_bench.catalogue import Catalogue
    from prism_bench.record.run_record import RunRecord

NAME = "show"


def command(
    record: options.RecordArgument = None,
    filter: options.FilterOption = None,
    all: options.AllOption = False,
    why: Annotated[
        str | None, typer.Option(metavar="CASE", help="Show why a case, or a kernel's largest one, takes its time.")
    ] = None,
    runs: options.RunsOption = options.DEFAULT_RUNS,
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Show what needs attention in a run record.

    It begins with the sentence of check, then the cases that need attention with their causes, then the kernels against
    their peers. With --filter the chosen cases are shown, with times, rates, shares of the measured ceilings and every
    peer. --why shows the bottleneck of one case, the counters that show it, the distance to its limit, and what a fix
    would bring.
    """
    from prism_bench.io.documents import no_collection
    from prism_bench.record import store

    path = record or store.newest(runs)
    with options.records_of(path), no_collection():
        if why:
            _explain(store.read(path), why, runs, catalogue, json=json)
            return
        _show(path, filter or (), runs, options.open_catalogue(catalogue), all, json=json)


def _show(path: Path, names: Sequence[str], runs: Path, kernels: "Catalogue", everything: bool, *, json: bool) -> None:
    """Print the chosen cases of a record, and what the gate finds in them."""
    from prism_bench.analysis.gate.checks import about
    from prism_bench.analysis.run_analysis import read
    from prism_bench.record import store
    from prism_bench.report.gate import attention
    from prism_bench.report.plain import view
    from prism_bench.report.terminal.record import summary_view

    reading = read(store.read(path), kernels, must_be_held=False)
    verdict = measuring.judged(reading, path, runs)
    if names:
        reading = reading.of_cases(names)
        verdict = about(verdict, {case.name for case in reading.record.cases})
    if json:
        options.print_json(view(reading) | attention(verdict))
    else:
        options.out().print(summary_view(reading, verdict, every_peer=bool(names), everything=everything))


def _explain(record: "RunRecord", name: str, runs: Path, catalogue: Path | None, *, json: bool) -> None:
    """Print why the case takes its time: by counters, else by the tables of the compiler and of memory accesses."""
    from prism_bench.report.plain import why_json
    from prism_bench.report.site.context import Places
    from prism_bench.report.terminal.profile import why_view
    from prism_bench.workflows.profiling import RESOURCES, WhyTables, why_of

    tables = WhyTables(project.stored(RESOURCES, project.current()), options.open_catalogue(catalogue))
    with options.err().status("explaining"):
        explanation = why_of(record, name, runs, Places(runs).profiles, tables)
    options.show(lambda: why_json(explanation), lambda: why_view(explanation), json=json)
