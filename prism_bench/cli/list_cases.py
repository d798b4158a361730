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
    options.show(lambda: cases_json(chosen), lambda: cases_table(chosen), json=json)
    if found.problems:
        raise SystemExit(1)
