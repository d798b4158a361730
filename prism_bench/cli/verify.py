"""`prism-bench verify`: whether the kernels are right, on every backend that works here."""

from typing import TYPE_CHECKING, Annotated

import typer

from prism_bench.cli import options
from prism_bench.cli.measuring import progress_bar
from prism_bench.cli.options import CASE_SECONDS, TimeoutOption
from prism_bench.errors import PrismBenchError, UsageError
from prism_bench.units import count_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prism_bench.catalogue import Catalogue
    from prism_bench.record.run_record import RunRecord

NAME = "verify"
BACKENDS = ("numpy_reference", "emulator", "cuda")
_OF_REFERENCES = ("numpy_reference", "null")  # backends
_NO_KERNEL = "it runs no kernel; leave it out with --bitwise"


def command(
    cases: options.CasesArgument = None,
    filter: options.FilterOption = None,
    label: options.LabelOption = None,
    backend: options.BackendOption = None,
    part: options.PartOption = None,
    bitwise: Annotated[
        bool,
        typer.Option("--bitwise", help="Check that a kernel gives the same bits again, and say what changes them."),
    ] = False,
    timeout: TimeoutOption = CASE_SECONDS,
    catalogue: options.CatalogueOption = None,
    verbose: options.VerboseOption = False,
    json: options.JsonOption = False,
) -> None:
    """Verify kernels on every backend that works here.

    Edges, golden data and workloads on the same seeded inputs: NumPy references, the emulator, and the GPU.

    Without --backend, every backend that works here is used. Workloads are S0, on a GPU all of them, unless --label
    chooses others.

    With --bitwise, outputs of right cases are compared bit by bit: over repeated launches, orders of blocks (emulator),
    configurations of the tuning space, batches of the axes in batch_invariant, next to other work and over boards
    (GPU). What a spec promises by bitwise=True and batch_invariant is held, and ends with 1 where it is broken; the
    rest is reported.
    """
    from prism_bench.report.terminal.verification import bitwise_view, verification_json, verification_view
    from prism_bench.run import Settings, lanes_for
    from prism_bench.workflows.bitwise import equal_boards, verified_on_boards

    every = BACKENDS[1:] if bitwise else BACKENDS
    options.refuse({f"--backend {backend}": bitwise and backend in _OF_REFERENCES}, _NO_KERNEL)
    names = [name for name in ([backend] if backend else every) if _works(name, bool(backend), json)]
    kernels, patterns = options.open_catalogue(catalogue), options.patterns(cases, filter)
    edges, shared = kernels.edges_by_task(patterns), None
    if part is not None:
        shared = _shared_kernels(kernels, patterns, part, json)
        edges = [edge for edge in edges if edge.partition("[")[0].partition(":")[0] in shared]
    records: dict[str, RunRecord] = {}
    for name in names:
        chosen = kernels.cases(
            patterns, options.chosen_labels(label, ("S0", "S1", "S2") if name == "cuda" else ("S0",))
        )
        if shared is not None:
            chosen = [case for case in chosen if case.spec.name in shared]
        only_variants = all(case.variant for case in chosen) and all(":" in edge.partition("[")[0] for edge in edges)
        if name == "numpy_reference" and len(names) > 1 and only_variants:
            continue  # a variant's reference is its kernel's
        with progress_bar() as report:
            boards = equal_boards() if bitwise and name == "cuda" else []
            settings = Settings(processes=1, lanes=lanes_for(name), timeout=timeout, peers=False, bitwise=bitwise)
            records[name] = verified_on_boards(kernels, name, chosen, settings, report, boards, edges)
        if not records[name].complete:  # a signal ends the command, not only this backend
            break
    _require_cases(records)
    options.show(lambda: verification_json(records), lambda: verification_view(records, verbose=verbose), json=json)
    if bitwise and not json:
        options.out().print(bitwise_view(records))
    raise SystemExit(_exit_code(kernels, records, bitwise))


def _require_cases(records: "Mapping[str, RunRecord]") -> None:
    """Raise PrismBenchError where a signal ended the command before the first case: there is nothing to print."""
    if records and not any(record.cases for record in records.values()):
        raise PrismBenchError("the verification was ended before a case was verified, so there is no result")


def _exit_code(kernels: "Catalogue", records: "Mapping[str, RunRecord]", bitwise: bool) -> int:
    """Return the exit code; raise a UsageError where no bits were compared, though that was the purpose."""
    cases = [case for record in records.values() for case in record.cases]
    wrong = any(case.status not in ("ok", "skipped") for case in cases)
    if wrong or kernels.problems or not all(record.complete for record in records.values()):
        return 1
    if bitwise and not any(entry.get("same") is not None for case in cases for entry in case.verification):
        raise UsageError("--bitwise: no case with an output was right on a backend that runs it: no bits were compared")
    return 2 if any(map(options.was_hindered, records.values())) else 0


def _shared_kernels(kernels: "Catalogue", patterns: tuple[str, ...], part: str, quiet: bool) -> set[str]:
    """Return the kernels of a part of the chosen ones, and print how many there are.

    Parts have about as many cases each, edges among them, and are the same for every backend and label.
    """
    from prism_bench.run import share

    cases = [*kernels.cases(patterns), *kernels.edges(patterns)]
    shared = {case.spec.name for case in share(cases, part)}
    every = count_text(len({case.spec.name for case in cases}), "kernel")
    (options.remark if quiet else options.line)(f"part {part}: {len(shared)} of {every}")
    return shared


def _works(name: str, is_required: bool, quiet: bool) -> bool:
    """Return whether the backend can be opened here, and print that; a required one must."""
    from prism_bench.backends import open_backend
    from prism_bench.errors import BackendUnavailable

    show = options.remark if quiet else options.line
    try:
        show(f"backend {name}: {open_backend(name).facts()['device']}")
    except BackendUnavailable as error:
        if is_required:
            raise
        show(f"backend {name} left out: {error}")
        return False
    return True
