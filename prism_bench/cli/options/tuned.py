"""`--tuned/--untuned`: whether a measuring command launches cases by the choices kept for this machine."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prism_bench.cli import options
from prism_bench.cli.options.announcement import DescribedBackend
from prism_bench.io import project
from prism_bench.spec.case import Case

if TYPE_CHECKING:
    from prism_bench.workflows.tuning.applied import Applied

TunedOption = Annotated[
    bool, typer.Option("--tuned/--untuned", help="Launch as prism-bench tune found best here, or as the specs do.")
]
STORE = Path("reports/tuning")


def configured(cases: Sequence[Case], backend: DescribedBackend | str, tuned: bool) -> "Applied":
    """Return the cases as they are launched on the backend, open or named; print remarks on standard error."""
    from prism_bench.backends import open_backend
    from prism_bench.record.identity import machine
    from prism_bench.workflows.tuning.applied import TuningMachine, applied, untuned

    if not tuned:
        return untuned(cases)
    opened = open_backend(backend) if isinstance(backend, str) else backend
    facts, folder = opened.facts(), project.stored(STORE, project.current())
    found = applied(cases, TuningMachine(machine(facts)["id"], facts, opened.name, opened.device), folder)
    for note in found.notes:
        options.remark(note)
    return found
