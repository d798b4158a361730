"""`prism-bench export`: records for other tools."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from prism_bench.cli import options
from prism_bench.errors import ResultsError, UsageError, unknown

NAME = "export"
FORMATS = ("csv", "parquet", "asv")


def command(
    record: options.RecordArgument = None,
    filter: options.FilterOption = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write this file, or this folder for asv.")
    ] = None,
    format: Annotated[
        str | None, typer.Option(help="Use the format csv, parquet or asv; default: by the ending of --output.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all-records", help="Export all records, with a row per measurement instead of sample.")
    ] = False,
    runs: options.RunsOption = options.DEFAULT_RUNS,
    json: options.JsonOption = False,
) -> None:
    """Write records as CSV, Parquet or asv's results.

    The samples of one record, or the medians of all records.
    """
    from prism_bench.record import store

    target, kind = _kind(output, format)
    if everything and record:
        raise UsageError("--all-records exports every record below --runs: leave out the record's name")
    if filter and (everything or kind == "asv"):
        raise UsageError("--filter chooses cases of one record as a table: leave out --all-records and asv")
    source = None if everything else record or store.newest(runs)
    paths = _as_asv(source, runs, target) if kind == "asv" else [_as_table(source, runs, target, kind, filter or ())]
    if json:
        options.print_json({"written": [str(path) for path in paths]})
    else:
        for path in paths:
            options.line(f"written: {path}")


def _kind(output: Path | None, format: str | None) -> tuple[Path, str]:
    """Return where to write and in which format."""
    if output is None:
        raise UsageError("where to? --output samples.csv, --output samples.parquet, or --format asv --output FOLDER")
    kind = format or output.suffix.lstrip(".")
    if kind not in FORMATS:
        raise unknown("format", kind, FORMATS)
    return output, kind


def _as_asv(source: Path | None, runs: Path, output: Path) -> list[Path]:
    """Write asv's results of the record, or of all records; of all, report those that cannot be exported."""
    from prism_bench.record import store
    from prism_bench.report.asv.results import write

    written: list[Path] = []
    for path in [source] if source else store.records_in(runs):
        try:
            written.append(write(store.read(path), output))
        except ResultsError as error:
            if source:
                raise
            options.remark(str(error), "yellow")
    return list(dict.fromkeys(written))


def _as_table(source: Path | None, runs: Path, output: Path, kind: str, names: Sequence[str]) -> Path:
    """Write the samples of the record's chosen cases, or the medians of all records."""
    from prism_bench.analysis.summary import with_cases
    from prism_bench.record import store
    from prism_bench.record.formats.tables import write, write_parts

    if source is None:
        history = store.read_history(runs)
        for problem in history.problems:
            options.remark(problem.reason, "yellow")
        return write_parts(store.points_in_parts(history), output, kind)
    frame = store.load(source)
    if names:
        chosen = {case.name for case in with_cases(store.read(source), names).cases}
        frame = frame[frame["case"].isin(chosen)]
    facts = {name: frame.attrs[name] for name in ("backend", "created", "commit")}
    return write(frame.assign(machine=frame.attrs["machine"]["id"], **facts), output, kind)
