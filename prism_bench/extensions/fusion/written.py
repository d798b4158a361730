"""What a kind of launch writes: the CUDA text, and the parts of the spec that go with it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from prism_bench.extensions.fusion.expression import Choice, Name, class_of, cuda, functions_in, names_in, replaced

WIDTH = 120


@dataclass(frozen=True)
class Written:
    """`kernels` is CUDA C++; the rest is Python: scratch and size arguments, how it is launched, and what that imports.

    `entry` is the entry with {} for the template arguments that the launch fills in; `shared` are names by module of
    kernels/include; `derived` is an expression for the spec's derived sizes.
    """

    headers: tuple[str, ...]
    kernels: str
    entry: str
    scratch: tuple[str, ...]
    sizes: tuple[str, ...]
    launch: str
    shared: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    derived: str = ""


def packed(opening: str, parts, closing: str) -> str:
    """Opening + parts + closing in lines of at most 120 characters; further lines begin below the first part."""
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
    """Opening + terms + closing, with a further line before a term that no longer fits."""
    indent = " " * (len(opening) - len(opening.lstrip()) + 4)
    lines = [opening]
    for position, term in enumerate(terms):
        fits = len(lines[-1]) + len(term) + len(closing) + 1 <= WIDTH
        if position and not fits:
            lines.append(indent + term)
        else:
            lines[-1] += f" {term}" if position else term
    return "\n".join(lines) + closing


def signature(opening: str, plan, number: str, after: list[str], types: Mapping[str, str] | None = None) -> str:
    """The head of a kernel: inputs, outputs, then `after`; `types` are those of inputs that are no plain numbers."""
    types = types or {}
    inputs = [
        f"{'' if one.name in plan.overwritten else 'const '}{types.get(one.name, number)}* {one.name}"
        for one in plan.inputs
    ]
    outputs = [f"{number}* {name}" for name in plan.outputs if name not in plan.overwritten]
    return packed(opening, [*inputs, *outputs, *after], ") {")


def function(name: str, taken: str, captured: str, expression: str) -> str:
    """A lambda called `name`."""
    return f"    const auto {name} = [{captured}]({taken}) {{\n        return {expression};\n    }};"


def elements(plan, names, index: str, number: str = "T") -> list[str]:
    """Statements that read vectors at `index` into names of their own (a_at for a)."""
    return [f"const {number} {name}_at = {name}[{index}];" for name in names if len(plan.axes[name]) == 1]


def at_place(expression, plan, number: str = "T") -> str:
    """CUDA of an expression whose vectors have been read into `<name>_at`, the matrix's sums into `plan.local`."""
    vectors = {name: Name(f"{name}_at") for name in names_in(expression) if len(plan.axes[name]) == 1}
    return cuda(replaced(expression, vectors | {plan.tiled.name: Name(plan.local)}), number)


def template_of(plan, *first: str) -> str:
    """`template <...>` with the classes that parameters choose."""
    chosen = [f"class {class_of(choice)}" for choice in plan.choices]
    return f"template <{', '.join([*first, *chosen])}>"


def headers_of(plan) -> tuple[str, ...]:
    """The headers of all functions that the plan calls."""
    found = []
    for function in functions_in(*plan.expressions):
        found += [one.header for one in (function.functions.values() if isinstance(function, Choice) else (function,))]
    return tuple(dict.fromkeys(found))
