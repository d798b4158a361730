"""`prism-bench select`: the fastest form, window or batch, as measured on this machine."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prism_bench.cli import measuring, options
from prism_bench.cli.measuring import progress_bar
from prism_bench.cli.options import TimeoutOption
from prism_bench.errors import ResultsError, UsageError, unknown
from prism_bench.io import files
from prism_bench.io.files import Saver

if TYPE_CHECKING:
    from prism_bench.workflows.tuning.crossover import Measured


_PoliciesArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[CASES]...", help="Choose matmul, windows or batches; default: all.")
]


def command(
    policies: _PoliciesArgument = None,
    filter: options.FilterOption = None,
    measure: Annotated[bool, typer.Option("--measure", help="Measure first, and keep the results.")] = False,
    shape: Annotated[str | None, typer.Option(help="Pick the form of a product m x k x n, such as 512x64x512.")] = None,
    operands: Annotated[str, typer.Option(help="Multiply operands of float32 or float16.")] = "float32",
    tolerance: Annotated[float, typer.Option(min=0, help="Allow this error, relative to the largest element.")] = 1e-3,
    backend: options.BackendOption = None,
    catalogue: options.CatalogueOption = None,
    processes: measuring.ProcessesOption = 3,
    timeout: TimeoutOption = 60.0,
    store: Annotated[Path, typer.Option(help="Set the folder of measured policies.")] = Path("reports/tuning"),
    json: options.JsonOption = False,
) -> None:
    """Show which form of a product, window or batch is best here.

    The measured policy for products of matrices, entropy windows and LSTM batches.
    """
    from prism_bench.extensions.pipelines.policies.measuring import PARTS, PolicyMeasurement, keep
    from prism_bench.workflows.tuning_session import Bench

    parts = tuple(options.patterns(policies, filter)) or PARTS
    for part in parts:
        if part not in PARTS:
            raise unknown("policy", part, PARTS)
    products = {"operands": operands, "tolerance": tolerance, "shape": _shape(shape)}
    name = options.choose_backend(backend, quiet=json).name
    if not measure:
        _show(_stored(name, store), parts, products, json=json)
        raise SystemExit(0)
    save: Saver[Measured, Path] = Saver(lambda measured: keep(measured, store))
    bench = Bench(name, options.open_catalogue(catalogue), timeout)
    with files.held():
        with progress_bar() as report:
            measured, left = PolicyMeasurement(bench, processes, report).parts(parts, save.finish)
        _show(measured if save.problem else _stored(name, store), parts, products, json=json)
        for case, reason in left.items():
            options.remark(f"left out: {case}: {reason}")
        raise SystemExit(save.exit_code(2 if left else 0))


def _show(measured: "Measured", parts: Sequence[str], products: Mapping[str, Any], *, json: bool) -> None:
    """Print the measured policies and their choices."""
    from prism_bench.report.plain import measured_json
    from prism_bench.report.terminal.tuning import measured_view

    options.show(
        lambda: measured_json(measured, parts, **products),
        lambda: measured_view(measured, parts, **products),
        json=json,
    )


def _shape(text: str | None) -> dict[str, int] | None:
    """Return m, k and n."""
    if text is None:
        return None
    sizes = text.lower().replace(" ", "").split("x")
    if len(sizes) != 3 or not all(size.isdigit() and int(size) for size in sizes):
        raise UsageError(f"--shape {text}: write m x k x n, such as 512x64x512")
    return dict(zip(("m", "k", "n"), map(int, sizes), strict=True))


def _stored(backend: str, folder: Path) -> "Measured":
    """Return the policies measured on this machine; ResultsError without any, or with those of another device."""
    from prism_bench.backends import open_backend
    from prism_bench.record.identity import machine
    from prism_bench.workflows.tuning.crossover import path_for, read_measured

    facts = open_backend(backend).facts()
    path = path_for(machine(facts)["id"], folder)
    measured = read_measured(path)
    if measured is None:
        raise ResultsError(f"{path}: nothing was measured here yet; prism-bench select --measure does")
    if (measured.device, measured.backend) != (facts["device"], backend):
        there, here = f"{measured.device} ({measured.backend})", f"{facts['device']} ({backend})"
        raise ResultsError(f"{path}: measured on {there}, not on {here}; prism-bench select --measure does it here")
    return measured
