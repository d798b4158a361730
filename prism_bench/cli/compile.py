"""`prism-bench compile`: whether every kernel compiles, for which architectures, and with which resources."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from rich.console import Group

from prism_bench.cli import options
from prism_bench.io import project

if TYPE_CHECKING:
    from prism_bench.backends import Backend
    from prism_bench.catalogue import Catalogue
    from prism_bench.workflows.compile_table import CodeComparison, Complaint, SourceCuts
    from prism_bench.workflows.toolchains import ChangedOnDevice, ToolchainComparison

NAME = "compile"
TABLE = Path("reports/compile/resources.csv")
_AgainstOption = Annotated[
    str | None,
    typer.Option(help="Report the cases whose code, launch or inputs changed since a commit, a run record or a table."),
]
_ToolchainsOption = Annotated[
    str | None,
    typer.Option(
        "--toolchains",
        metavar="LIST",
        help="Compile by each of these, such as 12.9,13.0 or triton-3.6.0, and report what changes.",
    ),
]
_FailOption = Annotated[
    bool,
    typer.Option(
        "--fail-on-change", help="End with 1 where anything changed or is not comparable, not only where spills grew."
    ),
]


def command(
    cases: options.CasesArgument = None,
    filter: options.FilterOption = None,
    arch: options.ArchitectureOption = None,
    write: options.WriteOption = False,
    against: _AgainstOption = None,
    toolchains: _ToolchainsOption = None,
    fail_on_change: _FailOption = False,
    verbose: options.VerboseOption = False,
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Compile every kernel for several architectures, without a GPU.

    The registers, spills and shared memory are compared with reports/compile/resources.csv, which --write makes anew;
    --write --against TABLE writes that one. With --verbose the host code that is cut out of sources is shown first.

    Ends with 1 where a kernel does not compile, a device refuses its launch, spills grew, or registers grew beyond an
    allowance or so that fewer blocks fit a multiprocessor; with --toolchains where the later one makes such code, or
    none, or on a GPU slower code; with --against where a kernel does not compile, its launch is refused or spills grew,
    and with --fail-on-change also where code, launch or inputs changed or the old side does not compile. A record has
    no launches and inputs, and a table only resources.
    """
    if toolchains is not None:
        others = {"--against": against, "--write": write, "--verbose": verbose}
        options.refuse(others, "leave it out with --toolchains")
        chosen = options.patterns(cases, filter), arch
        _end_toolchains(toolchains, options.open_catalogue(catalogue), chosen, fail_on_change=fail_on_change, json=json)
    from prism_bench.compilation.program import require_known
    from prism_bench.report.terminal.verification import compile_json, compile_table, cuts_json
    from prism_bench.workflows import compile_table as check

    kernels, patterns = options.open_catalogue(catalogue), options.patterns(cases, filter)
    table = _table(against, write=write)
    stored = check.read_table(table)
    architectures = tuple(arch) if arch else check.ARCHITECTURES
    require_known(architectures)
    cuts = _shown_cuts(kernels, patterns, json) if verbose else None
    if against and not write:
        _end_against(against, kernels, patterns, architectures, fail_on_change=fail_on_change, json=json)
    chosen = check.whole_kernels(kernels, patterns) if write and patterns else patterns
    with options.err().status("compiling") as status:
        elsewhere: list[check.Complaint] = []
        rows, complaints = check.compile_check(kernels, chosen, architectures, status.update, elsewhere=elsewhere)
    before = {row.key: row for row in stored}
    blocks = {} if write else check.launched_blocks(kernels, chosen, ((before.get(row.key), row) for row in rows))
    grown = [] if write else check.worsened(rows, stored, blocks)
    if write:
        check.write_table(table, check.merged_table(stored, check.whole(rows, complaints), kernels.kernels))
    left_out = [*check.left_out(kernels, chosen, architectures), *elsewhere]
    if json:
        shown = {} if cuts is None else {"cuts": cuts_json(cuts)}
        options.print_json({**compile_json(rows, [*complaints, *grown], left_out), **shown})
    else:
        options.out().print(compile_table(rows, architectures))
        _print_findings(left_out, complaints, grown)
        if stored and not write:
            options.line(f"{table}: {check.compared_text(rows, stored, grown)}")
    raise SystemExit(1 if complaints or grown or kernels.problems else 0)


def _print_findings(
    left_out: "Iterable[Complaint]", complaints: "Sequence[Complaint]", grown: "Iterable[Complaint]"
) -> None:
    """Print what was left out, then what does not compile or launch, and what got worse, in red."""
    from prism_bench.report.terminal.verification import complaint_lines
    from prism_bench.workflows.compile_table import together

    for line in together(left_out):
        options.line(line, "dim")
    for line in (*complaint_lines(complaints), *(f"{growth.kernel}: {growth.message}" for growth in grown)):
        options.line(line, "red")


