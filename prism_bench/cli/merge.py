"""`prism-bench merge`: one record from the parts that several GPUs measured."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prism_bench.cli import options
from prism_bench.cli.options import add_to_shards
from prism_bench.units import count_text

if TYPE_CHECKING:
    from prism_bench.record.run_record import RunRecord

NAME = "merge"


def command(
    parts: Annotated[list[Path], typer.Argument(help="Read these run records, one of each part; two or more.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write this file, not <runs>/<machine>/<UTC>-<commit>.json.gz."),
    ] = None,
    runs: options.RunsOption = options.DEFAULT_RUNS,
    json: options.JsonOption = False,
) -> None:
    """Merge the parts that several GPUs measured into one run record.

    GPUs of one kind, each with a part of the kernels: `prism-bench run --part I/N --output FILE`. A kernel with all of
    its variants belongs in one part, so that they are timed on one GPU; only the kernels that measure the machine are
    in every part. Parts that differ in machine, software, protocol, commit or tuning are refused. The record's duration
    is the longest part's. No record is replaced: the merged one gets a name that is free.
    """
    from prism_bench.record import store
    from prism_bench.run import merge

    target = store.RecordPlace(runs, output)
    read = [(str(path), store.read(path)) for path in parts]
    record = merge(read)
    cut_short = [origin for origin, part in read if not part.complete]
    place = target.save(record)
    add_to_shards([place])
    if json:
        options.print_json(_plain(record, place, cut_short))
    else:
        _print(record, place, cut_short)


def _plain(record: "RunRecord", place: Path, cut_short: list[str]) -> dict[str, object]:
    return {
        "record": str(place),
        "complete": record.complete,
        "cut_short": cut_short,
        "cases": len(record.cases),
        "uuids": list(record.uuids),
        "parts": list(record.parts),
    }


def _print(record: "RunRecord", place: Path, cut_short: list[str]) -> None:
    for part in cut_short:
        options.remark(f"{part} was cut short, so the merged record is marked incomplete", "yellow")
    kernels = sum(len(part["kernels"]) for part in record.parts)
    counts = (
        f"{count_text(len(record.parts), 'part')}, {count_text(kernels, 'kernel')} and "
        f"the ceilings, {count_text(len(record.cases), 'case')}"
    )
    options.line(f"merged: {counts}")
    options.line(f"record: {place}")
