"""`prism-bench import`: what other tools measured, as run records."""

from pathlib import Path
from typing import Annotated

import typer

from prism_bench import options
from prism_bench.errors import ResultsError

NAME = "import"


def command(
    results: Annotated[list[Path], typer.Argument(help="JSON of nvbench, Google Benchmark or asv; a folder of asv's")],
    format: Annotated[str | None, typer.Option(help="asv, nvbench or google-benchmark; told from the content")] = None,
    runs: options.RunsOption = options.DEFAULT_RUNS,
    json: options.JsonOption = False,
) -> None:
    """Make run records of other tools' results. What cannot be read is told, and ends with 2; the rest is imported."""
    from prism_bench import store
    from prism_bench.exchange import read_foreign

    written, left_out, failed = [], [], False
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
    if json:
        options.print_json({"records": [str(path) for path in written], "left_out": left_out})
    else:
        _tell(written, left_out)
    raise SystemExit(2 if failed or not written else 0)


def _tell(written, left_out):
    for path in written:
        options.out().print(f"record: {path}", highlight=False, soft_wrap=True)
    for reason in left_out:
        options.err().print(reason, style="yellow", highlight=False, soft_wrap=True)
