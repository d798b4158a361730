"""`prism-bench profile`: the bottleneck of a kernel, by the counters of ncu."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prism_bench.cli import options
from prism_bench.cli.measuring import TunedOption, configured
from prism_bench.cli.options import CASE_SECONDS, TimeoutOption, limited
from prism_bench.errors import ResultsError, UsageError
from prism_bench.io import files
from prism_bench.io.files import Saver

if TYPE_CHECKING:
    from prism_bench.catalogue import Catalogue
    from prism_bench.record.run_record import RunRecord
    from prism_bench.workflows.profiling import ProfileJob, ProfilePlan

NAME = "profile"
TOOLS = ("auto", "ncu", "nsys", "cupti")
PROFILES = Path("reports/profiles")


_ToolOption = Annotated[str, typer.Option(help="Use auto, ncu (counters), nsys or cupti (launches, gaps, copies).")]
_SetOption = Annotated[str, typer.Option("--set", help="Count core (3 passes), all (10) or traffic (1: DRAM bytes).")]
_CounterOption = Annotated[list[str] | None, typer.Option(help="Count this metric of ncu as well; may be repeated.")]
_LinesOption = Annotated[bool, typer.Option("--lines", help="Sample at which source lines warps wait; ncu alone.")]
_ClockOption = Annotated[str, typer.Option(help="Pass this to ncu; a shared GPU needs none.")]
_VerifyOption = Annotated[bool, typer.Option(help="Compare the profiled launch with the reference.")]
_SourceOption = Annotated[
    Path | None, typer.Option("--from", help="Read this capture (.csv, .ncu-rep) or record, and measure nothing.")
]
_EmulateOption = Annotated[
    bool, typer.Option("--emulate", help="Add the bytes that the source touches to --from RECORD.")
]
_ReportsOption = Annotated[Path, typer.Option(help="Set the folder of profilers' reports, records and tables.")]
_IntoOption = Annotated[Path | None, typer.Option(help="Add the counters to the cases of this run record.")]


def command(
    cases: options.CasesArgument = None,
    filter: options.FilterOption = None,
    tool: _ToolOption = "auto",
    chosen: _SetOption = "core",
    counter: _CounterOption = None,
    label: options.LabelOption = None,
    time_limit: options.TimeLimitOption = 600.0,
    timeout: TimeoutOption = 60.0,
    verify: _VerifyOption = True,
    lines: _LinesOption = False,
    clock_control: _ClockOption = "none",
    source: _SourceOption = None,
    emulate: _EmulateOption = False,
    reports: _ReportsOption = PROFILES,
    into: _IntoOption = None,
    tuned: TunedOption = True,
    backend: options.BackendOption = "cuda",
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Profile each case and name its bottleneck.

    Label S1 by default; the command line of the tool is printed. Cases that were never profiled, or long ago, go first.
    """
    from prism_bench.workflows.profiling import ProfileJob, ProfilePlan

    if tool not in TOOLS:
        raise UsageError(f"--tool is '{tool}'; it is one of {', '.join(TOOLS)}")
    if lines and tool in ("nsys", "cupti"):
        raise UsageError(f"--lines takes ncu; with --tool {tool} no source lines are sampled")
    if source and into:
        raise UsageError(f"--into {into}: leave it out with --from, which measures nothing that could be added")
    if source and source.suffix in (".csv", ".ncu-rep"):
        return _show_capture(source, json)
    kernels = options.open_catalogue(catalogue)
    if source:
        raise SystemExit(_show_record(source, kernels if emulate else None, json))
    opened = options.choose_backend(backend, quiet=json)
    listed = kernels.cases(options.patterns(cases, filter), options.chosen_labels(label, ("S1",)))
    job = ProfileJob(opened, kernels, list(configured(listed, opened, tuned).cases), reports)
    limits = (time_limit or 600.0, timeout)
    plan = ProfilePlan(reports, chosen, tuple(counter or ()), clock_control, *limits, verify, lines)
    with files.held():
        record = _profiled(job, tool, plan, quiet=json)
        save = Saver(job.keep)
        merge: Saver[RunRecord, list[Path]] = Saver(lambda profiled: [job.merged(profiled, into)] if into else [])
        kept = [*(save.finish(record) or ()), *(merge.finish(record) or ())]
        raise SystemExit(merge.exit_code(save.exit_code(_show(record, json, kept))))


def _profiled(job: "ProfileJob", tool: str, plan: "ProfilePlan", quiet: bool) -> "RunRecord":
    """Return the record of the chosen tool; `auto` goes on with CUPTI where ncu is not allowed to count."""
    from prism_bench.profilers.tools import ProfilerFailed
    from prism_bench.workflows.profiling import CLOSED

    if tool in ("auto", "ncu"):
        try:
            with options.err().status("profiling") as status:
                record = job.counted(plan, status.update)
        except ProfilerFailed as error:
            if tool == "ncu" or error.failure.name not in CLOSED:
                raise
            options.remark(f"{error} Going on with cupti.")
            tool = "cupti"
        else:
            commands = {str(case.profile["command"]) for case in record.cases if case.profile}
            for command in sorted(commands) if not quiet else ():
                options.line(f"command: {command}")
            return record
    with options.err().status(f"tracing with {tool}"):
        return job.traced(tool, plan.seconds)


def _show(record: "RunRecord", json: bool, kept: list[Path], emulated: dict[str, float] | None = None) -> int:
    """Print the record's table, findings and files; return the exit code."""
    from prism_bench.analysis.bounds.profiles import profile_findings
    from prism_bench.analysis.run_analysis import exit_code
    from prism_bench.report.terminal.profile import profile_json, profile_rows, profile_view

    findings, rows = profile_findings(record), profile_rows(record, emulated)
    if json:
        options.print_json(profile_json(rows, findings, kept))
    else:
        options.out().print(profile_view(rows, findings), soft_wrap=False)
        for path in kept:
            options.line(f"kept: {path}")
    return exit_code(findings)


def _show_record(path: Path, catalogue: "Catalogue | None", json: bool) -> int:
    """Print the table of a record with profiles; with a catalogue, next to the bytes that its sources touch at S0."""
    from prism_bench.record import store

    record = store.read(path)
    if not any(case.profile for case in record.cases):
        raise ResultsError(
            f"{path}: no case of it was profiled; 'prism-bench profile --into' adds counters to a record"
        )
    return _show(record, json, [], _emulated(record, catalogue) if catalogue else {})


def _emulated(record: "RunRecord", catalogue: "Catalogue") -> dict[str, float]:
    """Return, by kernel and variant, the bytes touched over the declared ones, counted on the emulator at S0."""
    from prism_bench.workflows.traffic import traffic

    profiled = {f"{case.kernel}:{case.variant}" if case.variant else case.kernel for case in record.cases}
    cases = [case for case in catalogue.cases((), ["S0"]) if case.kernel in profiled]
    counted = {}
    with options.err().status("emulating") as status:
        for case in cases:
            status.update(case.name)
            with limited(case.name, CASE_SECONDS):
                counted[case.kernel] = traffic(case)
    return {
        name: counts.touched / counts.declared
        for name, counts in counted.items()
        if counts.declared and counts.launches
    }


def _show_capture(path: Path, json: bool) -> None:
    """Print the launches of a capture that somebody else made, by kernel where there are many."""
    from prism_bench.report.terminal.profile import capture_json, capture_view
    from prism_bench.workflows.profiling import read_capture

    launches = read_capture(path)
    if json:
        options.print_json(capture_json(launches))
    else:
        options.out().print(capture_view(launches), soft_wrap=True)
