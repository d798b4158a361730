"""`prism-bench baseline`: the record that later records of this device are held against."""

from pathlib import Path
from typing import Annotated

import typer

from prism_bench.cli import options
from prism_bench.errors import ResultsError
from prism_bench.units import count_text

NAME = "baseline"


def command(
    record: options.RecordArgument = None,
    runs: options.RunsOption = options.DEFAULT_RUNS,
    require_device: Annotated[str | None, typer.Option(help="Refuse a record of any other device.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write this file, not the one next to the device's budgets.")
    ] = None,
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Make a record the baseline of its device.

    Its medians are kept next to the device's budgets. Without RECORD it is that of the newest commit.
    """
    from prism_bench.analysis.gate.budgets import baseline_of, baseline_path, known_case, write_baseline
    from prism_bench.record import store

    source, kernels = record or store.newest_commit(runs), options.open_catalogue(catalogue)
    if record is None and source != (last := store.newest(runs)):
        options.remark(f"{source.name} is of the newest commit; {last.name} was measured later", "yellow")
    baseline = baseline_of(store.read(source), _portable(source))
    if require_device and require_device != baseline.device:
        raise ResultsError(f"{source}: it is of {baseline.device}, not of {require_device}")
    for case in dict.fromkeys(case for case, _ in baseline.seconds):
        known_case(case, kernels, str(source))
    path = write_baseline(baseline, output or baseline_path(baseline.device, kernels))
    count = len({case for case, _ in baseline.seconds})
    if json:
        options.print_json({"path": str(path), "record": str(source), "device": baseline.device, "cases": count})
    else:
        options.line(f"baseline: {count_text(count, 'case')} of {source.name} for {baseline.device}: {path}")


def _portable(source: Path) -> str:
    """Return the record's path as a reader elsewhere can follow it: relative to the current folder if below that."""
    path = source.resolve()
    return path.relative_to(Path.cwd()).as_posix() if path.is_relative_to(Path.cwd()) else path.name
