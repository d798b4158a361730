"""`prism-bench profile`: what bounds a kernel, by the counters of ncu."""

from pathlib import Path
from typing import Annotated

import typer

from prism_bench import interrupts, options
from prism_bench.errors import UsageError
from prism_bench.options.tuned import TunedOption, configured

NAME = "profile"
TOOLS = ("auto", "ncu", "nsys", "cupti")
PROFILES = Path("reports/profiles")


def command(
    cases: Annotated[list[str] | None, typer.Argument(help="kernels, families or cases; all without any")] = None,
    tool: Annotated[str, typer.Option(help="auto, ncu (counters), nsys or cupti (launches, gaps, copies)")] = "auto",
    chosen: Annotated[str, typer.Option("--set", help="core (3 passes), all (10), traffic (1: DRAM bytes)")] = "core",
    metric: Annotated[list[str] | None, typer.Option(help="a metric of ncu's own besides; may be repeated")] = None,
    label: options.LabelOption = None,
    limit_seconds: Annotated[float, typer.Option(min=1, help="for all; never or long ago tried ones go first")] = 600,
    case_seconds: Annotated[float, typer.Option(min=1, help="for one case")] = 60.0,
    verify: Annotated[bool, typer.Option(help="compare the profiled launch with the reference")] = True,
    clock_control: Annotated[str, typer.Option(help="what ncu does to clocks; a shared card wants none")] = "none",
    source: Annotated[
        Path | None, typer.Option("--from", help="read a capture (.csv, .ncu-rep) or a profile's record instead")
    ] = None,
    emulate: Annotated[bool, typer.Option(help="with --from RECORD: beside the bytes that the source touches")] = False,
    reports: Annotated[Path, typer.Option(help="where profilers' reports, records and tables go")] = PROFILES,
    into: Annotated[Path | None, typer.Option(help="a run record that takes the counters of its cases")] = None,
    tuned: TunedOption = True,
    backend: options.BackendOption = "cuda",
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Count what each case does and say what bounds it. Label S1 by default; the tool's command line is printed."""
    from prism_bench.cli import profiling

    if tool not in TOOLS:
        raise UsageError(f"--tool is '{tool}'; it is one of {', '.join(TOOLS)}")
    if source and source.suffix in (".csv", ".ncu-rep"):
        profiling.show_capture(source, json)
        return
    found = options.open_catalogue(catalogue)
    if source:
        raise SystemExit(profiling.show_record(source, found if emulate else None, json))
    opened = options.choose_backend(backend, quiet=json)
    chosen_cases = found.cases(cases or (), options.chosen_labels(label, ("S1",)))
    wanted = profiling.Wanted(opened, found, list(configured(chosen_cases, opened, tuned).cases), reports)
    plan = {"chosen": chosen, "extra": tuple(metric or ()), "clock_control": clock_control, "verify": verify}
    limits = {"seconds": limit_seconds, "case_seconds": case_seconds}
    with interrupts.held():
        record = profiling.profile(wanted, tool, plan | limits, quiet=json)
        raise SystemExit(profiling.tell(record, wanted.place, into, json))
