"""From a case to what a runner has to know of it."""

from collections.abc import Mapping

import numpy as np

from prism_bench.arguments import Array, InOut, Scratch
from prism_bench.case import Case, Device
from prism_bench.compilation.elf import elf_entries
from prism_bench.errors import BackendUnavailable, SpecError
from prism_bench.extensions.judge.referee.messages import BufferPlan, CasePlan, PlannedParameter, Role, StepPlan
from prism_bench.kernel import Launch, Zero
from prism_bench.spec_parts import CUDA


def case_plan(case: Case, device: Device, symbols: Mapping[str, str]) -> CasePlan:
    """Return the plan of a case of CUDA C++ or of machine code; `symbols` has the symbol of each entry.

    BackendUnavailable where it needs more than a runner has: other languages, tensor maps, other instructions.
    """
    refusal = case.plan.refusal(device)
    if case.spec.language != CUDA or case.spec.callable is not None:
        refusal = f"a kernel in {case.spec.language} has parameters that only its own compiler knows"
    steps = [one for one in case.plan.steps(device) if isinstance(one, Zero) or not one.is_empty]
    if any(isinstance(one, Launch) and (one.maps or one.overlaps) for one in steps):
        refusal = "tensor maps and launches that overlap are not for strangers' code"
    if refusal:
        raise BackendUnavailable(f"{case.name}: {refusal}")
    buffers = tuple(
        BufferPlan(one.name, one.dtype, case.sizes.shape(one.name), _role(one), one.first_byte)
        for one in case.spec.arrays
    )
    return CasePlan(case.name, buffers, tuple(_step(case, one, symbols) for one in steps))


def check_parameters(plan: CasePlan, cubin: bytes) -> None:
    """Raise a SpecError, with both, where a launch passes other sizes than the machine code takes."""
    entries = elf_entries(cubin)
    for step in plan.steps:
        passed = [8 if one.buffer else np.dtype(one.dtype).itemsize for one in step.parameters]
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
    return StepPlan(
        symbols[step.entry or case.spec.entry], _three(step.grid), _three(step.block), step.shared, step.cooperative,
        tuple(_parameter(case, name) for name in names),
    )  # fmt: skip


def _parameter(case: Case, name: str) -> PlannedParameter:
    argument = case.spec.argument(name)
    if isinstance(argument, Array):
        return PlannedParameter(buffer=name)
    value = argument.value(case.axes)
    return PlannedParameter(dtype=value.dtype.str, value=value.tobytes().hex())


def _three(extent: int | tuple[int, ...]) -> tuple[int, int, int]:
    numbers = extent if isinstance(extent, tuple) else (extent,)
    x, y, z = (*(int(number) for number in numbers), 1, 1)[:3]
    return x, y, z
