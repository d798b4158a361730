"""`prism-bench traffic`: the bytes that a kernel's source requests, next to those that its spec declares."""

from dataclasses import asdict

from prism_bench.cli import options
from prism_bench.cli.options import CASE_SECONDS, TimeoutOption, limited

NAME = "traffic"


def command(
    cases: options.CasesArgument = None,
    filter: options.FilterOption = None,
    label: options.LabelOption = None,
    timeout: TimeoutOption = CASE_SECONDS,
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Count the memory traffic of each kernel on the emulator.

    Bytes, sectors and shared-memory wavefronts; label S0 by default.
    """
    from prism_bench.report.terminal.verification import traffic_view
    from prism_bench.workflows.traffic import traffic

    kernels = options.open_catalogue(catalogue)
    rows = []
    with options.err().status("counting") as status:
        for case in kernels.cases(options.patterns(cases, filter), options.chosen_labels(label, ("S0",))):
            status.update(case.name)
            with limited(case.name, timeout):
                rows.append(traffic(case))
    if json:
        options.print_json([asdict(row) for row in rows])
    else:
        options.out().print(traffic_view(rows), soft_wrap=False)
    raise SystemExit(1 if kernels.problems or any(row.complaint for row in rows) else 0)
