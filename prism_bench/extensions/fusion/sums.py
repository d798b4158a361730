"""Maps and reductions along vectors: a grid of any size walks them, the last block to finish adds up."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from prism_bench.extensions.fusion.asking import Asking
from prism_bench.extensions.fusion.cuda_text import cuda
from prism_bench.extensions.fusion.expression import Expression, Name, names_in, replaced
from prism_bench.extensions.fusion.includes import Includes
from prism_bench.extensions.fusion.kernel_code import (
    EntryCall,
    KernelCode,
    function,
    grid_workspace,
    headers_of,
    packed,
    signature,
)
from prism_bench.extensions.fusion.plan import FusionPlan
from prism_bench.extensions.fusion.refusals import cannot_fuse
from prism_bench.extensions.fusion.stages import REDUCTIONS
from prism_bench.spec.arguments import Scalar, Scratch, Size
from prism_bench.spec.kernel import Launch


@dataclass(frozen=True)
class SumsHost:
    """Blocks along the longest of the axes, with `count` reductions."""

    axes: tuple[str, ...]
    count: int

    @property
    def workspace(self) -> Mapping[str, str]:
        return grid_workspace("most blocks", self.count)

    @property
    def sizes(self) -> tuple[Scalar, ...]:
        return tuple(Size(axis, "int64") for axis in self.axes)

    def scratch(self, number: str, includes: Includes) -> tuple[Scratch, ...]:
        return includes.value("arrays.map_arrays", "sum_scratch")(self.count) if self.count else ()

    def launch(self, call: EntryCall, includes: Includes) -> Callable[..., Launch]:
        if not self.count:
            launch = includes.value("arrays.map_arrays", "launch_map")(call.entry, arguments=call.arguments)
            return Asking(self.axes[:1], launch(call.number))
        sum_launch = includes.value("arrays.map_arrays", "sum_launch")
        entry = call.entry.format(includes.value("arrays.map_arrays", "NUMBERS")[call.number])
        return Asking(
            (*self.axes, "device"),
            lambda *sizes: sum_launch(entry, max(sizes[:-1]), sizes[-1], call.arguments, call.number),
        )

    def derived(self, number: str, includes: Includes) -> dict[str, Callable[..., int]]:
        return {}


def write(plan: FusionPlan, entry: str) -> KernelCode:
    """Return the kernel of maps and reductions over one axis or several."""
    parameter = "reduce" if plan.chosen else next((choice.parameter for choice in plan.choices), None)
    if parameter:
        raise cannot_fuse(plan.stages[0].name, f"the parameter '{parameter}' chooses for RowDots and Product alone")
    axes, count = plan.axes_read(), len(plan.reduces)
    maps = {name: one for name, one in plan.outputs.items() if plan.axes[name]}
    if not count and len({plan.axes[name] for name in maps}) > 1:
        raise cannot_fuse(list(maps)[-1], "it maps over another axis than the outputs before it")
    scratch = ["double* by_block", "unsigned int* arrived"] if count else []
    after = [*scratch, *(f"T {name}" for name in plan.scalars), *(f"long long {axis}" for axis in axes)]
    bounds = "512, RESIDENT<T>" if count else "256"
    head = f"template <class T>\n__global__ void __launch_bounds__({bounds})\n    {entry}("
    body = [_map(plan, name, one) for name, one in maps.items()] + (_reductions(plan) if count else [])
    return KernelCode(
        headers=tuple(dict.fromkeys([*headers_of(plan), _header(plan)])),
        kernels="\n".join([signature(head, plan, "T", after), *body, "}"]),
        entry=f"{entry}<{{}}>",
        host=SumsHost(axes, count),
    )


def _header(plan: FusionPlan) -> str:
    return "sums/grid_reduce.cuh" if any(one.how != "sum" for one in plan.reduces) else "arrays/map_arrays.cuh"


def _function(plan: FusionPlan, name: str, expression: Expression) -> tuple[str, list[str]]:
    """Return a lambda of the vectors in an expression, and their names."""
    vectors = [one for one in names_in(expression) if plan.axes[one]]
    captured = "=" if set(names_in(expression)) - set(vectors) else ""
    return function(name, ", ".join(f"T {one}" for one in vectors), captured, cuda(expression)), vectors


def _map(plan: FusionPlan, name: str, expression: Expression) -> str:
    text, vectors = _function(plan, f"{name}_of", expression)
    return packed(f"{text}\n    map_arrays(", [name, *plan.axes[name], f"{name}_of", *vectors], ");")


def _reductions(plan: FusionPlan) -> list[str]:
    """Return terms, the threads' parts, and what the last block makes of the sums."""
    lines, parts = [], []
    for stage in plan.reduces:
        text, vectors = _function(plan, f"{stage.name}_term", stage.expression)
        lines.append(text)
        made = "thread_sum<T>" if stage.how == "sum" else f"thread_reduce<T, {REDUCTIONS[stage.hows[0]]}>"
        axis = plan.axes[vectors[0]][0]
        parts.append(f"{made}({', '.join([axis, f'{stage.name}_term', *vectors])})")
    lines.append(packed("    double part[] = {", parts, "};"))
    return lines + finish(plan, _joined(plan))


def _joined(plan: FusionPlan) -> str:
    if all(one.how == "sum" for one in plan.reduces):
        return "grid_sums(part, by_block, arrived)"
    return f"grid_reduce<{', '.join(REDUCTIONS[one.hows[0]] for one in plan.reduces)}>(part, by_block, arrived)"


def finish(plan: FusionPlan, joined: str, number: str = "T") -> list[str]:
    """Return the last lines of a kernel with reductions: numbers that follow from them, stored by one thread."""
    stored = {name: one for name, one in plan.outputs.items() if not plan.axes[name]}
    lines = [f"    if (!{joined}) return;"]
    used = set(names_in(*stored.values()))
    lines += [
        f"    const double {stage.name}_all = part[{position}];"
        for position, stage in enumerate(plan.reduces)
        if stage.name in used
    ]
    whole = {one.name: Name(f"{one.name}_all") for one in plan.reduces}
    for name, expression in stored.items():
        lines.append(f"    *{name} = static_cast<{number}>({cuda(replaced(expression, whole), 'double')});")
    return lines
