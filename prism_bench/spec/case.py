"""Case: a kernel, or one of its variants, at a workload, with its sizes and its host plan. Names of cases are read."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any

from prism_bench import display
from prism_bench.errors import SpecError, UsageError
from prism_bench.spec import arguments
from prism_bench.spec.correctness import Correctness
from prism_bench.spec.dtypes import precision_of
from prism_bench.spec.inputs import InputArray
from prism_bench.spec.kernel import CUDA, Array, Golden, KernelSpec, Launch, Requirement, Rule, Struct, Zero
from prism_bench.spec.kinds import Noun
from prism_bench.spec.launch import COMPILERS_BLOCK, Instance, Passed
from prism_bench.spec.workload import Edge, Workload, written
from prism_bench.units import bytes_text, rate_text


@dataclass(frozen=True)
class CaseSizes:
    """Sizes of one case. `axes` has the case's values by name."""

    spec: KernelSpec
    axes: Mapping[str, object]
    _shapes: dict[str, tuple[int, ...]] = field(
        default_factory=dict[str, tuple[int, ...]], init=False, repr=False, compare=False
    )

    def shape(self, argument: str) -> tuple[int, ...]:
        """Return the shape of a buffer."""
        if argument not in self._shapes:
            self._shapes[argument] = self.spec.array(argument).extents(self.axes)
        return self._shapes[argument]

    def elements(self, argument: str) -> tuple[str, int]:
        """Return the type of a buffer's elements and their number."""
        return self.spec.array(argument).dtype, prod(self.shape(argument))

    def nbytes(self, argument: str) -> int:
        """Return the bytes that a buffer takes."""
        return prod(self.shape(argument)) * self.spec.array(argument).storage.itemsize

    @property
    def allocated_bytes(self) -> int:
        """Device memory that all buffers of the case take."""
        return sum(self.nbytes(array.name) for array in self.spec.arrays)

    @property
    def bytes_moved(self) -> int:
        """Compulsory bytes: each input read once, each output written once, unless the spec has `bytes_moved`."""
        if self.spec.bytes_moved:
            return int(arguments.call(self.spec.bytes_moved, self.axes, f"{self.spec.name}: bytes_moved"))
        return sum(self.nbytes(array.name) * (array.reads + array.writes) for array in self.spec.arrays)

    @property
    def flops(self) -> int | None:
        """Floating-point operations, an FMA counting two; None if the spec gives no number."""
        if not self.spec.flops:
            return None
        return int(arguments.call(self.spec.flops, self.axes, f"{self.spec.name}: flops"))


@dataclass(frozen=True)
class Device(Noun):
    """Properties of a device that a launch may ask for."""

    sm_count: int = 4
    max_shared_bytes: int = 48 * 1024
    compute_capability: int = 90


