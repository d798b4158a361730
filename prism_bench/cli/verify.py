"""`prism-bench verify`: are the kernels right?"""

from rich.table import Table

from prism_bench.cli import options
from prism_bench.cli.progress import progress_bar

NAME = "verify"


def command(
    filter: options.FilterOption = None,
    label: options.LabelOption = None,
    backend: options.BackendOption = None,
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Verify edges, golden data and workloads against the float64 references. Labels default to S0 off the GPU, all on it."""
    from prism_bench import workbench

    opened = options.choose_backend(backend, quiet=json)
    found = options.open_catalogue(catalogue)
    labels = options.chosen_labels(label, ("S0", "S1", "S2") if opened.name == "cuda" else ("S0",))
    cases = found.cases(filter or (), labels)
    del opened
    with progress_bar() as report:
        record = workbench.run(found, backend_name(backend), cases, workbench.Settings(processes=1), report, timed=False)
    if json:
        options.print_json([_plain(case) for case in record.cases])
    else:
        _print(record)
    bad = [case for case in record.cases if case.status not in ("ok", "skipped")]
    if bad or found.problems or not record.complete:
        raise SystemExit(1)


def backend_name(asked):
    """The backend's name, as `open_default` chooses it where none was asked for."""
    from prism_bench.backends import open_default

    return asked or open_default()[0].name


def _plain(case):
    return {"name": case.name, "label": case.label, "status": case.status, "reason": case.reason,
            "verification": list(case.verification)}  # fmt: skip


def _print(record):
    console = options.out()
    table = Table(title=f"verified on {record.backend}", title_justify="left")
    for name in ("kernel", "checked", "wrong", "largest relative error", "where"):
        table.add_column(name, justify="left" if name in ("kernel", "where") else "right", overflow="fold")
    for kernel, cases in _by_kernel(record).items():
        table.add_row(kernel, *_row(cases))
    console.print(table)
    for case in record.cases:
        if case.status != "ok":
            console.print(f"[red]{case.status}[/] ", end="")
            console.print(case.reason, markup=False, highlight=False, soft_wrap=True)


def _by_kernel(record):
    groups = {}
    for case in sorted(record.cases, key=lambda case: (case.family, case.kernel, case.variant or "")):
        groups.setdefault(f"{case.kernel}:{case.variant}" if case.variant else case.kernel, []).append(case)
    return groups


def _row(cases):
    wrong = sum(case.status not in ("ok", "skipped") for case in cases)
    entries = [(entry, case) for case in cases for entry in case.verification if entry.get("compared")]
    if not entries:
        return str(len(cases)), str(wrong), "-", "-"
    entry, case = max(entries, key=lambda pair: float(pair[0]["max_relative"]))
    place = ", ".join(str(index) for index in entry["place"])
    return str(len(cases)), str(wrong), f"{float(entry['max_relative']):.1e}", f"{case.name} {entry['output']}[{place}]"
