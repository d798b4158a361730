"""Cases as they are launched by the choices of this machine: what was chosen, where from, and what is stale."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prism_bench.errors import SpecError
from prism_bench.spec.case import Case, Device
from prism_bench.units import count_text
from prism_bench.workflows.tuning.choice import TuningChoice, toolchain_of
from prism_bench.workflows.tuning.kept import DEFAULT_FOLDER, KeptChoices, path_for, read_kept
from prism_bench.workflows.tuning.launched import launched


@dataclass(frozen=True)
class Applied:
    """Configured cases.

    `facts` is what a run record keeps: `asked`, then `store`, `choices` by case (with the workload that each was found
    at) and reasons by case for those that are `stale`.
    """

    cases: tuple[Case, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def notes(self) -> list[str]:
        """What a person should know of it."""
        if self.facts.get("unused"):
            return [f"untuned: {self.facts['unused']}"]
        stale = self.facts.get("stale", {})
        count = len(self.facts.get("choices", {}))
        lines = [f"tuned: {count} of {count_text(len(self.cases), 'case')} by {self.facts['store']}"] if count else []
        few = "; ".join(f"{name}: {reason}" for name, reason in list(stale.items())[:3])
        more = f" and {len(stale) - 3} more" if len(stale) > 3 else ""
        return lines + ([f"stale choices, the default is launched: {few}{more}; prism-bench tune"] if stale else [])


@dataclass(frozen=True)
class TuningMachine:
    """Whose choices are wanted: its `id`, the device's `facts`, the `backend`, and what launches may ask of it."""

    id: str
    facts: Mapping[str, Any]
    backend: str
    device: Device


def untuned(cases: Sequence[Case]) -> Applied:
    """Return the cases as their specs launch them."""
    return Applied(tuple(cases), {"asked": "untuned"})


def applied(cases: Sequence[Case], machine: TuningMachine, folder: Path = DEFAULT_FOLDER) -> Applied:
    """Return the cases by the choices kept in `folder` for the machine; defaults where there is none, or a stale one.

    A ResultsError where the store cannot be read.
    """
    path = path_for(machine.id, folder)
    kept = read_kept(path)
    if kept is None:
        return Applied(tuple(cases), {"asked": "tuned"})
    misfit = kept.misfit(machine.facts.get("device", ""), machine.backend)
    if misfit:
        return Applied(tuple(cases), {"asked": "tuned", "store": str(path), "unused": misfit})
    found = [_one(case, kept, machine) for case in cases]
    facts = {
        "asked": "tuned", "store": str(path), "choices": {case.name: facts for case, facts, _ in found if facts},
        "stale": {case.name: stale for case, _, stale in found if stale},
    }  # fmt: skip
    return Applied(tuple(case for case, _, _ in found), facts)


def _one(case: Case, kept: KeptChoices, machine: TuningMachine) -> tuple[Case, dict[str, Any] | None, str | None]:
    """Return the configured case, its choice as a record keeps it, and why an existing choice is not used."""
    if not case.tunable or case.plan.refusal(machine.device):
        return case, None, None
    toolchain = toolchain_of(machine.facts)
    choice, how = kept.nearest(case.kernel, case.workload, toolchain)
    if choice is None:
        return case, None, None
    stale = choice.stale(launched(case.spec), toolchain)
    if stale:
        return case, None, stale
    try:
        configured = _configured(case, choice)
    except SpecError as error:
        return case, None, str(error)
    if configured.plan.broken(machine.device):
        return case, None, None
    facts = {"configuration": configured.configuration, "by": how, "tuned_at": dict(choice.workload)}
    return configured, facts | {"created": choice.created}, None


def _configured(case: Case, choice: TuningChoice) -> Case:
    usual = case.configuration
    return case.configured({name: value for name, value in choice.configuration.items() if usual.get(name) != value})