@dataclass(frozen=True)
class HostPlan:
    """Plan of one case.

    `axes` has the case's values by name, `configuration` those that may be tuned; `case` is its name for errors.
    """

    spec: KernelSpec
    axes: Mapping[str, object]
    configuration: Mapping[str, object]
    case: str

    def steps(self, device: Device) -> tuple[Launch | Zero, ...]:
        """Return the launches and zero fills on `device`, in order."""
        plan: object = arguments.call(self.spec.launch, {**self.axes, "device": device}, f"{self.spec.name}: launch")
        returned: list[object] = [*plan] if isinstance(plan, tuple | list) else [plan]
        steps = tuple(step for step in returned if isinstance(step, Launch | Zero))
        others = [step for step in returned if not isinstance(step, Launch | Zero)]
        own_compiler = self.spec.language == CUDA and not self.spec.cards
        if own_compiler and any(isinstance(step, Launch) and step.block == COMPILERS_BLOCK for step in steps):
            raise SpecError(f"{self.case}: a launch in CUDA C++ needs the threads of a block: Launch(grid, block)")
        if others:
            raise SpecError(
                f"{self.case}: launch returned {others[0]!r:.60}, which is no Launch and no Zero "
                f"({arguments.defined_at(self.spec.launch)})"
            )
        return steps

    def instances(self, device: Device) -> tuple[Instance, ...]:
        """Return what the plan launches on `device`, as requests to its compiler, each once."""
        launches = [step for step in self.steps(device) if isinstance(step, Launch) and not step.is_empty]
        return tuple(dict.fromkeys(map(self.instance, launches)))

    def instance(self, step: Launch) -> Instance:
        """Return what a launch requests of its compiler: in CUDA C++ only the entry."""
        entry = step.entry or self.spec.entry
        if self.spec.language == CUDA:
            return Instance(entry)
        if self.spec.constants:
            raise SpecError(f"{self.case}: Constant '{self.spec.constants[0].name}' is for kernels in CUDA C++")
        names = self.spec.passed(step)
        return Instance(entry, tuple(map(self._passed, names)), step.constants)

    def entries(self, device: Device) -> tuple[str, ...]:
        """Return the functions that the plan launches on `device` as text, each once."""
        return tuple(map(str, self.instances(device)))

    def _passed(self, name: str) -> Passed:
        argument = self.spec.argument(name)
        if isinstance(argument, Array):
            return Passed(name, argument.dtype, pointer=True, fact="16", dimensions=len(argument.shape.split()))
        value = argument.value(self.axes)
        if isinstance(argument, Struct):
            raise SpecError(f"{self.case}: structure '{name}' is for kernels in CUDA C++, not in {self.spec.language}")
        if precision_of(argument.dtype) or value.dtype.kind not in "iu":
            return Passed(name, argument.dtype)
        return Passed(name, argument.dtype, fact="1" if value == 1 else "" if int(value) % 16 else "16")

    @property
    def requirement(self) -> Requirement | None:
        """Instructions of one compute capability that the case uses, or None."""
        needed = self.spec.requires
        return arguments.call(needed, self.axes, f"{self.spec.name}: requires") if callable(needed) else needed

    def refusal(self, device: Device) -> str | None:
        """Return why `device` cannot run the case, or None."""
        needed = self.requirement
        if needed is None or needed.compute_capability == device.compute_capability:
            return None
        return f"{needed.what}: for compute capability {needed.compute_capability}, not {device.compute_capability}"

    def broken(self, device: Device) -> Rule | None:
        """Return the rule of `tune` that the configuration breaks on `device`, or None."""
        offered = {**self.axes, "device": device}
        return self.spec.tune.broken(offered, self.case) if self.spec.tune else None

    def require_default(self, device: Device | None = None) -> None:
        """Raise a SpecError if the default breaks a rule, or is no value, of its spec's `tune`."""
        if self.spec.tune is None:
            return
        pinned = len(self.configuration) < len(self.spec.tunable)  # a pinned value need not keep the rules
        broken = None if pinned else self.broken(device or Device())
        values = self.spec.tune.values
        odd = [name for name, value in self.configuration.items() if value not in values[name]]
        if broken or odd:
            wanted = broken.text if broken else f"{odd[0]} among {', '.join(map(str, values[odd[0]]))}"
            raise SpecError(f"{self.case}: tune: the default {written(self.configuration)} needs {wanted}")


