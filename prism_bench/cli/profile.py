"""`prism-bench profile`: the bottleneck of kernels, from ncu, nsys, CUPTI, or a file of theirs."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prism_bench.cli import options
from prism_bench.cli.measuring import TunedOption, configured
from prism_bench.cli.options import TimeoutOption
from prism_bench.errors import ResultsError, UsageError
from prism_bench.extension import offered
from prism_bench.io import files, project
from prism_bench.io.files import Saver

if TYPE_CHECKING:
    from prism_bench.record.run_record import RunRecord
    from prism_bench.workflows.profiling import ProfileJob, ProfilePlan
    from prism_bench.workflows.tracing import TracedRun

NAME = "profile"
TOOLS = ("auto", "ncu", "nsys", "cupti")
PROFILES = Path("reports/profiles")
_SUFFIXES = (".csv", ".ncu-rep", ".nsys-rep", ".qdstrm", ".sqlite", ".npz", ".json", ".gz", ".py")  # of no case


_CasesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[CASES]...",
        help="Profile these kernels, families or cases; default: all. Or read a file of ncu or nsys, or a record with "
        "counters, or trace a Python script with its arguments.",
    ),
]
_ToolOption = Annotated[str, typer.Option(help="Use auto, ncu (counters), nsys or cupti (launches, gaps, copies).")]
_CountersOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Count core (3 passes; the default), all (10), traffic (1: DRAM bytes), lines (where warps wait) or a "
        "metric of ncu; may be repeated."
    ),
]
_ChainOption = Annotated[bool, typer.Option("--chain", help="Trace the cases as one chain, one after the other.")]
_OverlapOption = Annotated[
    bool,
    typer.Option(
        "--overlap",
        help="Time copies next to kernels, in chunks of one case; two cases next to each other; default: examples.",
    ),
]
_OutputOption = Annotated[
    Path, typer.Option("--output", "-o", help="Set the folder of profilers' reports, records and tables.")
]


def command(
    cases: _CasesArgument = None,
    filter: options.FilterOption = None,
    tool: _ToolOption = "auto",
    counters: _CountersOption = None,
    chain: _ChainOption = False,
    overlap: _OverlapOption = False,
    label: options.LabelOption = None,
    time_limit: options.TimeLimitOption = None,
    timeout: TimeoutOption = 60.0,
    everything: options.AllOption = False,
    limit: options.LimitOption = 20,
    output: _OutputOption = PROFILES,
    tuned: TunedOption = None,
    backend: options.BackendOption = None,
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Find the bottleneck of kernels, or read a profiler's file.

    Cases have the label S1 by default, and the command line of the tool is printed; those that were never profiled, or
    long ago, go first. A file is shown by its content: kernels by the time that they take, what limits each, and how
    much a fix may gain by ncu's estimate.
    """
    if tool not in TOOLS:
        raise UsageError(f"--tool is '{tool}'; it is one of {', '.join(TOOLS)}")
    names = options.patterns(cases, filter)
    if cases and _is_file(cases[0]):
        measured = {"--filter": filter, "--tool": tool != "auto", "--counters": counters, "--chain": chain}
        stored = project.stored(PROFILES, project.current())
        measured |= {"--overlap": overlap, "--label": label, f"--output {output}": output not in (PROFILES, stored)}
        options.refuse(measured, f"leave it out with {cases[0]}: a file is not measured")
        raise SystemExit(_show_file(Path(cases[0]), cases[1:], everything, limit, json=json))
    if overlap:
        others = {"--tool": tool != "auto", "--counters": counters, "--chain": chain, "--label": label}
        options.refuse(others, "leave it out with --overlap")
        return _overlapped(names, backend, catalogue, timeout, json=json)
    plan = _plan(options.writable_folder(output), counters or (), time_limit or 600.0, timeout)
    if chain and tool not in ("auto", "cupti"):
        raise UsageError(f"--tool {tool}: a --chain is traced with cupti")
    tool = "cupti" if chain else tool
    if counters and tool in ("nsys", "cupti"):
        raise UsageError(f"--counters is for ncu; {'--chain' if chain else f'--tool {tool}'} counts launches and gaps")
    raise SystemExit(
        _measure(names, label, tool, plan, backend or "cuda", catalogue, chain, tuned, everything, limit, json=json)
    )


