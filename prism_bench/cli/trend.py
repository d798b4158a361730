"""`prism-bench trend`: what became of every case over all records."""

from pathlib import Path
from typing import Annotated

import typer

from prism_bench import options
from prism_bench.errors import ResultsError, UsageError
from prism_bench.options import pairs

NAME = "trend"


def command(
    filter: options.FilterOption = None,
    metric: Annotated[list[str] | None, typer.Option(help="such as cold_time; may be repeated; all without it")] = None,
    machine: Annotated[list[str] | None, typer.Option(help="may be repeated; all without it")] = None,
    smallest: Annotated[float, typer.Option(help="in percent; smaller changes are not told")] = 2.0,
    recent: Annotated[int, typer.Option(help="records for which a step to the worse is a bad finding")] = 30,
    runs: options.RunsOption = options.DEFAULT_RUNS,
    asv: Annotated[Path | None, typer.Option(help="a folder of asv's results to read too")] = None,
    noise: pairs.NoiseOption = pairs.DEFAULT_NOISE,
    json: options.JsonOption = False,
) -> None:
    """Find the steps in every case's series, with their causes. Exit 1 where a kernel has become worse and still is."""
    from prism_bench.analysis.findings import exit_code
    from prism_bench.analysis.trend import trend
    from prism_bench.analysis.trend.choice import chosen, kept_floors
    from prism_bench.analysis.trend.shifts import findings, shifts
    from prism_bench.report.terminal.trend import trend_json, trend_view

    if not 0 < smallest < 100:
        raise UsageError(f"--smallest {smallest:g}: it must lie between 0 and 100 percent, such as 2")
    history = chosen(_read(runs, asv), filter or (), metric or (), machine or ())
    found = trend(history, kept_floors(history, noise), smallest / 100)
    if json:
        options.print_json(trend_json(found, history, recent))
    else:
        options.out().print(trend_view(found, history, recent), highlight=False, soft_wrap=True)
    raise SystemExit(exit_code(findings(shifts(found.steps), recent)))


def _read(runs, asv):
    """The history of the records below `runs` and of asv's results; an error where there is nothing to be read."""
    from prism_bench import store

    records, left_out = _foreign(asv) if asv else ((), ())
    with options.err().status("reading records") as status:
        tell = lambda done, total: status.update(f"reading records: {done} of {total} new")  # noqa: E731
        history = store.read_history(runs, tell, records)
    if not history.records:
        store.newest(runs)
        raise ResultsError(history.problems[0].reason)
    for reason in left_out:
        options.err().print(reason, style="yellow", highlight=False, soft_wrap=True)
    return history


def _foreign(folder):
    """The records in asv's results, and what was left out of them."""
    from prism_bench.exchange import read_foreign

    found = read_foreign(folder)
    return found.records, found.left_out