@dataclass(frozen=True, repr=False)
class Case:
    """A kernel at a workload: its identity and its configuration.

    `spec` is the kernel's, with the variant's changes already made; `label` is S0, S1, S2, edge or golden. `choice` has
    the values of the spec's `tune` that differ from their defaults; `edge` has fills that replace the usual ones.
    `sizes`, `plan` and `correctness` have what follows for its buffers, its launches and its outputs.
    """

    spec: KernelSpec
    workload: Workload
    label: str
    variant: str | None = None
    golden: Golden | None = field(default=None, compare=False)
    choice: Mapping[str, object] = field(default_factory=dict[str, object])
    edge: Edge | None = None

    def __post_init__(self) -> None:
        for rule in self.spec.rules:
            if not arguments.call(rule.holds, self.axes, f"{self.spec.name}: rule '{rule.text}'"):
                raise SpecError(f"{self.name}: needs {rule.text}")

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def kernel(self) -> str:
        """The kernel's name, with its variant: `pixel_entropy` or `pixel_entropy:naive`."""
        return f"{self.spec.name}:{self.variant}" if self.variant else self.spec.name

    @cached_property
    def name(self) -> str:
        """The case's identity: kernel, variant and every axis of the workload.

        Golden data are numbered, 0 for data that are not the spec's; an edge with its own fills has its name.
        """
        if self.edge:
            return f"{self.kernel}[{self.edge.name}: {self.workload}]"
        if self.golden is None:
            return f"{self.kernel}[{self.workload}]"
        number = next((i for i, golden in enumerate(self.spec.golden, 1) if golden is self.golden), 0)
        return f"{self.kernel}[golden {number}: {self.workload}]"

    @property
    def is_regime(self) -> bool:
        """Whether it is an edge that follows from the domains of the arguments."""
        return self.edge is not None and self.edge.regime

    @property
    def task(self) -> str:
        """The name, with the whole configuration if one was chosen: `softmax[rows=32,cols=1000]@block=128`."""
        return f"{self.name}@{written(self.configuration)}" if self.choice else self.name

    @cached_property
    def axes(self) -> Mapping[str, object]:
        """Parameters, workload, what may be tuned, and derived sizes, by name."""
        axes: dict[str, object] = {**self.spec.parameters, **self.workload}
        if self.spec.tune:
            axes = {**self.spec.tune.defaults(axes, self.spec.name), **axes, **self.choice}
        for name, function in self.spec.derived.items():
            axes[name] = arguments.call(function, axes, f"{self.spec.name}: derived '{name}'")
        return axes

    @cached_property
    def sizes(self) -> CaseSizes:
        """Shapes and bytes of the buffers, compulsory traffic and floating-point operations."""
        return CaseSizes(self.spec, self.axes)

    @cached_property
    def plan(self) -> HostPlan:
        """Launches and zero fills, and what they need of a device."""
        return HostPlan(self.spec, self.axes, self.configuration, self.name)

    @cached_property
    def correctness(self) -> Correctness:
        """Inputs, expected outputs and tolerances."""
        fills = self.edge.fills if self.edge else None
        return Correctness(self.spec, self.axes, self.name, self.golden, fills or {})

    def inputs(self, seed: int = 0) -> dict[str, InputArray]:
        """Return seeded inputs by name, the same on every backend; a golden case's own data whatever the seed."""
        return self.correctness.inputs(seed)

    @property
    def configuration(self) -> dict[str, object]:
        """The value of everything that may be tuned here, chosen or not."""
        return {name: self.axes[name] for name in self.tunable}

    @property
    def tunable(self) -> tuple[str, ...]:
        """The names of the spec's `tune` that vary here: neither a parameter nor the workload pins them."""
        return tuple(name for name in self.spec.tunable if name not in {**self.spec.parameters, **self.workload})

    def configured(self, choice: Mapping[str, object]) -> "Case":
        """Return the case launched so; raise a SpecError if its `tune` has no such value.

        The rules of `tune` are not checked: `plan.broken` returns the rule that the configuration breaks.
        """
        values: Mapping[str, tuple[object, ...]] = self.spec.tune.values if self.spec.tune else {}
        for name, value in choice.items():
            if name not in self.tunable or value not in values[name]:
                among = f"one of {', '.join(map(str, values[name]))}" if name in self.tunable else "not to be tuned"
                raise SpecError(f"{self.name}: {name}={value}: {name} is {among}")
        return replace(self, choice=dict(choice))

    def configurations(self, device: Device) -> list["Case"]:
        """Return the case in every different way that it can be launched on `device`, its default first.

        Two configurations are the same if their launches and the shapes of their buffers are. The list has one case
        if nothing varies. A SpecError is raised if the default breaks a rule of its spec.
        """
        default, names, tune = replace(self, choice={}), self.tunable, self.spec.tune
        default.plan.require_default(device)
        if not names or tune is None:
            return [default]
        others = (replace(self, choice=choice) for choice in tune.product(names) if choice != default.configuration)
        different: dict[tuple[object, ...], Case] = {_launched(default, device): default}
        for case in others:
            if case.plan.broken(device) is None:
                different.setdefault(_launched(case, device), case)
        return list(different.values())

    def __repr__(self) -> str:
        """Return one line: `<Case softmax[rows=32,cols=1000] S0>`, with the configuration where one was chosen."""
        return f"<Case {self.task} {self.label}>"

    def _repr_html_(self) -> str:
        """Return bars of the bytes of each buffer, and a table of what a launch moves and computes."""
        sizes = self.sizes
        buffers = [
            (
                f"{array.name} {array.dtype} [{', '.join(map(str, sizes.shape(array.name)))}]",
                float(sizes.nbytes(array.name)),
                bytes_text(sizes.nbytes(array.name)),
            )
            for array in self.spec.arrays
        ]
        rows = [["moves at least", bytes_text(sizes.bytes_moved)]]
        if sizes.flops:
            rows.append(["computes", rate_text(sizes.flops, "FLOP")])
            rows.append(["operations per byte", f"{sizes.flops / sizes.bytes_moved:.3g}" if sizes.bytes_moved else "-"])
        if self.spec.peers:
            rows.append(["peers", ", ".join(self.spec.peers)])
        if self.tunable:
            rows.append(["tunable", ", ".join(self.tunable)])
        heading = f"{self.name}: {self.label} of {self.spec.family}"
        return display.view(heading, display.bars(buffers), display.table(["launch", ""], rows))


