"""Choices: the configuration to launch for a case on this machine, kept on disk and applied to runs."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import inf, log2
from pathlib import Path
from typing import Any

from prism_bench.compilation.languages import source_hash
from prism_bench.errors import SpecError
from prism_bench.io.documents import Schema, four_digits
from prism_bench.io.files import family_folder, path_part, python_shared_with
from prism_bench.spec.case import Case, Device
from prism_bench.spec.kernel import KernelSpec
from prism_bench.spec.peer import as_call
from prism_bench.units import count_text
from prism_bench.workflows.tuning.code_of import CodeWords

# Size classes: a choice for a workload holds for those near it.

REACH = 2.0  # doublings: a workload four times as large on some axis has a different best configuration


def bucket(size: int) -> int:
    """Return the class of a size by the design documents.

    Steps are 100 below 1000, 1000 below 10,000, 10,000 below 100,000, then 100,000.
    """
    step = next((step for step in (100, 1000, 10_000) if size < 10 * step), 100_000)
    return size // step * step


def bucket_of(workload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the classes of a workload's axes. A size below the first class is its own class: nine taps are not 60."""
    return {axis: bucket(value) or value if _is_size(value) else value for axis, value in workload.items()}


def distance(workload: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """Return the doublings between two workloads on the axis where they differ most; infinite for different axes."""
    if set(workload) != set(other):
        return inf
    farthest = 0.0
    for axis, size in workload.items():
        if size != other[axis]:
            if not (_is_size(size) and _is_size(other[axis])) or min(size, other[axis]) <= 0:
                return inf
            farthest = max(farthest, abs(log2(size / other[axis])))
    return farthest


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_TOOLCHAIN = ("driver", "nvrtc", "compiler")


@dataclass(frozen=True)
class TuningChoice:
    """One kernel (with its variant) at one workload, launched in `configuration` or by `default`.

    `seconds` are the medians of the default and of the configuration. `least` is what the configuration was chosen by,
    `time` or `energy`; by energy the `joules` of a launch are known, too, and the seconds are those of the search.
    `speedup` is the default's value over the configuration's, in what was least, with its 95 % `interval`, both 1 where
    the default is kept. `tried` configurations were launched,
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
    least: str = "time"
    joules: tuple[float, float] | None = None

    @property
    def adopted(self) -> bool:
        """Whether a configuration other than the default is launched."""
        return dict(self.configuration) != dict(self.default)

    @property
    def bucket(self) -> dict:
        """The size class for which the choice holds."""
        return bucket_of(self.workload)

    @property
    def key(self) -> tuple:
        """The key under which a newer choice replaces this: kernel, size class and toolchain."""
        return self.kernel, tuple(self.bucket.items()), tuple(sorted(self.toolchain.items()))

    def stale(self, source: str, toolchain: Mapping[str, str]) -> str | None:
        """Return why the choice does not hold for this source and toolchain; None if it does."""
        changed = [
            f"{name} {self.toolchain.get(name, '-')} became {value}"
            for name, value in toolchain.items()
            if self.toolchain.get(name) != value
        ]
        changed += ["the source changed"] if source != self.source else []
        return ", ".join(changed) or None


def toolchain_of(facts: Mapping) -> dict[str, str]:
    """Return the versions of what compiles and runs a source, from a device's facts."""
    software = facts.get("software", {})
    versions = {name: str(software[name]) for name in _TOOLCHAIN if software.get(name)}
    capability = facts.get("compute_capability")
    return versions | ({"compute_capability": str(capability)} if capability else {})


# The store of a machine, `reports/tuning/<machine>.json`:
#
#     schema, machine, device, backend     whose choices these are
#     choices     list of objects with the fields of `TuningChoice`, sorted by kernel and workload

_SCHEMA = Schema("a store of choices", 1, "prism-bench tune")
DEFAULT_FOLDER = Path("reports/tuning")
_ROUNDED = ("seconds", "interval", "speedup", "joules")  # fields kept with four digits


@dataclass(frozen=True)
class KeptChoices:
    """All choices of one machine's device and backend."""

    machine: str
    device: str
    backend: str
    choices: tuple[TuningChoice, ...] = ()

    def misfit(self, device: str, backend: str) -> str | None:
        """Return why these choices do not apply to that device and backend; None if they do."""
        for word, mine, other in (("device", self.device, device), ("backend", self.backend, backend)):
            if mine != other:
                return f"the stored choices are of {word} {mine}, not {other}: none is used"
        return None

    def nearest(
        self, kernel: str, workload: Mapping[str, Any], toolchain: Mapping[str, str]
    ) -> tuple[TuningChoice | None, str]:
        """Return the choice for a workload and how it was found.

        It is that of the size class, else of the nearest within `REACH` doublings on every axis. Among equals those of
        this toolchain come first, then the newest.
        """

        def rank(choice: TuningChoice) -> tuple[bool, str]:
            return dict(choice.toolchain) == dict(toolchain), choice.created

        near = [(distance(choice.workload, workload), choice) for choice in self.choices if choice.kernel == kernel]
        same = [choice for _, choice in near if choice.bucket == bucket_of(workload)]
        if same:
            return max(same, key=rank), "size class"
        least = min((apart for apart, _ in near), default=inf)
        if least > REACH:
            return None, "nothing near was tuned"
        return max((choice for apart, choice in near if apart == least), key=rank), "nearest size class"

    def with_choices(self, choices: Iterable[TuningChoice]) -> "KeptChoices":
        """Return the store with `choices` added, which replace those with the same key."""
        by_key = {choice.key: choice for choice in [*self.choices, *choices]}
        ordered = sorted(by_key.values(), key=lambda choice: (choice.kernel, str(choice.workload), choice.created))
        return KeptChoices(self.machine, self.device, self.backend, tuple(ordered))


def path_for(machine: str, folder: Path = DEFAULT_FOLDER) -> Path:
    """Return the path of the choices of the machine with that id."""
    return folder / f"{path_part(machine)}.json"


def read_kept(path: Path) -> KeptChoices | None:
    """Return the choices at `path`, None if the file is missing; ResultsError if it is damaged."""
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
    """Write the choices to `path` atomically; return the path."""
    choices: list[dict[str, Any]] = []
    for choice in kept.choices:
        plain = asdict(choice)
        choices.append(plain | {name: four_digits(plain[name]) for name in _ROUNDED if plain[name] is not None})
    whose = {"machine": kept.machine, "device": kept.device, "backend": kept.backend}
    return _SCHEMA.write(path, {**whose, "choices": choices})


# The hash of what is launched: a choice made for another hash is stale. References, peers, edges, workloads, inputs,
# budgets, tolerances, comments, docstrings and annotations do not count.

_FIELDS = ("entry", "launch", "derived", "parameters", "options", "requires", "tune")


def launched(spec: KernelSpec) -> str:
    """Return the hash of the source, its own headers, the signature and the fields of the spec that launches use.

    The parts of the catalogue's Python that their functions use are hashed with them, name by name.
    """
    source = spec.source_path
    assert source is not None, f"{spec.name} comes from no catalogue"
    digest = hashlib.sha256(source_hash(source).encode())
    code_words = CodeWords((family_folder(source).parent, *python_shared_with(source)))
    passed = [
        (type(argument).__name__, argument.name, getattr(argument, "shape", None), argument.dtype)
        for argument in spec.arguments
    ]
    parts: dict[str, object] = {"arguments": passed, **{field: getattr(spec, field) for field in _FIELDS}}
    if spec.callable is not None:
        parts["callable"] = as_call(spec.callable).function
    for name, value in parts.items():
        digest.update(f"{name}=".encode())
        for word in code_words.of(value):
            digest.update(f"{word}\n".encode())
    return digest.hexdigest()[:16]


# Cases configured by the choices of this machine.


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
        """Notes for the user."""
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
    """Machine whose choices apply: its `id`, the device's `facts`, the `backend`, and the device's limits."""

    id: str
    facts: Mapping[str, Any]
    backend: str
    device: Device


def untuned(cases: Sequence[Case]) -> Applied:
    """Return the cases as their specs launch them."""
    return Applied(tuple(cases), {"asked": "untuned"})


def applied(cases: Sequence[Case], machine: TuningMachine, folder: Path = DEFAULT_FOLDER) -> Applied:
    """Return the cases by the choices kept in `folder` for the machine; defaults without a choice or with a stale one.

    Raises ResultsError if the store cannot be read.
    """
    path = path_for(machine.id, folder)
    kept = read_kept(path)
    if kept is None:
        return Applied(tuple(cases), {"asked": "tuned"})
    misfit = kept.misfit(machine.facts.get("device", ""), machine.backend)
    if misfit:
        return Applied(tuple(cases), {"asked": "tuned", "store": str(path), "unused": misfit})
    configured = [_configured(case, kept, machine) for case in cases]
    facts = {
        "asked": "tuned",
        "store": str(path),
        "choices": {case.name: facts for case, facts, _ in configured if facts},
        "stale": {case.name: stale for case, _, stale in configured if stale},
    }
    return Applied(tuple(case for case, _, _ in configured), facts)


def _configured(
    case: Case, kept: KeptChoices, machine: TuningMachine
) -> tuple[Case, dict[str, Any] | None, str | None]:
    """Return the configured case, its choice in the form of a record, and why an existing choice is not used."""
    if not case.tunable or case.plan.refusal(machine.device):
        return case, None, None
    toolchain = toolchain_of(machine.facts)
    choice, how = kept.nearest(case.kernel, case.workload, toolchain)
    if choice is None:
        return case, None, None
    stale = choice.stale(launched(case.spec), toolchain)
    if stale:
        return case, None, stale
    usual = case.configuration
    try:
        configured = case.configured(
            {name: value for name, value in choice.configuration.items() if usual.get(name) != value}
        )
    except SpecError as error:
        return case, None, str(error)
    if configured.plan.broken(machine.device):
        return case, None, None
    facts = {
        "configuration": configured.configuration,
        "by": how,
        "tuned_at": dict(choice.workload),
        "created": choice.created,
    }
    return configured, facts, None
