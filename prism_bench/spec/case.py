"""Case: a kernel, or one of its variants, at a workload."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from prism_bench import display
from prism_bench.errors import SpecError
from prism_bench.spec import byname
from prism_bench.spec.case_sizes import CaseSizes
from prism_bench.spec.correctness import Correctness
from prism_bench.spec.host_plan import Device, HostPlan
from prism_bench.spec.inputs import InputArray
from prism_bench.spec.kernel import Golden, KernelSpec
from prism_bench.spec.tune import written
from prism_bench.spec.workload import Edge, Workload
from prism_bench.units import bytes_text, rate_text

__all__ = ["Case", "Device", "edges_task"]


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
            if not byname.call(rule.holds, self.axes, f"{self.spec.name}: rule '{rule.text}'"):
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
            axes[name] = byname.call(function, axes, f"{self.spec.name}: derived '{name}'")
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

        The rules of `tune` are not checked: `plan.broken` names the one that the configuration breaks.
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
        others = (replace(self, choice=one) for one in tune.product(names) if one != default.configuration)
        different: dict[tuple[object, ...], Case] = {_launched(default, device): default}
        for one in others:
            if one.plan.broken(device) is None:
                different.setdefault(_launched(one, device), one)
        return list(different.values())

    def __repr__(self) -> str:
        """Return one line: `<Case softmax[rows=32,cols=1000] S0>`, with the configuration where one was chosen."""
        return f"<Case {self.task} {self.label}>"

    def _repr_html_(self) -> str:
        """Return bars of the bytes of each buffer, and a table of what a launch moves and computes."""
        sizes = self.sizes
        buffers = [
            (f"{array.name} {array.dtype} [{', '.join(map(str, sizes.shape(array.name)))}]",
             float(sizes.nbytes(array.name)), bytes_text(sizes.nbytes(array.name)))
            for array in self.spec.arrays
        ]  # fmt: skip
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
