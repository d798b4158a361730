"""A case: a kernel (or one of its variants) at a workload."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from types import SimpleNamespace

import numpy as np

from prism_bench import byname
from prism_bench.errors import SpecError
from prism_bench.inputs import InputArray, draw, given
from prism_bench.kernel import Golden, KernelSpec, Launch, Requirement, Rule, Zero
from prism_bench.tolerance import underflow
from prism_bench.tune import written
from prism_bench.workload import Edge, Workload


@dataclass(frozen=True)
class Device:
    """What a launch may ask of the device it runs on."""

    sm_count: int = 4
    max_shared_bytes: int = 48 * 1024
    compute_capability: int = 90


@dataclass(frozen=True)
class Case:
    """`spec` is the kernel's, with the variant's changes already made; `label` is S0, S1, S2, edge or golden.

    `choice` has those values of the spec's `tune` that are not left at their defaults; `edge` has fills of its own.
    """

    spec: KernelSpec
    workload: Workload
    label: str
    variant: str | None = None
    golden: Golden | None = field(default=None, compare=False)
    choice: Mapping[str, object] = field(default_factory=dict)
    edge: Edge | None = None

    def __post_init__(self):
        for rule in self.spec.rules:
            if not byname.call(rule.holds, self.axes, f"{self.spec.name}: rule '{rule.text}'"):
                raise SpecError(f"{self.name}: needs {rule.text}")

    def __hash__(self):
        return hash(self.name)

    @property
    def kernel(self) -> str:
        """The kernel's name, with its variant: `pixel_entropy` or `pixel_entropy:naive`."""
        return f"{self.spec.name}:{self.variant}" if self.variant else self.spec.name

    @property
    def name(self) -> str:
        """The case's identity: kernel, variant and every axis of the workload; golden data are numbered, an edge with
        fills of its own has its name."""
        if self.edge:
            return f"{self.kernel}[{self.edge.name}: {self.workload}]"
        if self.golden is None:
            return f"{self.kernel}[{self.workload}]"
        number = next(i for i, golden in enumerate(self.spec.golden, 1) if golden is self.golden)
        return f"{self.kernel}[golden {number}: {self.workload}]"

    @property
    def is_regime(self) -> bool:
        """Whether it is an edge that follows from the domains of the arguments."""
        return self.edge is not None and self.edge.regime

    @property
    def task(self) -> str:
        """The name, with the whole configuration where one was chosen: `softmax[rows=32,cols=1000]@block=128`."""
        return f"{self.name}@{written(self.configuration)}" if self.choice else self.name

    @property
    def edges_task(self) -> str:
        """What has the kernel's edges verified as this case is launched."""
        return f"edges:{self.kernel}@{written(self.configuration)}" if self.choice else f"edges:{self.kernel}"

    @cached_property
    def axes(self) -> Mapping[str, object]:
        """Parameters, workload, what may be tuned, and derived sizes, by name."""
        axes = {**self.spec.parameters, **self.workload}
        if self.spec.tune:
            axes = {**self.spec.tune.defaults(axes, self.spec.name), **axes, **self.choice}
        for name, function in self.spec.derived.items():
            axes[name] = byname.call(function, axes, f"{self.spec.name}: derived '{name}'")
        return axes

    @property
    def configuration(self) -> dict[str, object]:
        """The value of everything that may be tuned here, chosen or not."""
        return {name: self.axes[name] for name in self.tunable}

    @property
    def tunable(self) -> tuple[str, ...]:
        """The names of the spec's `tune` that vary here: neither a parameter nor the workload pins them."""
        return tuple(name for name in self.spec.tunable if name not in {**self.spec.parameters, **self.workload})

    def configured(self, choice: Mapping[str, object]) -> "Case":
        """The case launched so; a SpecError where its `tune` has no such value. Rules are asked by `broken`."""
        tune, names = self.spec.tune, self.tunable
        for name, value in choice.items():
            if name not in names or value not in tune.values[name]:
                among = f"one of {', '.join(map(str, tune.values[name]))}" if name in names else "not to be tuned"
                raise SpecError(f"{self.name}: {name}={value}: {name} is {among}")
        return replace(self, choice=dict(choice))

    def configurations(self, device: Device) -> list["Case"]:
        """The case in every different way that it can be launched on `device`, its default first; alone where nothing
        varies.

        A SpecError where the default breaks the rules of its own spec.
        """
        default, names = replace(self, choice={}), self.tunable
        default.require_default(device)
        if not names:
            return [default]
        others = (replace(self, choice=one) for one in self.spec.tune.product(names) if one != default.configuration)
        different: dict[tuple, Case] = {default.launched(device): default}
        for one in others:
            if one.broken(device) is None:
                different.setdefault(one.launched(device), one)
        return list(different.values())

    def launched(self, device: Device) -> tuple:
        """What tells two configurations apart on `device`: their launches and the sizes of their buffers."""
        return self.steps(device), tuple(self.shape(array.name) for array in self.spec.arrays)

    def broken(self, device: Device) -> Rule | None:
        """The rule of `tune` that the configuration breaks on `device`, or None."""
        offered = {**self.axes, "device": device}
        return self.spec.tune.broken(offered, self.name) if self.spec.tune else None

    def require_default(self, device: Device | None = None) -> None:
        """A SpecError where the default breaks a rule, or is no value, of its own spec's `tune`."""
        pinned = len(self.tunable) < len(self.spec.tunable)  # who pins a value answers for it
        broken = None if pinned else self.broken(device or Device())
        odd = [n for n, value in self.configuration.items() if value not in self.spec.tune.values[n]]
        if broken or odd:
            wanted = broken.text if broken else f"{odd[0]} among {', '.join(map(str, self.spec.tune.values[odd[0]]))}"
            raise SpecError(f"{self.name}: tune: the default {written(self.configuration)} needs {wanted}")

    def shape(self, argument: str) -> tuple[int, ...]:
        return self.spec.argument(argument).extents(self.axes)

    def inputs(self, seed: int = 0) -> dict[str, InputArray]:
        """Seeded inputs by name, the same on every backend; a golden case's own data whatever the seed."""
        if self.golden:
            self.check_golden()
            return {a.name: self._given(a) for a in self.spec.inputs}
        drawn, fills = {}, self.edge.fills if self.edge else {}
        for position, array in enumerate(self.spec.inputs):
            rng = np.random.default_rng((seed, position))
            fill = fills.get(array.name, array.fill)
            drawn[array.name] = draw(fill, array.extents(self.axes), array.dtype, rng, self.axes)
        return drawn

    def check_golden(self) -> None:
        """A SpecError unless the golden data give every input, and no output but the kernel's."""
        missing = [array.name for array in self.spec.inputs if array.name not in self.golden.inputs]
        if missing:
            raise SpecError(f"{self.name}: golden data give no '{missing[0]}'")
        for name in self.golden.expected:
            self.spec.argument(name)

    def _given(self, array):
        try:
            return given(self._golden_values(self.golden.inputs, array), array.dtype)
        except ValueError as error:
            raise SpecError(f"{self.name}: golden {array.name}: {error}") from error

    @np.errstate(all="ignore")
    def _golden_values(self, data, array):
        """The golden values of `array`, in its shape."""
        value, shape = data[array.name], array.extents(self.axes)
        value = byname.call(value, self.axes, f"{self.name}: golden {array.name}") if callable(value) else value
        try:
            return np.broadcast_to(np.asarray(value), shape)
        except ValueError:
            raise SpecError(f"{self.name}: golden {array.name} has shape {np.shape(value)}, not {shape}") from None

    @property
    def requirement(self) -> Requirement | None:
        """The instructions of one compute capability that the case takes, or None."""
        needed = self.spec.requires
        return byname.call(needed, self.axes, f"{self.spec.name}: requires") if callable(needed) else needed

    def refusal(self, device: Device) -> str | None:
        """Why `device` cannot run the case, or None."""
        needed = self.requirement
        if needed is None or needed.compute_capability == device.compute_capability:
            return None
        return f"{needed.what}: for compute capability {needed.compute_capability}, not {device.compute_capability}"

    def steps(self, device: Device) -> tuple[Launch | Zero, ...]:
        """The host plan on `device`: launches and zero fills in order."""
        plan = byname.call(self.spec.launch, {**self.axes, "device": device}, f"{self.spec.name}: launch")
        steps = plan if isinstance(plan, tuple) else tuple(plan) if isinstance(plan, list) else (plan,)
        odd = next((step for step in steps if not isinstance(step, Launch | Zero)), None)
        if odd is not None or plan is None:
            raise SpecError(f"{self.name}: launch returned {odd!r:.60}, which is no Launch and no Zero "
                            f"({byname.defined_at(self.spec.launch)})")  # fmt: skip
        return steps

    def entries(self, device: Device) -> tuple[str, ...]:
        """The functions that the plan launches on `device`, each once."""
        launches = [step for step in self.steps(device) if isinstance(step, Launch) and not step.is_empty]
        return tuple(dict.fromkeys(step.entry or self.spec.entry for step in launches))

    @property
    def bytes_moved(self) -> int:
        """Compulsory bytes: each input read once, each output written once, unless the spec says otherwise."""
        if self.spec.bytes_moved:
            return int(byname.call(self.spec.bytes_moved, self.axes, f"{self.spec.name}: bytes_moved"))
        return sum(self.nbytes(a.name) * (a.reads + a.writes) for a in self.spec.arrays)

    @property
    def allocated_bytes(self) -> int:
        """Device memory that all buffers of the case take."""
        return sum(self.nbytes(a.name) for a in self.spec.arrays)

    def elements(self, argument: str) -> tuple[str, int]:
        """The type of a buffer's elements and how many it holds."""
        return self.spec.argument(argument).dtype, prod(self.shape(argument))

    def nbytes(self, argument: str) -> int:
        dtype, count = self.elements(argument)
        return count * np.dtype(dtype).itemsize

    @property
    def flops(self) -> int | None:
        """Floating-point operations, an FMA counting two; None where the spec does not say."""
        if not self.spec.flops:
            return None
        return int(byname.call(self.spec.flops, self.axes, f"{self.spec.name}: flops"))

    def expected(self, arrays: Mapping, xp, special) -> dict[str, object]:
        """The reference's outputs by name, from float64 copies of `arrays` (or the golden values)."""
        if self.golden and self.golden.expected:
            outputs = [self.spec.argument(name) for name in self.golden.expected]
            return {output.name: xp.asarray(self._golden_values(self.golden.expected, output)) for output in outputs}
        return self.reference_outputs(self.offered(arrays, xp, special))

    @np.errstate(all="ignore")  # edges and golden data hold infinities and NaN on purpose
    def reference_outputs(self, offered: Mapping) -> dict[str, object]:
        """The reference's outputs by name, shaped as the kernel's; `offered` comes from the method of that name."""
        result = byname.call(self.spec.reference, offered, f"{self.spec.name}: reference")
        results = result if isinstance(result, tuple) else (result,)
        if len(results) != len(self.spec.outputs):
            raise SpecError(f"{self.spec.name}: reference gives {len(results)} outputs, not {len(self.spec.outputs)}")
        pairs = zip(self.spec.outputs, results, strict=True)
        return {output.name: self._shaped(output, value, offered["xp"]) for output, value in pairs}

    def _shaped(self, output, value, xp):
        value, shape = self._numbers(output, value, xp), output.extents(self.axes)
        if value.size != int(np.prod(shape, dtype=np.int64)):
            raise SpecError(f"{self.name}: reference gives {output.name} of shape {value.shape}, not {shape}")
        return value.reshape(shape)

    def _numbers(self, output, value, xp):
        """The reference's output as an array; a SpecError where it is no array of numbers, as None and text are not."""
        try:
            array = xp.asarray(value)
        except (TypeError, ValueError, NotImplementedError):
            array = None
        if array is None or array.dtype.kind not in "biufc":
            raise SpecError(f"{self.name}: reference returned {type(value).__name__} for {output.name}, not numbers "
                            f"({byname.defined_at(self.spec.reference)})")  # fmt: skip
        return array

    @np.errstate(all="ignore")
    def allowance(self, output: str, arrays: Mapping, xp, special) -> SimpleNamespace:
        """The tolerance of `output` with its `terms` and `magnitude` evaluated."""
        tolerance = self.spec.tolerance_of(output)
        if self.golden and self.golden.tolerance:
            tolerance = self.golden.tolerance
        if not callable(tolerance.terms) and not tolerance.magnitude:  # float64 copies of everything are not free
            return SimpleNamespace(tolerance=tolerance, terms=tolerance.terms, magnitude=None)
        offered = self.offered(arrays, xp, special)
        where = f"{self.spec.name}: tolerance of {output}"
        terms = byname.call(tolerance.terms, offered, where) if callable(tolerance.terms) else tolerance.terms
        magnitude = byname.call(tolerance.magnitude, offered, where) if tolerance.magnitude else None
        lost = tolerance.underflows
        lost = byname.call(lost, offered, where) if callable(lost) else lost
        if lost:  # in units of `terms`, as the magnitude is
            magnitude = magnitude + lost * underflow(np.dtype(self.spec.argument(output).dtype)) / terms
        return SimpleNamespace(tolerance=tolerance, terms=terms, magnitude=magnitude)

    @np.errstate(all="ignore")
    def offered(self, arrays: Mapping, xp, special) -> dict[str, object]:
        """What references and tolerances may ask for: float64 copies of the arrays, axes, `xp` and `special`."""
        wide = {n: a.astype("float64") if a.dtype.kind == "f" else a for n, a in arrays.items()}
        return {**self.axes, **wide, "xp": xp, "special": special}
