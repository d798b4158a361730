"""Plan of a fused launch: its stages, its refusals, and helpers of code generation."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from typing import Any

from prism_bench.errors import SpecError, unknown
from prism_bench.extensions.fusion.expression import (
    Asking,
    Expression,
    FunctionChoice,
    Includes,
    Name,
    choices_in,
    class_of,
    cuda,
    flops,
    functions_in,
    names_in,
    replaced,
    substituted,
)
from prism_bench.extensions.fusion.program import (
    Anchor,
    Axes,
    ColumnSums,
    FusionProgram,
    Input,
    Map,
    Nearest,
    Product,
    Reduce,
    RowDots,
    Scan,
    Stage,
    Tiled,
    Within,
    axes_of,
    in_order,
    operands,
)
from prism_bench.spec.arguments import Scalar, Scratch

# A launch walks its arrays once. Sums, which only the last block to finish knows, may go into further numbers, but not
# back into arrays: all other blocks have ended by then. Maps are inlined into the stages that read them.


@dataclass(frozen=True)
class FusionPlan:
    """Plan of a launch. `anchors` are the stages that reduce, `outputs` the expressions to store by output's name."""

    program: FusionProgram
    stages: tuple[Stage, ...]
    axes: Axes
    anchors: tuple[Anchor, ...]
    outputs: Mapping[str, Expression]

    @property
    def tiled(self) -> Tiled | None:
        """The stage that walks a matrix, if there is one."""
        return next((anchor for anchor in self.anchors if isinstance(anchor, Tiled)), None)

    def local(self, stage: Tiled) -> str:
        """Return what the kernel calls the result of the stage that walks a matrix, apart from an output's name."""
        return f"{stage.name}_sum" if stage.name in self.outputs else stage.name

    @property
    def scans(self) -> tuple[Scan, ...]:
        """The stages that go over all pairs of points."""
        return tuple(anchor for anchor in self.anchors if isinstance(anchor, Scan))

    @property
    def nearest(self) -> Nearest | None:
        """The stage that looks for the k-th neighbour, if there is one."""
        return next((scan for scan in self.scans if isinstance(scan, Nearest)), None)

    @property
    def clouds(self) -> tuple[str, ...]:
        """The inputs whose rows are points, in the program's order."""
        used = {name for scan in self.scans for name in scan.points}
        return tuple(operand.name for operand in self.program.inputs if operand.name in used)

    @property
    def reduces(self) -> tuple[Reduce, ...]:
        """The reductions to one number."""
        return tuple(anchor for anchor in self.anchors if isinstance(anchor, Reduce))

    @property
    def chosen(self) -> Reduce | None:
        """The reduction that a parameter chooses, if there is one."""
        return next((reduce for reduce in self.reduces if reduce.chosen), None)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """All computed expressions."""
        return (*self.outputs.values(), *(e for anchor in self.anchors for e in anchor.expressions))

    @property
    def choices(self) -> tuple[FunctionChoice, ...]:
        """The choices of functions that parameters make."""
        return choices_in(*self.expressions)

    def named(self) -> set[str]:
        """Return the inputs and scalars that are read."""
        return {name for stage in self.anchors for name in operands(stage)} | set(names_in(*self.outputs.values()))

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The inputs that are read or written."""
        written = set(self.outputs)
        return tuple(operand for operand in self.program.inputs if operand.name in self.named() | written)

    @property
    def scalars(self) -> tuple[str, ...]:
        """The scalars that are read."""
        return tuple(name for name in self.program.scalars if name in self.named())

    @property
    def stages_are_the_programs(self) -> bool:
        """Whether these are the program's own stages, not the stages of another form."""
        return {stage.name: stage for stage in self.stages} == {stage.name: stage for stage in self.program.stages}

    @property
    def overwritten(self) -> set[str]:
        """The inputs that an output overwrites."""
        return {operand.name for operand in self.program.inputs} & set(self.outputs)

    def axes_read(self) -> tuple[str, ...]:
        """Return the axes of all inputs, each once."""
        return tuple(dict.fromkeys(axis for operand in self.inputs for axis in operand.axes))