def _end_toolchains(
    text: str,
    kernels: "Catalogue",
    chosen: tuple[Sequence[str], Sequence[str] | None],
    *,
    fail_on_change: bool,
    json: bool,
) -> NoReturn:
    """Print what changes between the toolchains; end with 1 where code got worse or, if asked, changed at all."""
    from prism_bench.compilation.program import require_numbers
    from prism_bench.errors import UsageError
    from prism_bench.report.terminal.toolchains import toolchain_view, toolchains_json
    from prism_bench.workflows.compile_table import ARCHITECTURES
    from prism_bench.workflows.toolchains import compare_toolchains, opened_pairs

    patterns, architectures = chosen
    require_numbers(architectures or ())
    if not kernels.kernels:
        kernels.refuse_nothing("compile")
    with options.err().status("toolchains") as status:
        pairs = opened_pairs(text, status.update)
        comparisons = compare_toolchains(pairs, kernels, patterns, architectures or ARCHITECTURES, status.update)
    for comparison in comparisons:
        if not comparison.is_of_any:
            reason = f": {comparison.left_out[0].message}" if comparison.left_out else ""
            raise UsageError(f"--toolchains {text}: no kernel was compiled by both toolchains{reason}")
    launched = [_on_device(comparison, kernels, patterns) for comparison in comparisons]
    timed = [outcome.times.exit_code for outcome in launched if outcome and outcome.times]
    options.show(
        lambda: toolchains_json(comparisons, launched),
        lambda: Group(*map(toolchain_view, comparisons, launched)),
        json=json,
    )
    bad = any(comparison.is_worse or (fail_on_change and comparison.changes) for comparison in comparisons)
    raise SystemExit(1 if bad or kernels.problems else max(timed, default=0))


def _device() -> "Backend | None":
    """Return the backend of the GPU, or None without a GPU: then nothing is launched."""
    from prism_bench.backends import open_backend
    from prism_bench.errors import BackendUnavailable

    try:
        return open_backend("cuda")
    except BackendUnavailable:
        return None


def _on_device(
    comparison: "ToolchainComparison", kernels: "Catalogue", patterns: Sequence[str]
) -> "ChangedOnDevice | None":
    """Launch and time the changed kernels with the code of both toolchains; None without a GPU or a change for it."""
    from prism_bench.cli.compare import timed_builds
    from prism_bench.run.builds import Build
    from prism_bench.run.pool import measuring
    from prism_bench.workflows.toolchains import ChangedOnDevice, changed_cases, compared_bits

    backend = _device()
    if backend is None:
        return None
    cases = changed_cases(comparison, kernels, patterns, backend.device.compute_capability)
    if not cases:
        return None
    a, b = (
        Build(toolchain.name, kernels, cases, measuring(None, toolchain.variables))
        for toolchain in comparison.toolchains
    )
    times = timed_builds((a, b), backend)
    with options.err().status("comparing outputs"):
        bits = compared_bits(comparison.toolchains, kernels, backend.name, cases, times)
    return ChangedOnDevice(str(backend.facts()["device"]), tuple(bits), times)


def _table(against: str | None, *, write: bool) -> Path:
    """Return the table to compare with and to write: that of `--against`, or the stored one."""
    from prism_bench.errors import UsageError

    if against and write and Path(against).suffix != ".csv":
        raise UsageError(f"--against {against}: --write writes a table; name one that ends with .csv")
    return Path(against) if against and write else project.stored(TABLE, project.current())


def _shown_cuts(catalogue: "Catalogue", patterns: Sequence[str], json: bool) -> "list[SourceCuts]":
    """Print what is cut out of the sources of the chosen cases, unless as JSON, and return it."""
    from prism_bench.report.terminal.verification import cut_lines
    from prism_bench.workflows.compile_table import source_cuts

    cuts = list(source_cuts(catalogue, patterns))
    for text, style in () if json else cut_lines(cuts):
        options.line(text, style)
    return cuts


def _end_against(
    against: str,
    kernels: "Catalogue",
    patterns: Sequence[str],
    architectures: Sequence[str],
    *,
    fail_on_change: bool,
    json: bool,
) -> NoReturn:
    """Print what changed; end with 1 where spills grew, something does not compile, or, if asked, anything changed."""
    from dataclasses import replace

    from prism_bench.report.terminal.verification import changes_json, changes_view
    from prism_bench.workflows.compile_table import Complaint, without_compiler

    with options.err().status("compiling"):
        comparison = _changes(against, kernels, patterns, architectures)
    unusable = [Complaint(problem.path.stem, f"cannot be used: {problem}") for problem in kernels.problems]
    comparison = replace(comparison, complaints=[*comparison.complaints, *unusable])
    left_out = without_compiler(kernels, patterns)
    options.show(
        lambda: changes_json(against, comparison, left_out),
        lambda: changes_view(against, comparison, left_out),
        json=json,
    )
    changes = comparison.changes
    bad = comparison.complaints or any(change.spills_grew for change in changes)
    raise SystemExit(1 if bad or (fail_on_change and (changes or comparison.uncompared)) else 0)


def _changes(
    against: str, kernels: "Catalogue", patterns: Sequence[str], architectures: Sequence[str]
) -> "CodeComparison":
    """Return what changed since a table (`.csv`), a record, or a commit, and what does not compile."""
    from prism_bench.catalogue import discover
    from prism_bench.errors import UsageError
    from prism_bench.record import store
    from prism_bench.run.builds import checked_out, repository_of
    from prism_bench.workflows import compile_table

    path = Path(against)
    if path.suffix == ".csv":
        if not path.is_file():
            raise UsageError(f"--against {against}: there is no such table")
        stored = compile_table.read_table(path)
        rows, complaints = compile_table.compile_check(
            kernels, compile_table.whole_kernels(kernels, patterns), architectures
        )
        return compile_table.since_table(stored, rows, complaints)
    if path.is_file():
        return compile_table.since_record(store.read(path), kernels, patterns)
    folder = kernels.folder.resolve()
    repository = repository_of(folder)
    with checked_out(against, repository) as tree:
        old = tree / folder.relative_to(repository)
        if not old.is_dir():
            raise UsageError(f"--against {against}: that commit has no folder {folder.relative_to(repository)}")
        return compile_table.since_catalogue(discover(old), kernels, patterns, architectures, tree)