def _is_file(word: str) -> bool:
    """Return whether the word names a file, there or not, rather than a kernel or a case."""
    path = Path(word)
    is_path = "/" in word or word.startswith(".") or path.suffix in _SUFFIXES
    return is_path or (path.suffix != "" and path.is_file())


def _plan(folder: Path, counters: Sequence[str], seconds: float, case_seconds: float) -> "ProfilePlan":
    """Return the plan that the words of `--counters` describe; a UsageError for a word that is none of them."""
    from prism_bench.profilers.metrics import REPLACED, SETS, base
    from prism_bench.workflows.profiling import ProfilePlan

    sets = [word for word in counters if word in SETS]
    metrics = tuple(word for word in counters if word not in (*SETS, "lines"))
    if len(sets) > 1:
        raise UsageError(f"--counters {sets[1]}: {sets[0]} is chosen already; name one of {', '.join(SETS)}")
    if unknown := [word for word in metrics if "__" not in word and base(word) not in REPLACED]:
        expected = f"{', '.join(SETS)}, lines, or a metric of ncu such as dram__bytes_read.sum"
        raise UsageError(f"--counters {unknown[0]}: it is one of {expected}")
    return ProfilePlan(folder, (sets or ["core"])[0], metrics, seconds, case_seconds, "lines" in counters)


# Cases, profiled here.


def _measure(
    names: Sequence[str],
    label: Sequence[str] | None,
    tool: str,
    plan: "ProfilePlan",
    backend: str,
    catalogue: Path | None,
    chain: bool,
    tuned: bool | None,
    everything: bool,
    limit: int,
    *,
    json: bool,
) -> int:
    """Profile the cases, print what limits them, and keep the record; return the exit code."""
    from prism_bench.workflows.profiling import ProfileJob

    kernels, labels = options.open_catalogue(catalogue), options.chosen_labels(label, ("S1",))
    if chain and len(names) < 1:
        raise UsageError("--chain: name the cases of the chain, in their order")
    opened = options.choose_backend(backend, quiet=json)
    if chain:  # in the order of the words, and of variants only those that are named
        listed = [case for word in names for case in kernels.cases([word], labels) if not case.variant or ":" in word]
    else:
        listed = kernels.cases(names, labels)
    job = ProfileJob(opened, kernels, list(configured(listed, opened, tuned).cases), plan.folder)
    if chain:
        with options.err().status("tracing with cupti"):
            return _show_trace(job.chained(" + ".join(names)), True, limit, json=json)
    with files.held():
        record, traced = _profiled(job, tool, plan)
        save = Saver(job.keep)
        kept = list(save.finish(record) or ())
        return save.exit_code(_show(record, kept, everything, limit, traced, json=json))


def _profiled(job: "ProfileJob", tool: str, plan: "ProfilePlan") -> "tuple[RunRecord, TracedRun | None]":
    """Return the record of the chosen tool, with its trace; `auto` goes on with CUPTI where ncu may not count."""
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
            return record, None
    with options.err().status(f"tracing with {tool}"):
        return job.traced(tool, plan.seconds)


def _show(
    record: "RunRecord",
    kept: Sequence[Path],
    everything: bool,
    limit: int,
    traced: "TracedRun | None" = None,
    *,
    json: bool,
) -> int:
    """Print the record's answers, findings and files; return the exit code."""
    from prism_bench.analysis.bounds.profiles import ledger, profile_findings, rows
    from prism_bench.analysis.run_analysis import exit_code
    from prism_bench.report.terminal.capture import timeline_json, timeline_view
    from prism_bench.report.terminal.profile import findings_view, profile_json, profile_view

    findings, lines = profile_findings(record), rows(record)
    account = ledger(traced.timeline, max(limit, len(record.cases))) if traced else None
    if json:
        trace = {"timeline": timeline_json(account, traced.costs)} if account and traced else {}
        options.print_json(profile_json(lines, findings, kept) | trace)
    else:
        if account and traced:
            options.out().print(timeline_view(account, traced.costs, ranges=True, most=limit), findings_view(findings))
        else:
            options.out().print(profile_view(lines, findings, everything=everything, most=limit))
        for path in kept:
            options.line(f"kept: {path}")
        for command in sorted({str(case.profile.get("command") or "") for case in record.cases} - {""}) if kept else ():
            options.line(f"command: {command}")
    return exit_code(findings)


