"""`prism-bench tune --policy`: the fastest form, window or batch, as measured on this machine."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from prism_bench.cli import measuring, options
from prism_bench.errors import unknown
from prism_bench.io import files, project
from prism_bench.io.files import Saver

if TYPE_CHECKING:
    from prism_bench.workflows.tuning.crossover import Measured


def policy(
    names: Sequence[str],
    tolerance: float,
    backend: str | None,
    catalogue: Path | None,
    processes: int,
    timeout: float,
    *,
    json: bool,
) -> int:
    """Measure the policies of these names, of all without names; keep and print them. Return the exit code.

    Products of matrices are within `tolerance` of the largest element; windows are those of an entropy, batches those
    of an LSTM. Cases without a time are left out, and the exit code is 2.
    """
    from prism_bench.extensions.pipelines.policies.measuring import PolicyMeasurement, keep
    from prism_bench.report.plain import measured_json
    from prism_bench.report.terminal.tuning import measured_view
    from prism_bench.workflows.tuning.crossover import MEASURED_PARTS
    from prism_bench.workflows.tuning_session import Bench

    for name in names:
        if name not in MEASURED_PARTS:
            raise unknown("policy", name, MEASURED_PARTS)
    parts = tuple(names) or MEASURED_PARTS
    store = project.stored(measuring.STORE, project.current())
    opened = options.choose_backend(backend, quiet=json).name
    save: Saver[Measured, Path] = Saver(lambda measured: keep(measured, store))
    bench = Bench(opened, options.open_catalogue(catalogue), timeout)
    with files.held():
        with measuring.progress_bar() as report:
            measured, left = PolicyMeasurement(bench, processes, report).parts(parts, save.finish)
        options.show(
            lambda: measured_json(measured, parts, tolerance),
            lambda: measured_view(measured, tolerance, parts),
            json=json,
        )
        for case, reason in left.items():
            options.remark(f"left out: {case}: {reason}")
        if save.kept and not json:
            options.line(f"policies: {save.kept}")
        return save.exit_code(2 if left else 0)
