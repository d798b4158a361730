"""The form of a program that fuses nothing: every stage, and every function before a sum, in a launch of its own.

What one launch hands on to the next stands in memory meanwhile. It is what the fused kernel is held against.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from prism_bench.extensions.fusion import columns, sums
from prism_bench.extensions.fusion.expression import Name, cuda, names_in, replaced
from prism_bench.extensions.fusion.plan import planned
from prism_bench.extensions.fusion.program import Input, Program
from prism_bench.extensions.fusion.shapes import axes_of, extents, in_order, operands
from prism_bench.extensions.fusion.stages import ColumnSums, Map, Reduce
from prism_bench.extensions.fusion.written import Written, packed


@dataclass(frozen=True)
class Step:
    """One launch: the stage that it does, what its kind of launch wrote, and the names that it is passed."""

    stage: str
    written: Written
    passed: tuple[str, ...]


@dataclass(frozen=True)
class Separate:
    """All steps of a program, and the arrays `between` them with their axes (none for one number)."""

    steps: tuple[Step, ...]
    between: Mapping[str, tuple[str, ...]]

    def texts(self, part: str) -> tuple[str, ...]:
        """`scratch` or `sizes` of all steps, each text once."""
        return tuple(dict.fromkeys(text for one in self.steps for text in getattr(one.written, part)))


def separated(program: Program, name: str) -> Separate | None:
    """The program's steps; None where it has stages that come in one launch alone, or whose steps share no plan."""
    stages = tuple(_alone(program.stages))
    if len(stages) < 2 or not all(_can_stand_alone(one, program) for one in stages):
        return None
    ordered = in_order(program, stages)
    axes = axes_of(program, ordered)
    found = Separate(
        tuple(_step(program, one, axes, f"{name}_alone_{one.name}") for one in ordered),
        {one.name: axes[one.name] for one in ordered if one.name not in program.outputs},
    )
    return found if _alike(found) else None


def _alone(stages) -> Iterator:
    """The stages, with a map before each sum of more than a name."""
    for stage in stages:
        part = {ColumnSums: "weights", Reduce: "expression"}.get(type(stage))
        inner = getattr(stage, part) if part else None
        if inner is None or isinstance(inner, Name):
            yield stage
        else:
            terms = Map(f"{stage.name}_terms", inner)
            yield from (terms, replace(stage, **{part: Name(terms.name)}))


def _can_stand_alone(stage, program):
    """Whether a stage is of a kind that has launches of its own, and needs no more of the host than arrays."""
    plain = isinstance(stage, Map | ColumnSums) or (isinstance(stage, Reduce) and not stage.chosen)
    return plain and not set(operands(stage)) & set(extents(program, ()))


def _alike(found):
    """Whether working memory of one name is the same for all steps."""
    names = [name for text in found.texts("scratch") for name in scratch_names(text)]
    return len(names) == len(set(names))


def scratch_names(text: str) -> tuple[str, ...]:
    """The arrays that a text of a spec sets aside."""
    return tuple(re.findall(r'Scratch\("(\w+)"', text)) or ("by_block", "arrived")


def _step(program, stage, axes, entry):
    """A program of that stage alone, whose inputs are what others have left in memory."""
    read = [name for name in operands(stage) if axes[name]]
    into = getattr(stage, "into", None)
    given = [one.name for one in program.inputs if one.name in {*read, into}]
    given += [name for name in dict.fromkeys(read) if name not in given]
    if not given:
        return _of_numbers(program, stage, entry)
    alone = replace(
        program, inputs=tuple(Input(name, " ".join(axes[name])) for name in given), stages=(stage,),
        outputs=(stage.name,), forms={}, by_hand=None,
    )  # fmt: skip
    plan = planned(alone)
    written = (columns if plan.tiled else sums).write(plan, entry)
    outputs = [name for name in plan.outputs if name not in plan.overwritten]
    scratch = [name for text in written.scratch for name in scratch_names(text)]
    sizes = [size_name(text) for text in written.sizes]
    inputs = [one.name for one in plan.inputs]
    return Step(stage.name, written, (*inputs, *outputs, *scratch, *plan.scalars, *sizes))


def size_name(text: str) -> str:
    """What a size is called in the form's arguments: one of 64 bits is not the one of 32."""
    name = text.split('"')[1]
    return f"wide_{name}" if "int64" in text else name


def _of_numbers(program, stage, entry):
    """One thread for what follows from sums."""
    read = names_in(stage.expression)
    scalars = [name for name in read if name in program.scalars]
    sums_read = [name for name in read if name not in scalars]
    taken = [*(f"const T* {name}" for name in sums_read), f"T* {stage.name}", *(f"T {name}" for name in scalars)]
    text = cuda(replaced(stage.expression, {name: Name(f"*{name}") for name in sums_read}))
    head = packed(f"template <class T>\n__global__ void __launch_bounds__(1)\n    {entry}(", taken, ") {")
    written = Written(
        headers=(), kernels=f"{head}\n    *{stage.name} = {text};\n}}", entry=f"{entry}<{{}}>", scratch=(), sizes=(),
        launch="return lambda: Launch(1, 1, entry=entry.format(NUMBERS[dtype]), arguments=passed)",
        shared={"map_arrays": ("NUMBERS",)},
    )  # fmt: skip
    return Step(stage.name, written, (*sums_read, stage.name, *scalars))
