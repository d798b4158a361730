"""`prism-bench merge`: one record of what several GPUs measured in parts."""

from pathlib import Path
from typing import Annotated

import typer

from prism_bench import options

NAME = "merge"


def command(
    parts: Annotated[list[Path], typer.Argument(help="run records, one of each part; two or more")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="file, not <runs>/<machine>/<UTC>-<commit>.json.gz")
    ] = None,
    runs: options.RunsOption = options.DEFAULT_RUNS,
    json: options.JsonOption = False,
) -> None:
    """Make one run record of parts that several GPUs measured.

    GPUs of one kind, each with a part of the kernels: `prism-bench run --part I/N --output FILE`. A kernel with all of
    its variants belongs in one part, so that they are timed on one GPU; only the kernels that measure the machine stand
    in every part. Parts that differ in machine, software, protocol, commit or tuning are refused. The record's duration
    is the longest part's. No record is replaced: the merged one gets a name that is free.
    """
    from prism_bench import store
    from prism_bench.run import merge

    target = store.RecordPlace(runs, output)
    read = [(str(path), store.read(path)) for path in parts]
    record = merge(read)
    cut_short = [origin for origin, part in read if not part.complete]
    place = target.save(record)
    if json:
        options.print_json(_plain(record, place, cut_short))
    else:
        _tell(record, place, cut_short)


def _plain(record, place, cut_short):
    return {
        "record": str(place), "complete": record.complete, "cut_short": cut_short, "cases": len(record.cases),
        "uuids": list(record.uuids), "parts": list(record.parts),
    }  # fmt: skip


def _tell(record, place, cut_short):
    for part in cut_short:
        words = f"{part} was cut short, so the merged record is marked incomplete"
        options.err().print(words, style="yellow", highlight=False, soft_wrap=True)
    kernels = sum(len(part["kernels"]) for part in record.parts)
    counts = f"{len(record.parts)} parts, {kernels} kernels and the ceilings, {len(record.cases)} cases"
    options.out().print(f"merged: {counts}", highlight=False, soft_wrap=True)
    options.out().print(f"record: {place}", highlight=False, soft_wrap=True)