def planned(program: FusionProgram, stages: Sequence[Stage] | None = None) -> FusionPlan:
    """Return the plan of a program, or of other stages for it; SpecError only if stages do not fit together."""
    ordered = in_order(program, stages or program.stages)
    axes = axes_of(program, ordered)
    inlined: dict[str, Expression] = {}
    anchors: list[Anchor] = []
    for stage in ordered:
        if isinstance(stage, Map):
            inlined[stage.name] = replaced(stage.expression, inlined)
        elif isinstance(stage, Reduce):
            anchors.append(replace(stage, expression=replaced(stage.expression, inlined)))
        elif isinstance(stage, ColumnSums):
            anchors.append(replace(stage, weights=replaced(stage.weights, inlined)))
        else:
            anchors.append(stage)
    outputs: dict[str, Expression] = {}
    places: dict[str, tuple[str, ...]] = {}
    for name in program.outputs:
        stage = next((candidate for candidate in ordered if candidate.name == name), None)
        if stage is None:
            raise SpecError(f"output: {unknown('stage', name, [candidate.name for candidate in ordered])}")
        place = stage.into if isinstance(stage, Map) and stage.into is not None else name
        if axes.get(place) != axes[name]:
            raise SpecError(f"stage '{name}' goes into '{place}', which is no input of its shape")
        outputs[place], places[place] = inlined.get(name, Name(name)), axes[name]
    return FusionPlan(program, ordered, axes | places, tuple(anchors), outputs)


# Refusals: what a single launch cannot do, with the reason.


def cannot_fuse(stage: str, reason: str) -> SpecError:
    """Return the error for a stage or an output that no launch of this program can hold."""
    return SpecError(f"'{stage}' cannot be fused: {reason}")


def refuse(plan: FusionPlan) -> None:
    """Raise SpecError with the reason if a single launch cannot carry out the plan."""
    _refuse_barriers(plan)
    _refuse_second_matrix(plan)
    _refuse_operands(plan)
    _refuse_scans(plan)
    _refuse_by_kind(plan)
    _refuse_overwriting(plan)
    if plan.stages_are_the_programs:
        unused = [operand.name for operand in plan.program.inputs if operand.name not in plan.named()]
        if unused:
            raise SpecError(f"input '{unused[0]}' is read by no stage")


def _refuse_barriers(plan: FusionPlan) -> None:
    late = {reduce.name for reduce in plan.reduces}
    reads = [(name, late & set(names_in(expression))) for name, expression in plan.outputs.items() if plan.axes[name]]
    reads += [(anchor.name, late & set(operands(anchor))) for anchor in plan.anchors]
    for name, held in reads:
        if held:
            raise cannot_fuse(
                name,
                f"it goes over an axis with '{min(held)}', which is known only when the last block has finished; "
                "all others would have to wait for it (a grid barrier). Make it a separate program",
            )


def _refuse_second_matrix(plan: FusionPlan) -> None:
    tiled = [anchor for anchor in plan.anchors if isinstance(anchor, Tiled)]
    for first, stage in pairwise(tiled):
        raise cannot_fuse(
            stage.name,
            f"it walks a matrix, as '{first.name}' does, in its own tiles, and one launch walks one "
            "matrix. Make it a separate program",
        )


def _refuse_operands(plan: FusionPlan) -> None:
    inputs = {operand.name: operand for operand in plan.program.inputs}
    for stage in plan.anchors:
        for name in _in_memory(stage):
            if name not in inputs:
                raise cannot_fuse(
                    stage.name,
                    f"every block reads all of '{name}', so it must be in memory before the launch; make it an input",
                )
    for name in names_in(*plan.expressions):
        if name in inputs and len(inputs[name].axes) == 2:
            raise cannot_fuse(
                name,
                f"maps go along one axis, not over '{inputs[name].shape}'; matrices are for the stages that walk them",
            )


def _in_memory(stage: Anchor) -> tuple[str, ...]:
    """Return the operands that a stage reads as a whole."""
    if isinstance(stage, Reduce):
        return ()
    if isinstance(stage, Scan):
        return stage.points
    return (stage.matrix,) if isinstance(stage, ColumnSums) else operands(stage)


def _refuse_by_kind(plan: FusionPlan) -> None:
    tiled = plan.tiled
    if tiled is None:
        return
    if isinstance(tiled, Product):
        if plan.reduces or len(plan.outputs) > 1:
            raise cannot_fuse(tiled.name, "a product stores each tile once and adds nothing up; it has one output")
        epilogue(plan, tiled)
    for stage in plan.reduces:
        if isinstance(tiled, ColumnSums):
            raise cannot_fuse(stage.name, f"the blocks of '{tiled.name}' end with their tiles of columns")
        if tiled.name not in names_in(stage.expression):
            raise cannot_fuse(stage.name, f"it does not reduce what comes of '{tiled.name}'")
    along = plan.axes[tiled.name]
    for name in plan.outputs:
        if plan.axes[name] not in ((), along):
            raise cannot_fuse(name, f"it is along {' '.join(plan.axes[name])}, '{tiled.name}' along {' '.join(along)}")
    if isinstance(tiled, RowDots) and len(plan.reduces) > 1 and plan.chosen:
        raise cannot_fuse(plan.chosen.name, "one parameter would choose two reductions")


