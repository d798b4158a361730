"""`prism-bench ledger`: launches, gaps and copies of a chain of cases, of a script, or of what nsys recorded."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from prism_bench import options
from prism_bench.errors import UsageError
from prism_bench.options.tuned import TunedOption, configured
from prism_bench.units import bytes_text, share_text, time_text

NAME = "ledger"
BLAMED = ("sync", "host", "launch", "queued")


def command(
    words: Annotated[list[str] | None, typer.Argument(help="kernels or cases; or, after --, a script")] = None,
    chain: Annotated[bool, typer.Option("--chain", help="the cases one after the other, as one chain")] = False,
    script: Annotated[bool, typer.Option("--script", help="the words are a Python script and its own words")] = False,
    source: Annotated[Path | None, typer.Option("--from", help="SQLite export or report of nsys")] = None,
    label: options.LabelOption = None,
    repeats: Annotated[int, typer.Option(min=1, help="how often each is launched")] = 20,
    most: Annotated[int, typer.Option(min=0, help="how many ranges to show")] = 30,
    tuned: TunedOption = True,
    backend: options.BackendOption = "cuda",
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Account for launches, gaps, copies and the busy share.

    Gaps by who is to blame; the share of time in which the device is busy. Label S0 by default.
    """
    from prism_bench.analysis.ledger import ledger
    from prism_bench.studies import tracing

    costs = {}
    if source:
        timeline = tracing.timeline_from(source)
    elif script:
        timeline = tracing.trace_script(words or ())
        timeline, costs = timeline.timeline, timeline.costs
    else:
        where = repeats, backend, catalogue, tuned
        timeline, costs = _cases(words, chain, options.chosen_labels(label, ("S0",)), where)
    account = ledger(timeline, most)
    if json:
        options.print_json(_plain(account, costs))
    else:
        _print(account, costs, whole=bool(source) or script or len(account.ranges) == 1)


def _cases(words, chain, labels, rest):
    from prism_bench.studies import tracing

    repeats, backend, folder, tuned = rest
    if not words:
        raise UsageError("name kernels or cases, give --script and a script, or read a capture with --from")
    found = options.open_catalogue(folder)
    cases = [case for word in words for case in found.cases([word], labels) if not case.variant or ":" in word]
    names = [case.task for case in configured(cases, backend, tuned).cases]
    sequences = {" + ".join(words): names} if chain else {name: [name] for name in names}
    with options.err().status("tracing with cupti"):
        traced = tracing.trace_cases(found, backend, sequences, repeats)
    return traced.timeline, traced.costs


def _plain(account, costs):
    return {**asdict(account), "costs": {name: asdict(cost) for name, cost in costs.items()}}


def _print(account, costs, whole):
    console = options.out()
    title = f"launch ledger of {account.source}, by {account.tool} {account.version}"
    console.print(title, markup=False, highlight=False, soft_wrap=True)
    table = Table()
    table.add_column("range", overflow="fold")
    for name in ("kernels", "launch calls", "busy", "span", "idle", "gaps", *BLAMED, "copies"):
        table.add_column(name, justify="right")
    for row in [*([account.total] if whole else []), *account.ranges]:
        table.add_row(Text(row.name or "all"), *_cells(row))
    console.print(table)
    for name, cost in costs.items():
        words = f"{name}: the host takes {time_text(cost.plain)} to launch it, {time_text(cost.watched)} while watched"
        console.print(words, markup=False, highlight=False, soft_wrap=True)
    for note in account.notes:
        console.print(f"note: {note}", markup=False, highlight=False, soft_wrap=True)


def _cells(row):
    blame = (time_text(row.gaps[word].seconds) if word in row.gaps else "-" for word in BLAMED)
    times = (share_text(row.busy_share), time_text(row.span), time_text(row.idle))
    copies = f"{row.copies} ({bytes_text(row.copied_bytes)})"
    return (str(row.kernels), str(row.launch_calls), *times, str(row.gap_count), *blame, copies)
