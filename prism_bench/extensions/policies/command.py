"""`prism-bench select`: which form, window or batch, by what was measured here."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from prism_bench import interrupts, options
from prism_bench.errors import ResultsError, UsageError, unknown
from prism_bench.options import pairs
from prism_bench.options.progress import progress_bar
from prism_bench.saving import Saver

NAME = "select"


def command(
    part: Annotated[str | None, typer.Argument(help="matmul, windows or batches; all of them without any")] = None,
    measure: Annotated[bool, typer.Option("--measure", help="measure first, and keep what was found")] = False,
    shape: Annotated[str | None, typer.Option(help="of a product, m x k x n, such as 512x64x512: which form?")] = None,
    operands: Annotated[str, typer.Option(help="what the product is given: float32 or float16")] = "float32",
    tolerance: Annotated[float, typer.Option(min=0, help="error allowed, relative to the largest element")] = 1e-3,
    backend: options.BackendOption = None,
    catalogue: options.CatalogueOption = None,
    processes: pairs.ProcessesOption = 3,
    timeout: Annotated[float, typer.Option(min=1, help="seconds one case may take")] = 60.0,
    store: Annotated[Path, typer.Option(help="where measured policies are kept")] = Path("reports/tuning"),
    json: options.JsonOption = False,
) -> None:
    """Say which form of a product, window or batch is best here.

    The measured policy for products of matrices, entropy windows and LSTM batches.
    """
    from prism_bench.report.terminal.policies import Asked

    parts = _parts(part)
    asked = Asked(parts, operands, tolerance, _shape(shape))
    name = options.choose_backend(backend, quiet=json).name
    if not measure:
        _show(_stored(name, store), asked, json)
        raise SystemExit(0)
    from prism_bench.extensions.policies.measuring import keep

    save = Saver(lambda found: keep(found, store))
    with interrupts.held():
        found, left = _measured(name, catalogue, parts, (processes, timeout), save=save)
        _show(found if save.problem else _stored(name, store), asked, json)
        for case, reason in left.items():
            options.err().print(f"left out: {case}: {reason}", highlight=False, soft_wrap=True)
        raise SystemExit(save.exit_code(2 if left else 0))


def _show(found, asked, json):
    """Print what was measured, and what follows from it."""
    from prism_bench.report.terminal.policies import measured_json, measured_view

    if json:
        options.print_json(measured_json(found, asked))
    else:
        options.out().print(measured_view(found, asked))


def _measured(name, catalogue, parts, how, *, save):
    """Measure the parts and save each as soon as it is there; returns them, and why cases or parts have no time."""
    from prism_bench.extensions.policies import measuring as selecting
    from prism_bench.studies.trials import Bench

    processes, timeout = how
    bench = Bench(name, options.open_catalogue(catalogue), timeout)
    found = None
    with progress_bar() as report:
        measuring = selecting.Measuring(bench, processes, report)
        for part in parts:
            try:
                with interrupts.allowed():
                    measured = measuring.part(part)
            except KeyboardInterrupt:
                if found is None:
                    raise
                return found, {**measuring.left, part: "interrupted"}
            found = replace(found, **{part: getattr(measured, part)}) if found else measured
            save.finish(found)
    return found, measuring.left


def _parts(part):
    from prism_bench.extensions.policies.measuring import PARTS

    if part is not None and part not in PARTS:
        raise unknown("policy", part, PARTS)
    return (part,) if part else PARTS


def _shape(text):
    if text is None:
        return None
    sizes = text.lower().replace(" ", "").split("x")
    if len(sizes) != 3 or not all(size.isdigit() and int(size) for size in sizes):
        raise UsageError(f"--shape {text}: write m x k x n, such as 512x64x512")
    return dict(zip(("m", "k", "n"), map(int, sizes), strict=True))


def _stored(backend, folder):
    """What was measured on this machine, refused where that was another device."""
    from prism_bench.backends import open_backend
    from prism_bench.identity import machine
    from prism_bench.tuning.measured import path_for, read_measured

    facts = open_backend(backend).facts()
    path = path_for(machine(facts)["id"], folder)
    found = read_measured(path)
    if found is None:
        raise ResultsError(f"{path}: nothing was measured here yet; prism-bench select --measure does")
    if (found.device, found.backend) != (facts["device"], backend):
        own, other = f"{found.device} ({found.backend})", f"{facts['device']} ({backend})"
        raise ResultsError(f"{path}: measured on {own}, not on {other}; prism-bench select --measure does it here")
    return found
