"""The form of a program that fuses nothing: every stage, and every function before a sum, in a separate launch.

What one launch hands on to the next is in memory meanwhile. The fused kernel is compared with this form.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from prism_bench.extensions.fusion import columns, sums
from prism_bench.extensions.fusion.asking import Asking
from prism_bench.extensions.fusion.cuda_text import cuda
from prism_bench.extensions.fusion.expression import Name, names_in, replaced
from prism_bench.extensions.fusion.includes import Includes
from prism_bench.extensions.fusion.kernel_code import EntryCall, KernelCode, packed
from prism_bench.extensions.fusion.plan import planned
from prism_bench.extensions.fusion.program import FusionProgram, Input
from prism_bench.extensions.fusion.shapes import Axes, axes_of, extents, in_order, operands
from prism_bench.extensions.fusion.stages import ColumnSums, Map, Reduce, Stage
from prism_bench.spec.arguments import Scalar, Scratch
from prism_bench.spec.kernel import Launch

VARIANT = "separate"


@dataclass(frozen=True)
class SeparateLaunch:
    """The launch of one stage: its kernel, and the names that it is passed."""

    stage: str
    code: KernelCode
    passed: tuple[str, ...]

    def launch(self, number: str, includes: Includes) -> Callable[..., Launch]:
        """Return the `launch` of the stage for that type."""
        return self.code.host.launch(EntryCall(number, self.code.entry, self.passed), includes)


@dataclass(frozen=True)
class SeparateForm:
    """The launches of all stages, and the arrays `between` them with their axes (none for one number)."""

    launches: tuple[SeparateLaunch, ...]
    between: Mapping[str, tuple[str, ...]]

    @property
    def sizes(self) -> tuple[Scalar, ...]:
        """The sizes of all launches, each once: those of 64 bits have other names than those of 32."""
        sizes = (size for one in self.launches for size in one.code.host.sizes)
        return tuple(dict.fromkeys(replace(size, name=size_name(size)) for size in sizes))

    def scratch(self, number: str, includes: Includes) -> tuple[Scratch, ...]:
        """Return the workspace of all launches, each array once."""
        return tuple(dict.fromkeys(a for one in self.launches for a in one.code.host.scratch(number, includes)))

    def between_launches(self, number: str) -> tuple[Scratch, ...]:
        """Return the arrays that launches hand on to later ones."""
        return tuple(Scratch(name, " ".join(axes) or "1", number) for name, axes in self.between.items())

    def derived(self, number: str, includes: Includes) -> dict[str, Callable[..., int]]:
        """Return the derived sizes of all launches; those of 64 bits follow from the axes."""
        wide = [size.name for size in self.sizes if size.name.startswith("wide_")]
        found: dict[str, Callable[..., int]] = {name: Asking((name.removeprefix("wide_"),), int) for name in wide}
        for one in self.launches:
            found |= one.code.host.derived(number, includes)
        return found

    def launch(self, number: str, includes: Includes) -> Callable[..., tuple[Launch, ...]]:
        """Return the host plan: the launches one after the other."""
        together = includes.value("launches.host_plan", "together")
        return together(*(launch.launch(number, includes) for launch in self.launches))


def separated(program: FusionProgram, name: str) -> SeparateForm | None:
    """Return the program's launches, or None where stages come in one launch alone.

    So do stages whose launches would have different workspaces of one name.
    """
    stages = tuple(_alone(program.stages))
    if len(stages) < 2 or not all(_can_be_alone(one, program) for one in stages):
        return None
    ordered = in_order(program, stages)
    axes = axes_of(program, ordered)
    found = SeparateForm(
        tuple(_launch(program, one, axes, f"{name}_alone_{one.name}") for one in ordered),
        {one.name: axes[one.name] for one in ordered if one.name not in program.outputs},
    )
    return found if _workspaces_agree(found) else None


def _alone(stages: Sequence[Stage]) -> Iterator[Stage]:
    """Yield the stages, with a map before each sum of more than a name."""
    for stage in stages:
        inner = stage.expressions[0] if isinstance(stage, ColumnSums | Reduce) else None
        if inner is None or isinstance(inner, Name):
            yield stage
            continue
        terms = Map(f"{stage.name}_terms", inner)
        yield terms
        if isinstance(stage, ColumnSums):
            yield replace(stage, weights=Name(terms.name))
        elif isinstance(stage, Reduce):
            yield replace(stage, expression=Name(terms.name))


def _can_be_alone(stage: Stage, program: FusionProgram) -> bool:
    """Return whether a stage is of a kind that has separate launches, and needs no more of the host than arrays."""
    plain = isinstance(stage, Map | ColumnSums) or (isinstance(stage, Reduce) and not stage.chosen)
    return plain and not set(operands(stage)) & set(extents(program, ()))


def _workspaces_agree(found: SeparateForm) -> bool:
    """Return whether workspace of one name has one shape in all launches."""
    arrays = {array for one in found.launches for array in one.code.host.workspace.items()}
    return len(arrays) == len({name for name, _ in arrays})


def _launch(program: FusionProgram, stage: Stage, axes: Axes, entry: str) -> SeparateLaunch:
    """Return the launch of a program of that stage alone, whose inputs are what others have left in memory."""
    read = [name for name in operands(stage) if axes[name]]
    into = stage.into if isinstance(stage, Map) else None
    given = [one.name for one in program.inputs if one.name in {*read, into}]
    given += [name for name in dict.fromkeys(read) if name not in given]
    if not given and isinstance(stage, Map):
        return _of_numbers(program, stage, entry)
    alone = replace(
        program, inputs=tuple(Input(name, " ".join(axes[name])) for name in given), stages=(stage,),
        outputs=(stage.name,), forms={}, by_hand=None,
    )  # fmt: skip
    plan = planned(alone)
    tiled = plan.tiled
    code = columns.write(plan, tiled, entry) if isinstance(tiled, ColumnSums) else sums.write(plan, entry)
    outputs = [name for name in plan.outputs if name not in plan.overwritten]
    inputs, sizes = [one.name for one in plan.inputs], map(size_name, code.host.sizes)
    return SeparateLaunch(stage.name, code, (*inputs, *outputs, *code.host.workspace, *plan.scalars, *sizes))


def size_name(size: Scalar) -> str:
    """Return what a size is called in the form's arguments: one of 64 bits is not the one of 32."""
    return f"wide_{size.name}" if size.dtype == "int64" else size.name


