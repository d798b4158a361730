"""`prism-bench ledger`: launches, gaps and copies of a chain of cases, of a script, or of what nsys recorded."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prism_bench.cli import options
from prism_bench.cli.measuring import TunedOption, configured
from prism_bench.errors import UsageError

if TYPE_CHECKING:
    from prism_bench.workflows.tracing import LaunchCost

NAME = "ledger"


_CasesArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[CASES]...", help="Trace these kernels or cases; or, after --, a script.")
]
_SourceOption = Annotated[
    Path | None, typer.Option("--from", help="Read this report of nsys or its SQLite export, and measure nothing.")
]


def command(
    cases: _CasesArgument = None,
    filter: options.FilterOption = None,
    chain: Annotated[bool, typer.Option("--chain", help="Trace the cases one after the other, as one chain.")] = False,
    script: Annotated[bool, typer.Option("--script", help="Read CASES as a Python script and its arguments.")] = False,
    source: _SourceOption = None,
    label: options.LabelOption = None,
    repeats: Annotated[int, typer.Option(min=1, help="Launch each so often.")] = 20,
    ranges: Annotated[int, typer.Option(min=0, help="Show so many ranges.")] = 30,
    tuned: TunedOption = True,
    backend: options.BackendOption = "cuda",
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Show launches, gaps, copies and the busy share of the GPU.

    Gaps are listed by cause; the busy share is the part of the time in which the device works. Label S0 by default.
    """
    from prism_bench.analysis.bounds.profiles import ledger
    from prism_bench.report.terminal.profile import ledger_json, ledger_view
    from prism_bench.workflows import tracing

    costs: Mapping[str, LaunchCost] = {}
    if source:
        timeline = tracing.timeline_from(source)
    else:
        if script:
            traced = tracing.trace_script(cases or ())
        else:
            patterns, labels = options.patterns(cases, filter), options.chosen_labels(label, ("S0",))
            kernels = options.open_catalogue(catalogue)
            if not patterns:
                raise UsageError("name kernels or cases, give --script and a script, or read a capture with --from")
            backend = backend or "cuda"
            listed = [
                case for word in patterns for case in kernels.cases([word], labels) if not case.variant or ":" in word
            ]
            names = [case.task for case in configured(listed, backend, tuned).cases]
            sequences = {" + ".join(patterns): names} if chain else {name: [name] for name in names}
            with options.err().status("tracing with cupti"):
                traced = tracing.trace_cases(kernels, backend, sequences, repeats)
        timeline, costs = traced.timeline, traced.costs
    account = ledger(timeline, ranges)
    options.show(
        lambda: ledger_json(account, costs),
        lambda: ledger_view(account, costs, whole=bool(source) or script or len(account.ranges) == 1),
        json=json,
    )