def _launched(case: Case, device: Device) -> tuple[object, ...]:
    """Return the launches of a case on `device` and the shapes of its buffers."""
    return case.plan.steps(device), tuple(case.sizes.shape(array.name) for array in case.spec.arrays)


def edges_task(case: Case) -> str:
    """Return the task that verifies the kernel's edges in the configuration of `case`."""
    return f"edges:{case.kernel}@{written(case.configuration)}" if case.choice else f"edges:{case.kernel}"


def read_case(name: str, kernels: Mapping[str, KernelSpec]) -> Case | None:
    """Return the case that `kernel:variant[axis=value,...]` names, with any values of the kernel's axes and parameters.

    It has no label. The result is None for an unknown kernel or a wrong value, and unless every axis has a value.
    """
    kernel, bracket, axes = name.partition("[")
    kernel, _, variant = kernel.partition(":")
    if not bracket or not axes.endswith("]") or kernel not in kernels:
        return None
    spec = kernels[kernel].with_variant(variant) if variant else kernels[kernel]
    workload = _workload(axes[:-1], next(iter(spec.workloads.values())), spec.parameters)
    return Case(spec, workload, "", variant or None) if workload else None


def test_of(case: str) -> str:
    """Return the node id of the test that timed a case: its name, less the number of a later call in that test."""
    return re.sub(r" \d+$", "", case)


def _workload(text: str, known: Workload, parameters: Mapping[str, Any]) -> Workload | None:
    written = {axis: value for axis, _, value in (word.partition("=") for word in text.split(","))}
    usual: dict[str, Any] = {**parameters, **known}
    if not set(known) <= set(written) <= set(usual):
        return None
    try:
        return Workload(**{axis: _value(value, usual[axis]) for axis, value in written.items()})
    except ValueError:
        return None


def _value(text: str, usual: Any) -> Any:
    """Return the value that the text writes, of the type of the `usual` value; ValueError for any other text.

    Where the usual value is None, it may also be a number.
    """
    if isinstance(usual, bool):
        return ("False", "True").index(text) == 1
    if usual is None:
        return None if text == "None" else float(text)
    return type(usual)(text)


def chosen(case: Case, text: str) -> Case:
    """Return the case in the configuration that `block=128,groups=2` means.

    A UsageError is raised for a name or value that its spec does not have.
    """
    if case.spec.tune is None:
        raise UsageError(f"{case.name}: '{text}' configures a kernel whose spec has no tune=")
    return case.configured(case.spec.tune.parsed(text, case.name))
