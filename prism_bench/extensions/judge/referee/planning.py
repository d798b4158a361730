"""From a case to what a runner has to know of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from prism_bench.backends.cuda.carded import block_of, card_values, launch_facts, scratch_bytes
from prism_bench.compilation.elf import elf_entries
from prism_bench.errors import BackendUnavailable, SpecError
from prism_bench.extensions.judge.referee.contestant_code import CardedCode, ContestantCode
from prism_bench.extensions.judge.referee.messages import BufferPlan, CasePlan, PlannedParameter, Role, StepPlan
from prism_bench.spec.arguments import Array, InOut, Scratch
from prism_bench.spec.case import Case, Device
from prism_bench.spec.kernel import CUDA, Launch, TensorMap, Zero
from prism_bench.spec.launch import LaunchCard

_Triple = tuple[int, int, int]


def case_plan(case: Case, device: Device, code: ContestantCode) -> tuple[CasePlan, tuple[bytes, ...]]:
    """Return the plan of a case, and the cubins that its steps name by number.

    BackendUnavailable where it needs more than a runner has: other instructions, a compiler's own card.
    """
    refusal = case.plan.refusal(device)
    if case.spec.language != CUDA and not code.instances:
        refusal = f"a kernel in {case.spec.language} has parameters that only its own compiler knows"
    steps = [one for one in case.plan.steps(device) if isinstance(one, Zero) or not one.is_empty]
    if refusal:
        raise BackendUnavailable(f"{case.name}: {refusal}")
    buffers = [
        BufferPlan(one.name, one.dtype, case.sizes.shape(one.name), _role(one), one.first_byte)
        for one in case.spec.arrays
    ]
    planner = _CardedPlanner(case, code, buffers) if case.spec.language != CUDA else None
    planned = tuple(
        planner.step(one) if planner and isinstance(one, Launch) else _step(case, one, code.symbols) for one in steps
    )
    return CasePlan(case.name, tuple(buffers), planned), tuple(planner.cubins) if planner else (code.cubin,)


def check_parameters(plan: CasePlan, cubins: tuple[bytes, ...]) -> None:
    """Raise a SpecError, with both, where a launch passes other sizes than the machine code takes."""
    for step in plan.steps:
        entries = elf_entries(cubins[step.module])
        passed = [one.size for one in step.parameters]
        if step.symbol in entries and passed != [size for _, size in entries[step.symbol].parameters]:
            taken = [size for _, size in entries[step.symbol].parameters]
            raise SpecError(
                f"{step.symbol}: the card passes parameters of {_listed(passed)} bytes; the machine code takes "
                f"{_listed(taken)}"
            )


def _listed(sizes: list[int]) -> str:
    return ", ".join(map(str, sizes)) or "no"


def _role(array: Array) -> Role:
    if array.scratch or isinstance(array, Scratch):
        return "scratch"
    return "inout" if isinstance(array, InOut) else "input" if array.reads else "output"


def _step(case: Case, step: Launch | Zero, symbols: Mapping[str, str]) -> StepPlan:
    if isinstance(step, Zero):
        return StepPlan(zero=step.name)
    names = step.arguments or tuple(argument.name for argument in case.spec.arguments)
    entry = step.entry or case.spec.entry
    if entry not in symbols:
        raise SpecError(f"{case.name}: no machine code was made of '{entry}'")
    return StepPlan(
        symbols[entry], _three(step.grid), _three(step.block), step.shared, step.cooperative,
        tuple(_parameter(case, name, step.maps) for name in names), overlaps=step.overlaps,
    )  # fmt: skip


def _parameter(case: Case, name: str, maps: Sequence[TensorMap]) -> PlannedParameter:
    argument = case.spec.argument(name)
    if isinstance(argument, Array):
        return PlannedParameter(buffer=name, map=next((one for one in maps if one.name == name), None))
    return _number(argument.value(case.axes))


def _number(value: np.generic) -> PlannedParameter:
    return PlannedParameter(dtype=value.dtype.str, value=value.tobytes().hex())


def _three(extent: int | tuple[int, ...]) -> _Triple:
    numbers = extent if isinstance(extent, tuple) else (extent,)
    x, y, z = (*(int(number) for number in numbers), 1, 1)[:3]
    return x, y, z


@dataclass(frozen=True)
class _NamedBuffer:
    """A buffer by its name, with the facts that a launch card may take of an array."""

    name: str
    shape: tuple[int, ...] = ()
    itemsize: int = 1

    @property
    def strides(self) -> tuple[int, ...]:
        return tuple(self.itemsize * prod(self.shape[axis + 1 :]) for axis in range(len(self.shape)))

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)


@dataclass
class _CardedPlanner:
    """Plans launches by the cards of another compiler; its hidden memory is one more of the `buffers`."""

    case: Case
    code: ContestantCode
    buffers: list[BufferPlan]
    cubins: list[bytes] = field(default_factory=list[bytes])

    def step(self, step: Launch) -> StepPlan:
        """Return the plan of a launch; a SpecError for a card that names what there is not."""
        instance = self.case.plan.instance(step)
        made = self.code.instances.get(instance)
        if made is None:
            raise SpecError(f"{self.case.name}: no machine code was made of {instance}")
        try:
            return self._step(step, made)
        except (LookupError, ValueError, ArithmeticError) as error:
            raise SpecError(f"{self.case.name}: launch card of '{made.card.entry}': {error}") from error

    def _step(self, step: Launch, made: CardedCode) -> StepPlan:
        names = step.arguments or tuple(argument.name for argument in self.case.spec.arguments)
        card, grid = made.card.passing(names), _three(step.grid)
        block = block_of(card, _three(step.block) if step.block else (0, 0, 0))
        parameters = tuple(self._parameters(card, grid, block))
        if made.cubin not in self.cubins:
            self.cubins.append(made.cubin)
        return StepPlan(
            card.entry, (prod(grid), 1, 1) if card.linear else grid, block, card.shared, step.cooperative, parameters,
            module=self.cubins.index(made.cubin), cluster=card.cluster,
        )  # fmt: skip

    def _parameters(self, card: LaunchCard, grid: _Triple, block: _Triple) -> Iterator[PlannedParameter]:
        hidden, facts = self._hidden(scratch_bytes(card, grid)), launch_facts(grid, block)
        for members in card.structures:
            single = replace(card, parameters=tuple(replace(one, joined=False) for one in members))
            values = [_planned(one) for one in card_values(single, self._value, hidden, facts)]
            hidden = None if members[0].kind == "hidden" else hidden
            yield values[0] if len(values) == 1 else PlannedParameter(members=tuple(values))

    def _hidden(self, size: int) -> _NamedBuffer | None:
        if not size:
            return None
        name = f"memory {len(self.buffers)} of the compiler"
        self.buffers.append(BufferPlan(name, "uint8", (size,), "scratch"))
        return _NamedBuffer(name)

    def _value(self, name: str) -> object:
        argument = self.case.spec.argument(name)
        if isinstance(argument, Array):
            return _NamedBuffer(name, self.case.sizes.shape(name), np.dtype(argument.dtype).itemsize)
        return argument.value(self.case.axes)


def _planned(value: object) -> PlannedParameter:
    if isinstance(value, _NamedBuffer):
        return PlannedParameter(buffer=value.name)
    assert isinstance(value, np.generic), "a card's value is a buffer or a number"
    return _number(value)
