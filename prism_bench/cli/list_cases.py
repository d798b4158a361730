"""`prism-bench list`: the kernels and cases of the catalogue."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from prism_bench.cli import options

if TYPE_CHECKING:
    from prism_bench.spec.case import Case

NAME = "list"
_NAMED = 3  # kernels in one line


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
    Kernels that the emulator does not run are named below.
    """
    from prism_bench.report.terminal.catalogue import cases_json, cases_table, kernels_table

    kernels = options.open_catalogue(catalogue)
    patterns, labels = options.patterns(cases, filter), options.chosen_labels(label)
    chosen = kernels.cases(patterns, labels)
    table = cases_table if all or patterns or label else kernels_table
    options.show(lambda: cases_json(chosen), lambda: table(chosen), json=json)
    for line in [] if json else _not_emulated(chosen):
        options.line(line, "dim")
    if kernels.problems:
        raise SystemExit(1)


def _not_emulated(cases: "Sequence[Case]") -> Iterator[str]:
    """Yield for each thing that the emulator lacks the kernels that need it."""
    from prism_bench.backends.emulator import known_refusals

    for reason, kernels in known_refusals(cases).items():
        more = f" and {len(kernels) - _NAMED} more" if len(kernels) > _NAMED else ""
        yield f"not emulated: {reason}: {', '.join(kernels[:_NAMED])}{more}"
