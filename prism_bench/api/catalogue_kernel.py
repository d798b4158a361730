"""A catalogue kernel as a Python callable."""

from pathlib import Path
from typing import Literal

from prism_bench.api.online import OnlineRunnable
from prism_bench.backends import Backend, Runnable, open_backend
from prism_bench.catalogue import of_project
from prism_bench.errors import unknown
from prism_bench.io import project
from prism_bench.record.identity import machine
from prism_bench.spec.case import Case
from prism_bench.workflows.tuning.applied import TuningMachine, applied
from prism_bench.workflows.tuning.kept import DEFAULT_FOLDER
from prism_bench.workflows.tuning.online import OnlineTuner


def prepare(
    kernel: str, label: str = "S0", *, backend: str = "cuda", variant: str | None = None, catalogue: Path | None = None,
    seed: int = 0, tuned: Path | str | bool = True, online: OnlineTuner | None = None,
) -> Runnable:  # fmt: skip
    """Return the kernel at its workload `label`, prepared: call it to launch it, `.arrays(names)` gives its buffers.

    `tuned` launches it by the choices kept for this machine in `reports/tuning` or the folder given; False by its spec.
    The kernel is one of `catalogue`, by default of the project that the current folder configures, else a built-in one.
    With `online` it tunes itself instead: each call is timed, and that tuner chooses how to launch the next one.

    Raises UsageError for an unknown kernel, variant or label, BackendUnavailable where the backend cannot be opened.
    """
    found = of_project(catalogue)
    spec = found.kernel(kernel)
    if variant:
        spec.with_variant(variant)
    word = f"{spec.name}:{variant}" if variant else spec.name
    cases = [case for case in found.cases([word], [label]) if case.variant == variant]
    if not cases:
        raise unknown(f"label of {word}", label, spec.workloads)
    opened = open_backend(backend)
    if online is not None:
        return OnlineRunnable(opened, cases[0], online)
    case = cases[0] if tuned is False else _launched(cases[0], opened, tuned)
    return opened.prepare(case, case.inputs(seed))


def _launched(case: Case, opened: Backend, tuned: Path | str | Literal[True]) -> Case:
    facts = opened.facts()
    folder = project.stored(DEFAULT_FOLDER, project.current()) if tuned is True else Path(tuned)
    return applied([case], TuningMachine(machine(facts)["id"], facts, opened.name, opened.device), folder).cases[0]