def _overlapped(
    names: Sequence[str], backend: str | None, catalogue: Path | None, timeout: float, *, json: bool
) -> None:
    measured = offered("overlap mode")
    if measured is None:
        raise UsageError("--overlap: no extension that measures copies next to kernels is installed")
    measured(names, backend, catalogue, timeout, json=json)


# Files of profilers, and scripts.


def _show_file(path: Path, arguments: Sequence[str], everything: bool, limit: int, *, json: bool) -> int:
    """Print the answers that the file holds, by its content; return the exit code."""
    from prism_bench.workflows import file_kinds, tracing

    kind = file_kinds.kind_of(path)
    if kind and kind.name == "script":
        return _show_trace(tracing.trace_script([str(path), *arguments]), everything, limit, json=json)
    if arguments:
        raise UsageError(f"{arguments[0]}: {path} is read alone")
    if kind and kind.name in ("ncu table", "ncu report"):
        return _show_capture(path, everything, limit, json=json)
    if kind and kind.name == "record":
        return _show_record(path, everything, limit, json=json)
    file_kinds.refuse_other(path, kind, NAME)
    if kind is None:
        raise ResultsError(f"{path}: no file of ncu or nsys, no record with counters, and no Python script")
    if kind.name == "nsys table" and _show_summary(path, limit, json=json):
        return 0
    traced = tracing.TracedRun(tracing.timeline_from(path))
    return _show_trace(traced, everything, limit, json=json)


def _show_summary(path: Path, limit: int, *, json: bool) -> bool:
    """Print the rows of a summary of nsys by their time; return False for a trace, which has more to show."""
    from dataclasses import asdict

    from prism_bench.analysis.bounds.profiles import summed_up
    from prism_bench.profilers import nsys
    from prism_bench.report.terminal.capture import summary_view

    table = nsys.read(path)
    totals = summed_up(table)
    if totals is None:
        return False
    options.show(
        lambda: {table.kind: [asdict(total) for total in totals]},
        lambda: summary_view(table.kind, totals, limit),
        json=json,
    )
    return True


def _show_record(path: Path, everything: bool, limit: int, *, json: bool) -> int:
    from prism_bench.record import store

    record = store.read(path)
    if not any(case.profile for case in record.cases):
        raise ResultsError(
            f"{path}: no case of it was profiled; 'prism-bench show' shows its times, 'prism-bench profile' counts"
        )
    return _show(record, [], everything, limit, json=json)


def _show_capture(path: Path, everything: bool, limit: int, *, json: bool) -> int:
    """Print the launches of a capture of ncu."""
    from prism_bench.report.terminal.capture import capture_json, capture_view
    from prism_bench.workflows.profiling import read_capture

    launches = read_capture(path)
    if json:
        options.print_json(capture_json(launches))
    else:
        options.out().print(capture_view(launches, everything=everything, most=limit))
    return 0


def _show_trace(traced: "TracedRun", everything: bool, limit: int, *, json: bool) -> int:
    """Print the kernels, gaps and copies of a timeline."""
    from prism_bench.analysis.bounds.profiles import ledger
    from prism_bench.report.terminal.capture import timeline_json, timeline_view

    account = ledger(traced.timeline, limit)
    options.show(
        lambda: timeline_json(account, traced.costs),
        lambda: timeline_view(account, traced.costs, ranges=everything, most=limit),
        json=json,
    )
    return 0
