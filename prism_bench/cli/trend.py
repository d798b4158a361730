"""`prism-bench trend`: the course of every case over all records."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prism_bench.cli import measuring, options
from prism_bench.errors import ResultsError, UsageError

if TYPE_CHECKING:
    from prism_bench.record.store import History

NAME = "trend"


def command(
    cases: options.CasesArgument = None,
    filter: options.FilterOption = None,
    metric: Annotated[
        list[str] | None, typer.Option(help="Choose a metric, such as cold_time; may be repeated; default: all.")
    ] = None,
    machine: Annotated[
        list[str] | None, typer.Option(help="Choose a machine by its name; may be repeated; default: all.")
    ] = None,
    least: Annotated[float, typer.Option(help="Report changes from this share on.")] = 0.02,
    recent: Annotated[int, typer.Option(help="Count a slowdown as bad for so many records.")] = 30,
    runs: options.RunsOption = options.DEFAULT_RUNS,
    asv: Annotated[Path | None, typer.Option(help="Read this folder of asv's results too.")] = None,
    noise: measuring.NoiseOption = measuring.DEFAULT_NOISE,
    json: options.JsonOption = False,
) -> None:
    """Find the steps in every case's series, with their causes.

    Ends with 1 where a kernel has become slower and still is.
    """
    from prism_bench.analysis.run_analysis import exit_code
    from prism_bench.analysis.trend import trend
    from prism_bench.analysis.trend.causes import findings, shifts
    from prism_bench.analysis.trend.series import chosen, kept_floors
    from prism_bench.report.terminal.gate import trend_json, trend_view

    if not 0 < least < 1:
        raise UsageError(f"--least {least:g}: it must be between 0 and 1, such as 0.02 for 2 %")
    history = chosen(_read(runs, asv), options.patterns(cases, filter), metric or (), machine or ())
    trends = trend(history, kept_floors(history, noise), least)
    if json:
        options.print_json(trend_json(trends, history, recent))
    else:
        options.out().print(trend_view(trends, history, recent), highlight=False, soft_wrap=True)
    raise SystemExit(exit_code(findings(shifts(trends.steps), recent)))


def _read(runs: Path, asv: Path | None) -> "History":
    """Return the history of the records below `runs` and of asv's results; an error where there is none."""
    from prism_bench.record import store
    from prism_bench.record.formats import read_foreign

    foreign = read_foreign(asv) if asv else None
    with options.err().status("reading records") as status:
        show = lambda done, total: status.update(f"reading records: {done} of {total} new")  # noqa: E731
        history = store.read_history(runs, show, foreign.records if foreign else ())
    for reason in foreign.left_out if foreign else ():
        options.remark(reason, "yellow")
    if not history.records:
        store.newest(runs)
        raise ResultsError(history.problems[0].reason)
    return history