@dataclass(frozen=True)
class OneThreadHost:
    """One thread, which needs nothing but what it is passed."""

    @property
    def sizes(self) -> tuple[Scalar, ...]:
        return ()

    @property
    def workspace(self) -> Mapping[str, str]:
        return {}

    def scratch(self, number: str, includes: Includes) -> tuple[Scratch, ...]:
        return ()

    def launch(self, call: EntryCall, includes: Includes) -> Callable[..., Launch]:
        entry = call.entry.format(includes.value("arrays.map_arrays", "NUMBERS")[call.number])
        return Asking((), lambda: Launch(1, 1, entry=entry, arguments=call.arguments))

    def derived(self, number: str, includes: Includes) -> dict[str, Callable[..., int]]:
        return {}


def _of_numbers(program: FusionProgram, stage: Map, entry: str) -> SeparateLaunch:
    """Return the launch of one thread, for what follows from sums."""
    read = names_in(stage.expression)
    scalars = [name for name in read if name in program.scalars]
    sums_read = [name for name in read if name not in scalars]
    taken = [*(f"const T* {name}" for name in sums_read), f"T* {stage.name}", *(f"T {name}" for name in scalars)]
    text = cuda(replaced(stage.expression, {name: Name(f"*{name}") for name in sums_read}))
    head = packed(f"template <class T>\n__global__ void __launch_bounds__(1)\n    {entry}(", taken, ") {")
    code = KernelCode((), f"{head}\n    *{stage.name} = {text};\n}}", f"{entry}<{{}}>", OneThreadHost())
    return SeparateLaunch(stage.name, code, (*sums_read, stage.name, *scalars))
