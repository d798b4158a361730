"""`prism-bench list`: the kernels and cases of the catalogue."""

from prism_bench import options

NAME = "list"


def command(
    cases: options.CasesArgument = None,
    filter: options.FilterOption = None,
    label: options.LabelOption = None,
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """List kernels and cases with their bytes and operations."""
    from prism_bench.report.terminal.cases import cases_json, cases_table

    found = options.open_catalogue(catalogue)
    chosen = found.cases(options.patterns(cases, filter), options.chosen_labels(label))
    if json:
        options.print_json(cases_json(chosen))
    else:
        options.out().print(cases_table(chosen))
    if found.problems:
        raise SystemExit(1)
