"""What is generated of one launch: its CUDA C++, and what the host has to know to launch it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from prism_bench.extensions.fusion.cuda_text import class_of, cuda
from prism_bench.extensions.fusion.expression import Expression, FunctionChoice, Name, functions_in, names_in, replaced
from prism_bench.extensions.fusion.includes import Includes
from prism_bench.extensions.fusion.plan import FusionPlan
from prism_bench.extensions.fusion.stages import Tiled
from prism_bench.spec.arguments import Scalar, Scratch

WIDTH = 120


@dataclass(frozen=True)
class EntryCall:
    """A launch of `entry`, with {} for template arguments, for the type or precision `number`.

    `arguments` are the names to pass where they are not the spec's in order.
    """

    number: str
    entry: str
    arguments: tuple[str, ...] | None = None


class HostSide(Protocol):
    """What the host has to know of one kind of launch."""

    @property
    def workspace(self) -> Mapping[str, str]:
        """The names of the scratch arrays, each with what its shape follows from."""
        ...

    @property
    def sizes(self) -> tuple[Scalar, ...]:
        """The sizes that are passed last."""
        ...

    def scratch(self, number: str, includes: Includes) -> tuple[Scratch, ...]:
        """Return the scratch arrays for that type."""
        ...

    def launch(self, call: EntryCall, includes: Includes) -> Callable[..., Any]:
        """Return the `launch` of a spec."""
        ...

    def derived(self, number: str, includes: Includes) -> dict[str, Callable[..., int]]:
        """Return the `derived` sizes of a spec."""
        ...


@dataclass(frozen=True)
class KernelCode:
    """`kernels` is CUDA C++, `entry` the entry with {} for the template arguments that the launch fills in."""

    headers: tuple[str, ...]
    kernels: str
    entry: str
    host: HostSide


def grid_workspace(blocks: str, count: int) -> Mapping[str, str]:
    """Return the names of the workspace of `count` sums over the grid, none for none."""
    return {"by_block": f"{count} {blocks}", "arrived": "1"} if count else {}


def grid_scratch(blocks: str, count: int) -> tuple[Scratch, ...]:
    """Return the workspace of `count` sums over the grid."""
    return Scratch("by_block", f"{count} {blocks}" if count > 1 else blocks, "float64"), Scratch(
        "arrived", "1", "uint32"
    )


def packed(opening: str, parts: Sequence[str], closing: str) -> str:
    """Return opening + parts + closing in lines of at most 120 characters; more lines begin below the first part."""
    parts = [f"{part}," for part in parts[:-1]] + list(parts[-1:])
    lines, indent = [opening], " " * len(opening.rpartition("\n")[2])
    for position, part in enumerate(parts):
        last = closing if position == len(parts) - 1 else ""
        fits = len(lines[-1].rpartition("\n")[2]) + len(part) + len(last) + 1 <= WIDTH
        first = lines[-1] in (opening, indent)
        if fits or first:
            lines[-1] += part if first else f" {part}"
        else:
            lines.append(indent + part)
    return "\n".join(lines) + closing


def folded(opening: str, terms: Iterable[str], closing: str) -> str:
    """Return opening + terms + closing, with a further line before a term that no longer fits."""
    indent = " " * (len(opening) - len(opening.lstrip()) + 4)
    lines = [opening]
    for position, term in enumerate(terms):
        fits = len(lines[-1]) + len(term) + len(closing) + 1 <= WIDTH
        if position and not fits:
            lines.append(indent + term)
        else:
            lines[-1] += f" {term}" if position else term
    return "\n".join(lines) + closing


def signature(
    opening: str, plan: FusionPlan, number: str, after: Sequence[str], types: Mapping[str, str] | None = None
) -> str:
    """Return the head of a kernel: inputs, outputs, then `after`; `types` are those of what is no plain pointer."""
    types = types or {}
    read = {one.name: f"{'' if one.name in plan.overwritten else 'const '}{number}*" for one in plan.inputs}
    written = {name: f"{number}*" for name in plan.outputs if name not in plan.overwritten}
    given = [f"{types.get(name, pointer)} {name}" for name, pointer in (*read.items(), *written.items())]
    return packed(opening, [*given, *after], ") {")


def function(name: str, taken: str, captured: str, expression: str) -> str:
    """Return a lambda called `name`."""
    return f"    const auto {name} = [{captured}]({taken}) {{\n        return {expression};\n    }};"


def elements(plan: FusionPlan, names: Iterable[str], index: str, number: str = "T") -> list[str]:
    """Return statements that read vectors at `index` into local names (a_at for a)."""
    return [f"const {number} {name}_at = {name}[{index}];" for name in names if len(plan.axes[name]) == 1]


def at_place(expression: Expression, plan: FusionPlan, stage: Tiled, number: str = "T") -> str:
    """Return CUDA of an expression whose vectors are in `<name>_at`, and the sums of `stage` in its local name."""
    vectors = {name: Name(f"{name}_at") for name in names_in(expression) if len(plan.axes[name]) == 1}
    return cuda(replaced(expression, vectors | {stage.name: Name(plan.local(stage))}), number)


def template_of(plan: FusionPlan, *first: str) -> str:
    """Return `template <...>` with the classes that parameters choose."""
    chosen = [f"class {class_of(choice)}" for choice in plan.choices]
    return f"template <{', '.join([*first, *chosen])}>"


def headers_of(plan: FusionPlan) -> tuple[str, ...]:
    """Return the headers of all functions that the plan calls."""
    found: list[str] = []
    for called in functions_in(*plan.expressions):
        found += [
            one.header for one in (called.functions.values() if isinstance(called, FunctionChoice) else (called,))
        ]
    return tuple(dict.fromkeys(found))
