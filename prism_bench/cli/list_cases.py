"""`prism-bench list`: the kernels and cases of the catalogue."""

from prism_bench.cli import options

NAME = "list"


def command(
    cases: options.CasesArgument = None,
    filter: options.FilterOption = None,
    label: options.LabelOption = None,
    all: options.AllOption = False,
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """List the kernels, or cases with their bytes and operations.

    Kernels have a line each. Cases are listed where some are chosen (by position, --filter or --label) and with --all.
    """
    from prism_bench.report.terminal.catalogue import cases_json, cases_table, kernels_table

    kernels = options.open_catalogue(catalogue)
    patterns, labels = options.patterns(cases, filter), options.chosen_labels(label)
    chosen = kernels.cases(patterns, labels)
    table = cases_table if all or patterns or label else kernels_table
    options.show(lambda: cases_json(chosen), lambda: table(chosen), json=json)
    if kernels.problems:
        raise SystemExit(1)
