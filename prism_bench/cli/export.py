"""`prism-bench export`: records for other tools."""

from pathlib import Path
from typing import Annotated

import typer

from prism_bench import options
from prism_bench.errors import ResultsError, UsageError, unknown

NAME = "export"
FORMATS = ("csv", "parquet", "asv")


def command(
    record: Annotated[Path | None, typer.Argument(help="a run record; the newest one without it")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="the file, or the folder for asv")] = None,
    format: Annotated[str | None, typer.Option(help="csv, parquet or asv; told from the output's ending")] = None,
    everything: Annotated[bool, typer.Option("--all", help="every record; a row per measurement, not sample")] = False,
    runs: options.RunsOption = options.DEFAULT_RUNS,
    json: options.JsonOption = False,
) -> None:
    """Write records as CSV, Parquet or asv's results.

    A record's samples, or all records' medians; asv publishes what is written for it.
    """
    kind = _kind(output, format)
    if everything and record:
        raise UsageError("--all is every record below --runs: leave out the record's name")
    sources = [] if everything else [record or _newest(runs)]
    paths = _as_asv(sources, runs, output) if kind == "asv" else _as_table(sources, runs, output, kind)
    if json:
        options.print_json({"written": [str(path) for path in paths]})
    else:
        for path in paths:
            options.out().print(f"written: {path}", highlight=False, soft_wrap=True)


def _kind(output, format):
    if output is None:
        raise UsageError("where to? --output samples.csv, --output samples.parquet, or --format asv --output FOLDER")
    kind = format or output.suffix.lstrip(".")
    if kind not in FORMATS:
        raise unknown("format", kind, FORMATS)
    return kind


def _newest(runs):
    from prism_bench import store

    return store.newest(runs)


def _as_asv(sources, runs, output):
    """asv's results of each of the records, of all without any; of all, those that cannot be exported are told."""
    from prism_bench import store
    from prism_bench.exchange.asv_out import write

    written = []
    for path in sources or store.records_in(runs):
        try:
            written.append(write(store.read(path), output))
        except ResultsError as error:
            if sources:
                raise
            _tell(error)
    return list(dict.fromkeys(written))


def _as_table(sources, runs, output, kind):
    from prism_bench import store
    from prism_bench.exchange.tables import write

    if not sources:
        history = store.read_history(runs)
        for problem in history.problems:
            _tell(problem.reason)
        return [write(store.all_points(history), output, kind)]
    frame = store.load(sources[0])
    facts = {name: frame.attrs[name] for name in ("backend", "created", "commit")}
    return [write(frame.assign(machine=frame.attrs["machine"]["id"], **facts), output, kind)]


def _tell(reason):
    options.err().print(str(reason), style="yellow", highlight=False, soft_wrap=True)
