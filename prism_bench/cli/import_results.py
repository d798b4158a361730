"""`prism-bench import`: results of other tools as run records."""

from pathlib import Path
from typing import Annotated

import typer

from prism_bench import options
from prism_bench.errors import ResultsError
from prism_bench.options.shards import add_to_shards

NAME = "import"


def command(
    results: Annotated[
        list[Path], typer.Argument(help="Read results of nvbench, Google Benchmark, KernelBench, TritonBench or asv.")
    ],
    format: Annotated[
        str | None,
        typer.Option(help="Use asv, google-benchmark, kernelbench, nvbench or tritonbench; default: by content."),
    ] = None,
    runs: options.RunsOption = options.DEFAULT_RUNS,
    json: options.JsonOption = False,
) -> None:
    """Import results of other tools as run records.

    Ends with 2 where a file cannot be read; the rest is imported.
    """
    from prism_bench import store
    from prism_bench.exchange import read_foreign

    written: list[Path] = []
    left_out: list[str] = []
    failed = False
    for path in results:
        try:
            found = read_foreign(path, format)
        except ResultsError as error:
            failed = True
            left_out.append(str(error))
        else:
            written += [store.add_once(record, runs) for record in found.records]
            left_out += found.left_out
    written = list(dict.fromkeys(written))
    add_to_shards(written)
    if json:
        options.print_json({"records": [str(path) for path in written], "left_out": left_out})
    else:
        for path in written:
            options.line(f"record: {path}")
        for reason in left_out:
            options.remark(reason, "yellow")
    raise SystemExit(2 if failed or not written else 0)
