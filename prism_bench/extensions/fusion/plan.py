"""Which stages go into one launch, and how: the program with its maps written into what reads them.

A launch walks its arrays once. What the last block to finish knows (sums) may go into further numbers, but not back
into arrays: all other blocks have ended by then.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from prism_bench.errors import SpecError, unknown
from prism_bench.extensions.fusion.expression import Expression, FunctionChoice, Name, choices_in, names_in, replaced
from prism_bench.extensions.fusion.program import FusionProgram, Input
from prism_bench.extensions.fusion.shapes import Axes, axes_of, in_order, operands
from prism_bench.extensions.fusion.stages import Anchor, ColumnSums, Map, Nearest, Reduce, Scan, Stage, Tiled


@dataclass(frozen=True)
class FusionPlan:
    """One launch. `anchors` are the stages that reduce, `outputs` the expressions to store by output's name."""

    program: FusionProgram
    stages: tuple[Stage, ...]
    axes: Axes
    anchors: tuple[Anchor, ...]
    outputs: Mapping[str, Expression]

    @property
    def tiled(self) -> Tiled | None:
        """The stage that walks a matrix, if there is one."""
        return next((one for one in self.anchors if isinstance(one, Tiled)), None)

    def local(self, stage: Tiled) -> str:
        """Return what the kernel calls the result of the stage that walks a matrix, apart from an output's name."""
        return f"{stage.name}_sum" if stage.name in self.outputs else stage.name

    @property
    def scans(self) -> tuple[Scan, ...]:
        """The stages that go over all pairs of points."""
        return tuple(one for one in self.anchors if isinstance(one, Scan))

    @property
    def nearest(self) -> Nearest | None:
        """The stage that looks for the k-th neighbour, if there is one."""
        return next((one for one in self.scans if isinstance(one, Nearest)), None)

    @property
    def clouds(self) -> tuple[str, ...]:
        """The inputs whose rows are points, in the program's order."""
        used = {name for one in self.scans for name in one.points}
        return tuple(one.name for one in self.program.inputs if one.name in used)

    @property
    def reduces(self) -> tuple[Reduce, ...]:
        """The reductions to one number."""
        return tuple(one for one in self.anchors if isinstance(one, Reduce))

    @property
    def chosen(self) -> Reduce | None:
        """The reduction that a parameter chooses, if there is one."""
        return next((one for one in self.reduces if one.chosen), None)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """All that is computed."""
        return (*self.outputs.values(), *(e for one in self.anchors for e in one.expressions))

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
        return tuple(one for one in self.program.inputs if one.name in self.named() | written)

    @property
    def scalars(self) -> tuple[str, ...]:
        """The scalars that are read."""
        return tuple(name for name in self.program.scalars if name in self.named())

    @property
    def stages_are_the_programs(self) -> bool:
        """Whether these are the program's own stages, not those of another form."""
        return {one.name: one for one in self.stages} == {one.name: one for one in self.program.stages}

    @property
    def overwritten(self) -> set[str]:
        """Inputs that an output takes the place of."""
        return {one.name for one in self.program.inputs} & set(self.outputs)

    def axes_read(self) -> tuple[str, ...]:
        """Return the axes of all inputs, each once."""
        return tuple(dict.fromkeys(axis for one in self.inputs for axis in one.axes))


def planned(program: FusionProgram, stages: Sequence[Stage] | None = None) -> FusionPlan:
    """Return the plan of a program, or of other stages for it; SpecError only where stages do not fit together."""
    ordered = in_order(program, stages or program.stages)
    axes = axes_of(program, ordered)
    inlined: dict[str, Expression] = {}
    for stage in ordered:
        if isinstance(stage, Map):
            inlined[stage.name] = replaced(stage.expression, inlined)
    anchors = tuple(_inline(stage, inlined) for stage in ordered if not isinstance(stage, Map))
    outputs: dict[str, Expression] = {}
    places: dict[str, tuple[str, ...]] = {}
    for name in program.outputs:
        stage = next((one for one in ordered if one.name == name), None)
        if stage is None:
            raise SpecError(f"output: {unknown('stage', name, [one.name for one in ordered])}")
        place = _place(stage, axes)
        outputs[place], places[place] = inlined.get(name, Name(name)), axes[name]
    return FusionPlan(program, ordered, axes | places, anchors, outputs)


def _inline(stage: Anchor, inlined: Mapping[str, Expression]) -> Anchor:
    if isinstance(stage, Reduce):
        return replace(stage, expression=replaced(stage.expression, inlined))
    return replace(stage, weights=replaced(stage.weights, inlined)) if isinstance(stage, ColumnSums) else stage


def _place(stage: Stage, axes: Axes) -> str:
    """Return where an output goes: its own array, or an input that it takes the place of."""
    if not isinstance(stage, Map) or stage.into is None:
        return stage.name
    if axes.get(stage.into) != axes[stage.name]:
        raise SpecError(f"stage '{stage.name}' goes into '{stage.into}', which is no input of its shape")
    return stage.into
