"""Which stages go into one launch, and how: the program with its maps written into what reads them.

A launch walks its arrays once. What the last block to finish knows (sums) may go into further numbers, but not back
into arrays: all other blocks have ended by then.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from prism_bench.errors import SpecError, unknown
from prism_bench.extensions.fusion.expression import Choice, Expression, Name, functions_in, names_in, replaced
from prism_bench.extensions.fusion.program import Program
from prism_bench.extensions.fusion.shapes import axes_of, in_order, operands
from prism_bench.extensions.fusion.stages import Anchor, ColumnSums, Map, Nearest, Product, Reduce, RowDots, Scan

Tiled = ColumnSums | RowDots | Product


@dataclass(frozen=True)
class Plan:
    """One launch. `anchors` are the stages that reduce, `outputs` the expressions to store by output's name."""

    program: Program
    stages: tuple
    axes: Mapping[str, tuple[str, ...]]
    anchors: tuple[Anchor, ...]
    outputs: Mapping[str, Expression]

    @property
    def tiled(self) -> Tiled | None:
        """The stage that walks a matrix, if there is one."""
        return next((one for one in self.anchors if isinstance(one, Tiled)), None)

    @property
    def local(self) -> str:
        """What the kernel calls the result of the stage that walks a matrix, beside an output of that name."""
        return f"{self.tiled.name}_sum" if self.tiled.name in self.outputs else self.tiled.name

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
    def choices(self) -> tuple[Choice, ...]:
        return tuple(one for one in functions_in(*self.expressions) if isinstance(one, Choice))

    def named(self) -> set[str]:
        """Inputs and scalars that are read."""
        return {name for stage in self.anchors for name in operands(stage)} | set(names_in(*self.outputs.values()))

    @property
    def inputs(self):
        written = set(self.outputs)
        return tuple(one for one in self.program.inputs if one.name in self.named() | written)

    @property
    def scalars(self) -> tuple[str, ...]:
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
        """The axes of all inputs, each once."""
        return tuple(dict.fromkeys(axis for one in self.inputs for axis in one.axes))


def planned(program: Program, stages: tuple | None = None) -> Plan:
    """The plan of a program, or of other stages for it; nothing is refused yet but what does not fit together."""
    ordered = in_order(program, stages or program.stages)
    axes = axes_of(program, ordered)
    inlined = {}
    for stage in ordered:
        if isinstance(stage, Map):
            inlined[stage.name] = replaced(stage.expression, inlined)
    anchors = tuple(_inline(stage, inlined) for stage in ordered if not isinstance(stage, Map))
    outputs, places = {}, {}
    for name in program.outputs:
        stage = next((one for one in ordered if one.name == name), None)
        if stage is None:
            raise SpecError(f"output: {unknown('stage', name, [one.name for one in ordered])}")
        place = _place(stage, axes)
        outputs[place], places[place] = inlined.get(name, Name(name)), axes[name]
    return Plan(program, ordered, axes | places, anchors, outputs)


def _inline(stage, inlined):
    if isinstance(stage, Reduce):
        return replace(stage, expression=replaced(stage.expression, inlined))
    return replace(stage, weights=replaced(stage.weights, inlined)) if isinstance(stage, ColumnSums) else stage


def _place(stage, axes):
    """Where an output goes: an array of its own, or an input that it takes the place of."""
    if not isinstance(stage, Map) or stage.into is None:
        return stage.name
    if axes.get(stage.into) != axes[stage.name]:
        raise SpecError(f"stage '{stage.name}' goes into '{stage.into}', which is no input of its shape")
    return stage.into
