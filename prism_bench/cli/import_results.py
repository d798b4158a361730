"""`prism-bench import`: results of other tools as run records."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prism_bench.cli import options
from prism_bench.cli.options import add_to_shards
from prism_bench.errors import ResultsError, UsageError

if TYPE_CHECKING:
    from prism_bench.record.formats.foreign import StatedFacts

NAME = "import"
_GUESSES = {"created": "a file does not say when it was measured", "machine": "a file names no machine"}


_FormatOption = Annotated[
    str | None,
    typer.Option(
        help="Use asv, google-benchmark, hyperfine, kernelbench, nvbench, pytest-benchmark, torch-profiler or "
        "tritonbench; default: by content."
    ),
]


def command(
    results: Annotated[list[Path], typer.Argument(help="Read these files or folders.")],
    format: _FormatOption = None,
    created: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Set when it was measured, in ISO 8601, for files that have no time."),
    ] = None,
    commit: Annotated[
        str | None, typer.Option(metavar="HASH", help="Set the hash of the commit measured, for files that lack it.")
    ] = None,
    machine: Annotated[str | None, typer.Option(help="Set the name of the machine, for files that lack it.")] = None,
    runs: options.RunsOption = options.DEFAULT_RUNS,
    json: options.JsonOption = False,
) -> None:
    """Import results of other tools as run records.

    These are asv, Google Benchmark, hyperfine, KernelBench, nvbench, pytest-benchmark, PyTorch's profiler, TritonBench.
    A row that cannot be read is left out with its reason. Ends with 2 where a file cannot be read or holds nothing to
    import; the rest is imported.
    """
    from prism_bench.record import store
    from prism_bench.record.formats import read_foreign
    from prism_bench.workflows.file_kinds import other_kind

    facts = _stated(created, commit, machine)
    written: list[Path] = []
    left_out: list[str] = []
    guessed: set[str] = set()
    failed = False
    for path in results:
        try:
            imported = read_foreign(path, format, facts)
        except ResultsError as error:
            failed = True
            left_out.append(str(other_kind(path, NAME, error)))
        else:
            written += [store.add_once(record, runs) for record in imported.records]
            left_out += imported.left_out
            guessed.update(name for record in imported.records for name in record.guessed)
    written = list(dict.fromkeys(written))
    add_to_shards(written)
    if json:
        options.print_json({"records": [str(path) for path in written], "left_out": left_out})
    else:
        for path in written:
            options.line(f"record: {path}")
        for reason in left_out:
            options.remark(reason, "yellow")
        for name in sorted(guessed):
            options.remark(f"{_GUESSES[name]}: a record of it enters no trend without --{name}", "yellow")
    raise SystemExit(2 if failed or not written else 0)


def _stated(created: str | None, commit: str | None, machine: str | None) -> "StatedFacts":
    """Return the facts of the options; a UsageError where one of them is no time, hash or name."""
    from prism_bench.record.formats.foreign import COMMIT, StatedFacts, moment

    if commit is not None and not COMMIT.fullmatch(commit):
        raise UsageError(f"--commit {commit!r:.80}: it must be a hash of 7 to 64 digits, such as 0123456789abcdef")
    if machine is not None and not re.search(r"[A-Za-z0-9]", machine):
        raise UsageError(f"--machine {machine!r:.80}: it must be a name with letters or digits")
    try:
        return StatedFacts(moment(created, "--created") if created is not None else None, commit, machine)
    except ResultsError as error:
        raise UsageError(str(error)) from None
