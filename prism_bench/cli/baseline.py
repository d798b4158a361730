"""`prism-bench baseline`: what later records of this device are held against."""

from pathlib import Path
from typing import Annotated

import typer

from prism_bench import options
from prism_bench.errors import ResultsError

NAME = "baseline"


def command(
    record: Annotated[Path | None, typer.Argument(help="a run record; the newest one without it")] = None,
    runs: options.RunsOption = options.DEFAULT_RUNS,
    device: Annotated[str | None, typer.Option(help="refuse a record of any other device")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="where to write instead")] = None,
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Make a record the baseline of its device.

    Its medians are kept beside the device's budgets.
    """
    from prism_bench import store
    from prism_bench.analysis.baselines import baseline_of, known_case, write_baseline
    from prism_bench.analysis.promises import baseline_path

    source, found = record or store.newest(runs), options.open_catalogue(catalogue)
    baseline = baseline_of(store.read(source), _told(source))
    if device and device != baseline.device:
        raise ResultsError(f"{source}: it is of {baseline.device}, not of {device}")
    for case in dict.fromkeys(case for case, _ in baseline.seconds):
        known_case(case, found, str(source))
    path = write_baseline(baseline, output or baseline_path(baseline.device, found))
    count = len({case for case, _ in baseline.seconds})
    if json:
        options.print_json({"path": str(path), "record": str(source), "device": baseline.device, "cases": count})
    else:
        words = f"baseline: {count} cases of {source.name} for {baseline.device}: {path}"
        options.out().print(words, highlight=False, soft_wrap=True)


def _told(source):
    """The record's path as a reader elsewhere can follow it: from the current folder, where it lies below that."""
    path = source.resolve()
    return path.relative_to(Path.cwd()).as_posix() if path.is_relative_to(Path.cwd()) else path.name
