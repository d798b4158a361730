"""`prism-bench export`: records for other tools."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from prism_bench.cli import options
from prism_bench.errors import ResultsError, UsageError, unknown

NAME = "export"
_OF_ONE_RECORD = ("nvbench", "google-benchmark")
FORMATS = ("csv", "parquet", "asv", *_OF_ONE_RECORD)


def command(
    record: options.RecordArgument = None,
    filter: options.FilterOption = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write this file, or this folder for asv.")
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(help="Use csv, parquet, asv, nvbench or google-benchmark; default: by the ending of --output."),
    ] = None,
    all: options.AllOption = False,
    runs: options.RunsOption = options.DEFAULT_RUNS,
    json: options.JsonOption = False,
) -> None:
    """Write records for other tools.

    The samples of one record, or with --all a row for each measurement of every record below --runs: CSV and Parquet,
    results of asv, and JSON that the compare scripts of nvbench and Google Benchmark read.
    """
    from prism_bench.record import store

    target, kind = _kind(output, format)
    if all and record:
        raise UsageError("--all exports every record below --runs: leave out the record's name")
    if filter and (all or kind == "asv"):
        raise UsageError("--filter chooses cases of one record: leave out --all and asv")
    if all and kind in _OF_ONE_RECORD:
        raise UsageError(f"a file of {kind} holds one record: leave out --all")
    source = None if all else record or store.newest(runs)
    with options.records_of(source):
        if kind == "asv":
            paths = _as_asv(source, runs, target)
        elif source and kind in _OF_ONE_RECORD:
            paths = [_as_json(source, target, kind, filter or ())]
        else:
            paths = [_as_table(source, runs, target, kind, filter or ())]
    if json:
        options.print_json({"written": [str(path) for path in paths]})
    else:
        for path in paths:
            options.line(f"written: {path}")


def _kind(output: Path | None, format: str | None) -> tuple[Path, str]:
    """Return where to write and in which format."""
    if output is None:
        raise UsageError(
            "where to? --output samples.csv, --format asv --output FOLDER, --format nvbench --output x.json"
        )
    kind = format or output.suffix.lstrip(".")
    if kind not in FORMATS:
        raise unknown("format", kind, FORMATS)
    check = options.writable_folder if kind == "asv" else options.writable
    check(output)
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


def _as_json(source: Path, output: Path, kind: str, names: Sequence[str]) -> Path:
    """Write the record's chosen cases as the JSON of another tool."""
    from prism_bench.analysis.summary import with_cases
    from prism_bench.record import store
    from prism_bench.record.formats import google_benchmark, nvbench

    writer = nvbench if kind == "nvbench" else google_benchmark
    return writer.write(with_cases(store.read(source), names), output)


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
