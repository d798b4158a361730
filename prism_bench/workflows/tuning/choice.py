"""Choices: what to launch for a case on this machine, kept on disk and applied to runs."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import inf, log2
from pathlib import Path
from typing import Any

from prism_bench.compilation.languages import source_hash
from prism_bench.errors import SpecError
from prism_bench.io.files import Schema, family_folder, four_digits, path_part, python_shared_with
from prism_bench.spec.case import Case, Device
from prism_bench.spec.kernel import KernelSpec
from prism_bench.spec.peer import as_call
from prism_bench.units import count_text
from prism_bench.workflows.tuning.code_of import CodeWords

# Sizes in classes: what was found out at one workload holds for those near it.

REACH = 2.0  # doublings: a workload four times as large on some axis has another best configuration


def bucket(size: int) -> int:
    """Return the class of a size by the design documents.

    Steps are 100 below 1000, 1000 below 10,000, 10,000 below 100,000, then 100,000.
    """
    step = next((step for step in (100, 1000, 10_000) if size < 10 * step), 100_000)
    return size // step * step


def bucket_of(workload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the classes of a workload's axes. A size below the first class is its own class: nine taps are not 60."""
    return {axis: bucket(value) or value if _is_size(value) else value for axis, value in workload.items()}


def distance(one: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """Return the doublings between two workloads on the axis where they differ most; infinite for different axes."""
    if set(one) != set(other):
        return inf
    return max((_apart(one[axis], other[axis]) for axis in one), default=0.0)


def _apart(one: Any, other: Any) -> float:
    if one == other:
        return 0.0
    if not (_is_size(one) and _is_size(other)) or min(one, other) <= 0:
        return inf
    return abs(log2(one / other))


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


# Choices: what to launch for a case, what the default costs, and when a choice is stale.

_TOOLCHAIN = ("driver", "nvrtc", "compiler")


@dataclass(frozen=True)
class TuningChoice:
    """One kernel (with its variant) at one workload, launched in `configuration` or by `default`.

    `seconds` are the medians of the default and of the configuration; `speedup` is the default's time over the
    configuration's with its 95 % `interval`, both 1 where the default is kept. `tried` configurations were launched,
    `refused` of them were wrong or failed. `source` is a hash of what is launched, `toolchain` what turned it into
    machine code and ran it.
    """

    kernel: str
    workload: Mapping[str, object]
    configuration: Mapping[str, object]
    default: Mapping[str, object]
    seconds: tuple[float, float]
    speedup: float
    interval: tuple[float, float]
    reason: str
    tried: int
    refused: int
    source: str
    toolchain: Mapping[str, str]
    created: str
    commit: str | None = None

    @property
    def adopted(self) -> bool:
        """Whether something else than the default is launched."""
        return dict(self.configuration) != dict(self.default)

    @property
    def bucket(self) -> dict:
        """The size class that it holds for."""
        return bucket_of(self.workload)

    @property
    def key(self) -> tuple:
        """What a newer choice replaces: the same kernel, size class and toolchain."""
        return self.kernel, tuple(self.bucket.items()), tuple(sorted(self.toolchain.items()))

    def stale(self, source: str, toolchain: Mapping[str, str]) -> str | None:
        """Return why the choice does not hold for this source under this toolchain; None if it does."""
        changed = [
            f"{name} {self.toolchain.get(name, '-')} became {value}"
            for name, value in toolchain.items()
            if self.toolchain.get(name) != value
        ]
        changed += ["the source changed"] if source != self.source else []
        return ", ".join(changed) or None


def toolchain_of(facts: Mapping) -> dict[str, str]:
    """Return what turns a source into machine code and runs it, with its version, from a device's facts."""
    software = facts.get("software", {})
    found = {name: str(software[name]) for name in _TOOLCHAIN if software.get(name)}
    capability = facts.get("compute_capability")
    return found | ({"compute_capability": str(capability)} if capability else {})


# The choices of one machine on disk, and the look-up that measuring commands use.
#
# KeptChoices in `reports/tuning/<machine>.json`, so that tuning a few cases again leaves the others alone:
#
#     schema, machine, device, backend     whose choices these are
#     choices     list of objects with the fields of `choice.Choice`, sorted by kernel and workload

_SCHEMA = Schema("a store of choices", 1, "prism-bench tune")
DEFAULT_FOLDER = Path("reports/tuning")
_LISTS = ("seconds", "interval")


@dataclass(frozen=True)
class KeptChoices:
    """All choices of one machine's device and backend."""

    machine: str
    device: str
    backend: str
    choices: tuple[TuningChoice, ...] = ()

    def misfit(self, device: str, backend: str) -> str | None:
        """Why these choices say nothing about that device; None where they do."""
        for word, own, other in (("device", self.device, device), ("backend", self.backend, backend)):
            if own != other:
                return f"the stored choices are of {word} {own}, not {other}: none is used"
        return None

    def nearest(
        self, kernel: str, workload: Mapping[str, Any], toolchain: Mapping[str, str]
    ) -> tuple[TuningChoice | None, str]:
        """Return the choice for a workload and how it was found.

        It is that of the size class, else of the nearest within `REACH` doublings on every axis. Among equals those of
        this toolchain come first, then the newest.
        """
        near = [(distance(one.workload, workload), one) for one in self.choices if one.kernel == kernel]
        same = [one for _, one in near if one.bucket == bucket_of(workload)]
        if same:
            return max(same, key=lambda one: (dict(one.toolchain) == dict(toolchain), one.created)), "size class"
        reached = [(apart, one) for apart, one in near if apart <= REACH]
        if not reached:
            return None, "nothing near was tuned"
        least = min(apart for apart, _ in reached)
        among = [one for apart, one in reached if apart == least]
        return max(among, key=lambda one: (dict(one.toolchain) == dict(toolchain), one.created)), "nearest size class"

    def with_choices(self, found: Iterable[TuningChoice]) -> "KeptChoices":
        """Return these choices and `found`, which replace those with the same key."""
        by_key = {one.key: one for one in [*self.choices, *found]}
        ordered = sorted(by_key.values(), key=lambda one: (one.kernel, str(one.workload), one.created))
        return KeptChoices(self.machine, self.device, self.backend, tuple(ordered))


def path_for(machine: str, folder: Path = DEFAULT_FOLDER) -> Path:
    """Where the choices of the machine of that id are kept."""
    return folder / f"{path_part(machine)}.json"


def read_kept(path: Path) -> KeptChoices | None:
    """Return the choices at `path`, None where there is no such file; a ResultsError names what is damaged."""
    data = _SCHEMA.read(path)
    if data is None:
        return None
    try:
        whose = {key: str(data[key]) for key in ("machine", "device", "backend")}
        choices = _SCHEMA.kind_of(data["choices"], tuple[TuningChoice, ...], path)
    except KeyError as error:
        raise _SCHEMA.damaged(path, error) from error
    return KeptChoices(**whose, choices=choices)


def write_kept(kept: KeptChoices, path: Path) -> Path:
    """Keep the choices at `path`, whole or not at all; returns the path."""
    plain = {"machine": kept.machine, "device": kept.device, "backend": kept.backend}
    return _SCHEMA.write(path, plain | {"choices": [_encoded(one) for one in kept.choices]})


def _encoded(choice: TuningChoice) -> dict[str, Any]:
    plain = asdict(choice)
    return plain | {name: four_digits(plain[name]) for name in (*_LISTS, "speedup")}


# Identity of what is launched: a hash of the kernel's source with its headers, and of what its launch depends on.
#
# A choice that was made for one hash is stale for another. References, peers, edges, workloads, inputs, budgets,
# tolerances, comments, docstrings and annotations are no part of it.

_FIELDS = ("entry", "launch", "derived", "parameters", "options", "requires", "tune")


def launched(spec: KernelSpec) -> str:
    """Return the hash of the source, its own headers, the signature and the fields of the spec that launches use.

    What their functions use of the catalogue's Python is hashed with them, name by name.
    """
    source = spec.source_path
    assert source is not None, f"{spec.name} comes from no catalogue"
    digest = hashlib.sha256(source_hash(source).encode())
    words = CodeWords((family_folder(source).parent, *python_shared_with(source)))
    passed = [(type(one).__name__, one.name, getattr(one, "shape", None), one.dtype) for one in spec.arguments]
    parts: dict[str, object] = {"arguments": passed, **{field: getattr(spec, field) for field in _FIELDS}}
    if spec.callable is not None:
        parts["callable"] = as_call(spec.callable).function
    for name, value in parts.items():
        digest.update(f"{name}=".encode())
        for word in words.of(value):
            digest.update(f"{word}\n".encode())
    return digest.hexdigest()[:16]


# Cases as they are launched by the choices of this machine: what was chosen, where from, and what is stale.


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
        "asked": "tuned",
        "store": str(path),
        "choices": {case.name: facts for case, facts, _ in found if facts},
        "stale": {case.name: stale for case, _, stale in found if stale},
    }
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
