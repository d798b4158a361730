"""`--tuned/--untuned`: whether a measuring command launches cases by the choices kept for this machine."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from prism_bench import options
from prism_bench.case import Case

TunedOption = Annotated[
    bool, typer.Option("--tuned/--untuned", help="launch as prism-bench tune found best here, or as the specs say")
]
STORE = Path("reports/tuning")


def configured(cases: Sequence[Case], backend, tuned: bool):
    """The cases as they are launched on the backend, open or named; remarks go to standard error."""
    from prism_bench.backends import open_backend
    from prism_bench.identity import machine
    from prism_bench.tuning.applied import TuningMachine, applied, untuned

    if not tuned:
        return untuned(cases)
    opened = open_backend(backend) if isinstance(backend, str) else backend
    facts = opened.facts()
    found = applied(cases, TuningMachine(machine(facts)["id"], facts, opened.name, opened.device), STORE)
    for note in found.notes:
        options.err().print(note, highlight=False, soft_wrap=True)
    return found
