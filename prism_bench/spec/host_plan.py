"""Host plan of a case: the launches and zero fills that run it on a device, and what they need of that device."""

from collections.abc import Mapping
from dataclasses import dataclass

from prism_bench.errors import SpecError
from prism_bench.spec import byname
from prism_bench.spec.instance import Instance, Passed
from prism_bench.spec.kernel import Array, KernelSpec, Launch, Requirement, Rule, Zero
from prism_bench.spec.launch import COMPILERS_BLOCK
from prism_bench.spec.parts import CUDA
from prism_bench.spec.tune import written


@dataclass(frozen=True)
class Device:
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
        plan = byname.call(self.spec.launch, {**self.axes, "device": device}, f"{self.spec.name}: launch")
        steps, others = _steps_in(plan)
        own_compiler = self.spec.language == CUDA and not self.spec.cards
        if own_compiler and any(isinstance(one, Launch) and one.block == COMPILERS_BLOCK for one in steps):
            raise SpecError(f"{self.case}: a launch in CUDA C++ needs the threads of a block: Launch(grid, block)")
        if others:
            raise SpecError(f"{self.case}: launch returned {others[0]!r:.60}, which is no Launch and no Zero "
                            f"({byname.defined_at(self.spec.launch)})")  # fmt: skip
        return steps

    def instances(self, device: Device) -> tuple[Instance, ...]:
        """Return what the plan launches on `device`, as requests to its compiler, each once."""
        launches = [step for step in self.steps(device) if isinstance(step, Launch) and not step.is_empty]
        return tuple(dict.fromkeys(map(self.instance, launches)))

    def instance(self, step: Launch) -> Instance:
        """Return what a launch requests of its compiler: in CUDA C++ the entry alone."""
        entry = step.entry or self.spec.entry
        if self.spec.language == CUDA:
            return Instance(entry)
        names = step.arguments or tuple(argument.name for argument in self.spec.arguments)
        return Instance(entry, tuple(map(self._passed, names)), step.constants)

    def entries(self, device: Device) -> tuple[str, ...]:
        """Return the functions that the plan launches on `device` as text, each once."""
        return tuple(map(str, self.instances(device)))

    def _passed(self, name: str) -> Passed:
        argument = self.spec.argument(name)
        if isinstance(argument, Array):
            return Passed(name, argument.dtype, pointer=True, fact="16", dimensions=len(argument.shape.split()))
        value = argument.value(self.axes)
        if value.dtype.kind not in "iu":
            return Passed(name, argument.dtype)
        return Passed(name, argument.dtype, fact="1" if value == 1 else "" if int(value) % 16 else "16")

    @property
    def requirement(self) -> Requirement | None:
        """Instructions of one compute capability that the case uses, or None."""
        needed = self.spec.requires
        return byname.call(needed, self.axes, f"{self.spec.name}: requires") if callable(needed) else needed

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


def _steps_in(plan: object) -> tuple[tuple[Launch | Zero, ...], list[object]]:
    """Return the steps of what a spec's launch returned, and what is no step."""
    returned: list[object] = [*plan] if isinstance(plan, tuple | list) else [plan]
    steps = tuple(step for step in returned if isinstance(step, Launch | Zero))
    return steps, [step for step in returned if not isinstance(step, Launch | Zero)]