def _refuse_scans(plan: FusionPlan) -> None:
    """Raise SpecError for combinations that a scan over all pairs of points excludes."""
    if not plan.scans:
        return
    first, nearest = plan.scans[0], [scan for scan in plan.scans if isinstance(scan, Nearest)]
    if plan.tiled:
        raise cannot_fuse(first.name, f"it goes over all pairs of points, '{plan.tiled.name}' over a matrix")
    for other in nearest[1:]:
        raise cannot_fuse(other.name, f"a kernel looks for one k-th neighbour, and '{nearest[0].name}' does")
    if len(plan.clouds) > 3:
        raise cannot_fuse(first.name, f"points come from three arrays at most, not from {', '.join(plan.clouds)}")
    if plan.choices or plan.chosen:
        raise cannot_fuse(first.name, "parameters choose functions and reductions for RowDots and Product alone")
    known = {operand.name for operand in (*plan.program.inputs, *nearest)}
    for scan in plan.scans:
        if isinstance(scan, Within) and scan.radius not in known:
            raise cannot_fuse(scan.name, f"its radius '{scan.radius}' is neither an input nor a neighbour's distance")
    along = plan.axes[first.name]
    for name in names_in(*plan.expressions):
        if plan.axes[name] not in ((), along):
            raise cannot_fuse(name, f"it is along {' '.join(plan.axes[name])}, the points along {' '.join(along)}")


def epilogue(plan: FusionPlan, stage: Product) -> tuple[Expression, str | None]:
    """Return the epilogue of a product in `sums` (product plus bias), and the name of the bias, which headers add."""
    product, (expression,) = stage.name, plan.outputs.values()
    vectors = [name for name in names_in(expression) if len(plan.axes[name]) == 1]
    pairs = [pair for bias in vectors[:1] for pair in (Name(product) + Name(bias), Name(bias) + Name(product))]
    bare = substituted(expression, dict.fromkeys(pairs, Name("sums")))
    if set(vectors) & set(names_in(bare)) or (vectors and product in names_in(bare)):
        raise cannot_fuse(
            next(iter(plan.outputs)),
            f"an epilogue is a function of {product} + one vector, and of scalars; this one "
            f"holds {', '.join(vectors)} in another way",
        )
    return replaced(bare, {product: Name("sums")}), next(iter(vectors), None)


def _refuse_overwriting(plan: FusionPlan) -> None:
    elsewhere = {name for stage in plan.anchors for name in operands(stage)} if plan.tiled or plan.scans else set()
    for name in plan.overwritten:
        if name in elsewhere or (not plan.tiled and len(plan.outputs) > 1):
            reason = "it is overwritten while other blocks still read it; give it an output that is no input"
            raise cannot_fuse(name, reason)


# Operations of a plan, as the `flops` of a spec.

Counts = dict[tuple[str, ...], int]  # operations by the axes that they are done along


def operations(plan: FusionPlan) -> Asking:
    """Return the function of axes: a function call or an operator counts, a product's step counts two."""
    counts: Counts = {}
    for anchor in plan.anchors:
        for axes, count in _of_stage(plan, anchor):
            counts[axes] = counts.get(axes, 0) + count
    for name, expression in plan.outputs.items():
        counts[plan.axes[name]] = counts.get(plan.axes[name], 0) + flops(expression)
    terms = {axes: count for axes, count in counts.items() if axes and count}
    names = tuple(dict.fromkeys(axis for axes in terms for axis in axes))

    def counted(*extents: int) -> int:
        known = dict(zip(names, extents, strict=True))
        return sum(count * prod(known[axis] for axis in axes) for axes, count in terms.items())

    return Asking(names, counted)


def _of_stage(plan: FusionPlan, stage: Anchor) -> list[tuple[tuple[str, ...], int]]:
    """Return operations by axes; a scan takes two per coordinate, and one per comparison with a distance or radius."""
    axes = plan.axes
    if isinstance(stage, Reduce):
        along = next(axes[name] for name in names_in(stage.expression) if axes[name])
        return [(along, flops(stage.expression) + (2 if stage.how == "squares" else 1))]
    if isinstance(stage, Product):
        return [((*axes[stage.left], axes[stage.right][1]), 2)]
    if isinstance(stage, ColumnSums | RowDots):
        return [
            (axes[stage.matrix], 2),
            (axes[stage.matrix][:1], sum(flops(expression) for expression in stage.expressions)),
        ]
    along = axes[stage.name]
    compared = 1 if isinstance(stage, Nearest) else len(stage.points)
    return [*(((*along, *axes[name]), 2) for name in stage.points), ((*along, *along), compared)]


