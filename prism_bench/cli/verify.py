"""`prism-bench verify`: are the kernels right, on every leg that stands here?"""

from rich.table import Table
from rich.text import Text

from prism_bench import options
from prism_bench.options.limits import CASE_SECONDS, TimeoutOption
from prism_bench.options.progress import progress_bar

NAME = "verify"
LEGS = ("numpy_reference", "emulator", "cuda")


def command(
    filter: options.FilterOption = None,
    label: options.LabelOption = None,
    backend: options.BackendOption = None,
    timeout: TimeoutOption = CASE_SECONDS,
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Verify kernels wherever they can run here.

    Edges, golden data and workloads on the same seeded inputs: NumPy references, the emulator, and the GPU.

    Without --backend every leg that can run here does. Workloads are S0, on a GPU all of them, unless --label says.
    """
    from prism_bench.run import Settings, lanes_for, run

    legs = [backend] if backend else list(LEGS)
    standing = [leg for leg in legs if _stands(leg, asked=bool(backend), quiet=json)]
    found = options.open_catalogue(catalogue)
    kernels = found.edges_by_task(filter or ())
    records = {}
    for leg in standing:
        cases = found.cases(
            filter or (), options.chosen_labels(label, ("S0", "S1", "S2") if leg == "cuda" else ("S0",))
        )
        with progress_bar() as report:
            settings = Settings(processes=1, lanes=lanes_for(leg), timeout=timeout, peers=False)
            records[leg] = run(found, leg, cases, settings, report, timed=False, others=kernels)
    if json:
        options.print_json([_plain(leg, case) for leg, record in records.items() for case in record.cases])
    else:
        _print(records)
    wrong = [c for record in records.values() for c in record.cases if c.status not in ("ok", "skipped")]
    complete = all(record.complete for record in records.values())
    if wrong or found.problems or not complete:
        raise SystemExit(1)
    raise SystemExit(2 if any(map(options.cache_was_refused, records.values())) else 0)


def _stands(leg, asked, quiet):
    """Whether the leg can be opened here; a leg that was asked for by name must."""
    from prism_bench.backends import open_backend
    from prism_bench.errors import BackendUnavailable

    console = options.err() if quiet else options.out()
    try:
        sentence = f"backend {leg}: {open_backend(leg).facts()['device']}"
    except BackendUnavailable as error:
        if asked:
            raise
        sentence = f"backend {leg} left out: {error}"
    console.print(sentence, highlight=False, soft_wrap=True)
    return "left out" not in sentence


def _plain(leg, case):
    return {"backend": leg, "name": case.name, "label": case.label, "status": case.status, "reason": case.reason,
            "verification": list(case.verification)}  # fmt: skip


def _print(records):
    console = options.out()
    table = Table(title="largest relative error, and where", title_justify="left")
    table.add_column("kernel", overflow="fold")
    for leg in records:
        table.add_column(leg, overflow="fold")
    legs = {leg: _by_kernel(record) for leg, record in records.items()}
    for kernel in sorted({kernel for groups in legs.values() for kernel in groups}):
        table.add_row(kernel, *(_cell(groups.get(kernel)) for groups in legs.values()))
    console.print(table)
    for leg, record in records.items():
        _print_rest(console, leg, record)


def _print_rest(console, leg, record):
    """The count, and every case that did not pass."""
    counts = {}
    for case in record.cases:
        counts[case.status] = counts.get(case.status, 0) + 1
    console.print(f"{leg}: " + ", ".join(f"{count} {status}" for status, count in counts.items()), highlight=False)
    for case in record.cases:
        if case.status != "ok":
            console.print(Text(case.status, "red"), str(case.reason), highlight=False, soft_wrap=True)


def _by_kernel(record):
    groups = {}
    for case in record.cases:
        groups.setdefault(f"{case.kernel}:{case.variant}" if case.variant else case.kernel, []).append(case)
    return groups


def _cell(cases):
    """The largest relative error with usual values; with those of an input regime it may say nothing, as near 0."""
    if cases is None:
        return "-"
    wrong = [case for case in cases if case.status not in ("ok", "skipped")]
    if wrong:
        return Text(f"{len(wrong)} of {len(cases)} cases {wrong[0].status}", "red")
    usual = [case for case in cases if case.label != "edge" or case.name.endswith(f"[{case.workload_text}]")]
    entries = [(entry, case) for case in usual for entry in case.verification if entry.get("compared")]
    if not entries:
        return Text(f"{cases[0].status}, nothing to compare", "dim")
    entry, case = max(entries, key=lambda pair: float(pair[0]["max_relative"]))
    if not float(entry["max_relative"]):
        return f"exact in {len(cases)} cases"
    place = ", ".join(str(index) for index in entry["place"])
    error = f"{float(entry['max_relative']):.1e} "
    return Text.assemble(error, (f"{case.workload_text} {entry['output']}[{place}]", "dim"))
