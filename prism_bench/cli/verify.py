"""`prism-bench verify`: whether the kernels are right, on every backend that works here."""

from collections.abc import Iterable

from prism_bench.cli import options
from prism_bench.cli.measuring import progress_bar
from prism_bench.cli.options import CASE_SECONDS, TimeoutOption
from prism_bench.record.run_record import RunRecord
from prism_bench.spec.case import Case

NAME = "verify"
BACKENDS = ("numpy_reference", "emulator", "cuda")


def command(
    cases: options.CasesArgument = None,
    filter: options.FilterOption = None,
    label: options.LabelOption = None,
    backend: options.BackendOption = None,
    timeout: TimeoutOption = CASE_SECONDS,
    catalogue: options.CatalogueOption = None,
    verbose: options.VerboseOption = False,
    json: options.JsonOption = False,
) -> None:
    """Verify kernels on every backend that works here.

    Edges, golden data and workloads on the same seeded inputs: NumPy references, the emulator, and the GPU.

    Without --backend, every backend that works here is used. Workloads are S0, on a GPU all of them, unless --label
    chooses others.
    """
    from prism_bench.report.terminal.catalogue import verification_json, verification_view
    from prism_bench.run import Settings, lanes_for, run

    names = [name for name in ([backend] if backend else BACKENDS) if _works(name, bool(backend), json)]
    found, words = options.open_catalogue(catalogue), options.patterns(cases, filter)
    edges = found.edges_by_task(words)
    records: dict[str, RunRecord] = {}
    for name in names:
        chosen = found.cases(words, options.chosen_labels(label, ("S0", "S1", "S2") if name == "cuda" else ("S0",)))
        if name == "numpy_reference" and len(names) > 1 and _variants_alone(chosen, edges):
            continue  # a variant's reference is its kernel's
        with progress_bar() as report:
            settings = Settings(processes=1, lanes=lanes_for(name), timeout=timeout, peers=False)
            records[name] = run(found, name, chosen, settings, report, timed=False, others=edges)
    options.show(lambda: verification_json(records), lambda: verification_view(records, verbose=verbose), json=json)
    raise SystemExit(_code(records, bool(found.problems)))


def _variants_alone(cases: Iterable[Case], edges: Iterable[str]) -> bool:
    """Return whether only variants are chosen, by cases and by names of edges."""
    return all(case.variant for case in cases) and all(":" in edge.partition("[")[0] for edge in edges)


def _code(records: dict[str, RunRecord], has_problems: bool) -> int:
    """Return 1 where a case is wrong or a run was cut short, 2 where the cache took no more or an extra is missing."""
    wrong = any(case.status not in ("ok", "skipped") for record in records.values() for case in record.cases)
    if wrong or has_problems or not all(record.complete for record in records.values()):
        return 1
    return 2 if any(map(options.was_hindered, records.values())) else 0


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