# Generated code of a launch: its CUDA C++, and the host side.

_WIDTH = 120


@dataclass(frozen=True)
class EntryCall:
    """A launch of `entry`, with {} for template arguments, for the type or precision `number`.

    `arguments` are the names to pass where they are not the spec's in order.
    """

    number: str
    entry: str
    arguments: tuple[str, ...] | None = None


class HostSide(ABC):
    """Host side of a kind of launch; by default without sizes, workspace and derived sizes."""

    @property
    def workspace(self) -> Mapping[str, str]:
        """The names of the scratch arrays, each with the text of its shape."""
        return {}

    @property
    def sizes(self) -> tuple[Scalar, ...]:
        """The sizes that are passed last."""
        return ()

    def scratch(self, number: str, includes: Includes) -> tuple[Scratch, ...]:
        """Return the scratch arrays for that type."""
        return ()

    @abstractmethod
    def launch(self, call: EntryCall, includes: Includes) -> Callable[..., Any]:
        """Return the `launch` of a spec."""

    def derived(self, number: str, includes: Includes) -> dict[str, Callable[..., int]]:
        """Return the `derived` sizes of a spec."""
        return {}


@dataclass(frozen=True)
class KernelCode:
    """`kernels` is CUDA C++, `entry` the entry with {} for the template arguments that the launch fills in."""

    headers: tuple[str, ...]
    kernels: str
    entry: str
    host: HostSide


def grid_workspace(blocks: str, count: int) -> Mapping[str, str]:
    """Return the names of the workspace of `count` sums over the grid; empty without sums."""
    return {"by_block": f"{count} {blocks}", "arrived": "1"} if count else {}


def grid_scratch(blocks: str, count: int) -> tuple[Scratch, ...]:
    """Return the workspace of `count` sums over the grid; empty without sums."""
    sums = Scratch("by_block", f"{count} {blocks}" if count > 1 else blocks, "float64")
    return (sums, Scratch("arrived", "1", "uint32")) if count else ()


def packed(opening: str, parts: Sequence[str], closing: str) -> str:
    """Return opening + parts + closing in lines of at most 120 characters; more lines begin below the first part."""
    parts = [f"{part}," for part in parts[:-1]] + list(parts[-1:])
    lines, indent = [opening], " " * len(opening.rpartition("\n")[2])
    for position, part in enumerate(parts):
        last = closing if position == len(parts) - 1 else ""
        fits = len(lines[-1].rpartition("\n")[2]) + len(part) + len(last) + 1 <= _WIDTH
        first = lines[-1] in (opening, indent)
        if fits or first:
            lines[-1] += part if first else f" {part}"
        else:
            lines.append(indent + part)
    return "\n".join(lines) + closing


def folded(opening: str, terms: Iterable[str], closing: str) -> str:
    """Return opening + terms + closing, with a line break before a term that does not fit."""
    indent = " " * (len(opening) - len(opening.lstrip()) + 4)
    lines = [opening]
    for position, term in enumerate(terms):
        fits = len(lines[-1]) + len(term) + len(closing) + 1 <= _WIDTH
        if position and not fits:
            lines.append(indent + term)
        else:
            lines[-1] += f" {term}" if position else term
    return "\n".join(lines) + closing


def signature(
    opening: str, plan: FusionPlan, number: str, after: Sequence[str], types: Mapping[str, str] | None = None
) -> str:
    """Return the head of a kernel: inputs, outputs, then `after`; `types` has the types of arguments but pointers."""
    types = types or {}
    read = {operand.name: f"{'' if operand.name in plan.overwritten else 'const '}{number}*" for operand in plan.inputs}
    written = {name: f"{number}*" for name in plan.outputs if name not in plan.overwritten}
    pointers = [f"{types.get(name, pointer)} {name}" for name, pointer in (*read.items(), *written.items())]
    return packed(opening, [*pointers, *after], ") {")


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
    headers: list[str] = []
    for called in functions_in(*plan.expressions):
        callees = called.functions.values() if isinstance(called, FunctionChoice) else (called,)
        headers += [callee.header for callee in callees]
    return tuple(dict.fromkeys(headers))
