"""Words on single elements of a case's arrays: accesses that the emulator reports, and elements that nobody wrote."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from prism_bench.emulator.report import LaunchFinding
from prism_bench.spec.arguments import Array
from prism_bench.spec.case import Case, Device
from prism_bench.spec.inputs import AnyArray, ArrayModule
from prism_bench.spec.kernel import InOut, Launch
from prism_bench.units import count_text


def finding_text(finding: LaunchFinding, case: Case, names: Sequence[str]) -> str:
    """Return a finding with the names of the spec: of `names`, the launch's arguments, and of the element."""
    if finding.argument is None:
        return str(finding)
    name = names[finding.argument]
    if finding.offset is None or not isinstance(case.spec.argument(name), Array):
        return f"{finding} (argument {finding.argument} is '{name}')"
    element = _element(case, name, finding.offset)
    message = finding.message.replace(f"byte {finding.offset} of argument {finding.argument}", element)
    if finding.kind == "out of bounds" and finding.accesses:
        verb = "write" if finding.accesses[0].is_write else "read"
        message = f"{verb} of {element}; {_end(case, name, finding.offset)}"
    return str(replace(finding, message=message))


def _end(case: Case, name: str, offset: int) -> str:
    """Return where the array begins or ends, whichever the access at that byte is beyond."""
    dtype, count = case.sizes.elements(name)
    if not count:
        return f"{name} has no element"
    return f"{name} begins at {name}[0]" if offset < 0 else f"{name} ends at {name}[{count - 1}]"


def _element(case: Case, name: str, offset: int) -> str:
    """Return the element at a byte of an array: `y[0, 5]`; outside of it `y[260]`, counted in its memory."""
    dtype, count = case.sizes.elements(name)
    flat = offset // np.dtype(dtype).itemsize
    inside = 0 <= flat < count
    return f"{name}[{_place(flat, case.sizes.shape(name)) if inside else flat}]"


def _place(flat: int, shape: tuple[int, ...]) -> str:
    return ", ".join(str(int(index)) for index in np.unravel_index(flat, shape or (1,)))


def unwritten_words(case: Case, name: str, actual: AnyArray, xp: ArrayModule, device: Device) -> str | None:
    """Return that elements of an output still hold what its buffer was filled with before; None where none does."""
    array = case.spec.array(name)
    if isinstance(array, InOut) or not actual.size:
        return None
    filled = xp.ascontiguousarray(actual).reshape(-1).view(xp.uint8).reshape(actual.size, -1) == array.first_byte
    places = xp.flatnonzero(filled.all(axis=1))
    if not places.size:
        return None
    first = _place(int(places[0]), case.sizes.shape(name))
    count = f" ({places.size} of {count_text(actual.size, 'element')})" if actual.size > 1 else ""
    return f"{name}[{first}] was never written{count}{_no_block(case, device)}"


def _no_block(case: Case, device: Device) -> str:
    """Return that a launch has no block, the usual cause; nothing where every launch has some."""
    launches = [step for step in case.plan.steps(device) if isinstance(step, Launch)]
    empty = next((step for step in launches if step.is_empty), None)
    return "" if empty is None else f"; the grid is {empty.grid}: no block ran"
