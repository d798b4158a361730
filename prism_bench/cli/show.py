"""`prism-bench show`: a record as a table."""

from prism_bench import options

NAME = "show"


def command(
    record: options.RecordArgument = None,
    filter: options.FilterOption = None,
    runs: options.RunsOption = options.DEFAULT_RUNS,
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Show a run record as a table.

    Times, rates, shares of the measured ceilings, verification, and the kernels against their peers by class of peer.
    With --filter every peer of the chosen cases is shown as well.
    """
    from prism_bench import store
    from prism_bench.analysis.choice import with_cases
    from prism_bench.report.json_view import view
    from prism_bench.report.terminal.record import summary_view

    found = options.open_catalogue(catalogue)
    read = with_cases(store.read(record or store.newest(runs)), filter or ())
    if json:
        options.print_json(view(read, found, must_be_held=False))
    else:
        options.out().print(summary_view(read, found, must_be_held=False, every_peer=bool(filter)))
