"""Maps and reductions along vectors: a grid of any size walks them, the last block to finish adds up."""

from prism_bench.extensions.fusion.expression import Name, cuda, names_in, replaced
from prism_bench.extensions.fusion.plan import Plan
from prism_bench.extensions.fusion.refusals import cannot_fuse
from prism_bench.extensions.fusion.stages import REDUCTIONS
from prism_bench.extensions.fusion.written import Written, function, headers_of, packed, signature


def write(plan: Plan, entry: str) -> Written:
    """The kernel of maps and reductions over one axis or several."""
    parameter = "reduce" if plan.chosen else next((choice.parameter for choice in plan.choices), None)
    if parameter:
        raise cannot_fuse(plan.stages[0].name, f"the parameter '{parameter}' chooses for RowDots and Product alone")
    axes, count = plan.axes_read(), len(plan.reduces)
    maps = {name: one for name, one in plan.outputs.items() if plan.axes[name]}
    if not count and len({plan.axes[name] for name in maps}) > 1:
        raise cannot_fuse(list(maps)[-1], "it maps over another axis than the outputs before it")
    scratch = ["double* by_block", "unsigned int* arrived"] if count else []
    after = [*scratch, *(f"T {name}" for name in plan.scalars), *(f"long long {axis}" for axis in axes)]
    head = "template <class T>\n__global__ void __launch_bounds__({})\n    {}("
    body = [_map(plan, name, one) for name, one in maps.items()] + (_reductions(plan) if count else [])
    return Written(
        headers=tuple(dict.fromkeys([*headers_of(plan), _header(plan)])),
        kernels="\n".join([signature(head.format(512 if count else 256, entry), plan, "T", after), *body, "}"]),
        entry=f"{entry}<{{}}>",
        scratch=(f"*sum_scratch({count})",) if count else (),
        sizes=tuple(f'Size("{axis}", "int64")' for axis in axes),
        launch=_launch(axes, count, entry),
        shared={"map_arrays": ("NUMBERS", "sum_launch", "sum_scratch") if count else ("NUMBERS", "launch_map")},
    )


def _launch(axes, count, entry):
    if not count:
        return f"return lambda {axes[0]}: launch_map(entry, arguments=passed)(dtype)({axes[0]})"
    most = axes[0] if len(axes) == 1 else f"max({', '.join(axes)})"
    call = f"sum_launch(entry.format(NUMBERS[dtype]), {most}, device, passed)"
    return f"return lambda {', '.join([*axes, 'device'])}: {call}"


def _header(plan):
    return "grid_reduce.cuh" if any(one.how != "sum" for one in plan.reduces) else "map_arrays.cuh"


def _function(plan, name, expression):
    """A lambda of the vectors in an expression, and their names."""
    vectors = [one for one in names_in(expression) if plan.axes[one]]
    captured = "=" if set(names_in(expression)) - set(vectors) else ""
    return function(name, ", ".join(f"T {one}" for one in vectors), captured, cuda(expression)), vectors


def _map(plan, name, expression):
    text, vectors = _function(plan, f"{name}_of", expression)
    return packed(f"{text}\n    map_arrays(", [name, *plan.axes[name], f"{name}_of", *vectors], ");")


def _reductions(plan):
    """Terms, the threads' parts, and what the last block makes of the sums."""
    lines, parts = [], []
    for stage in plan.reduces:
        text, vectors = _function(plan, f"{stage.name}_term", stage.expression)
        lines.append(text)
        made = "thread_sum<T>" if stage.how == "sum" else f"thread_reduce<T, {REDUCTIONS[stage.how]}>"
        axis = plan.axes[vectors[0]][0]
        parts.append(f"{made}({', '.join([axis, f'{stage.name}_term', *vectors])})")
    lines.append(packed("    double part[] = {", parts, "};"))
    return lines + finish(plan, _joined(plan))


def _joined(plan):
    if all(one.how == "sum" for one in plan.reduces):
        return "grid_sums(part, by_block, arrived)"
    return f"grid_reduce<{', '.join(REDUCTIONS[one.how] for one in plan.reduces)}>(part, by_block, arrived)"


def finish(plan: Plan, joined: str, number: str = "T") -> list[str]:
    """The last lines of a kernel with reductions: the numbers that follow from them, stored by one thread."""
    stored = {name: one for name, one in plan.outputs.items() if not plan.axes[name]}
    lines = [f"    if (!{joined}) return;"]
    used = set(names_in(*stored.values()))
    lines += [
        f"    const double {stage.name}_all = part[{position}];"
        for position, stage in enumerate(plan.reduces) if stage.name in used
    ]  # fmt: skip
    for name, expression in stored.items():
        text = cuda(whole(plan, expression), "double")
        lines.append(f"    *{name} = static_cast<{number}>({text});")
    return lines


def whole(plan: Plan, expression):
    """An expression of reduced numbers, in the names that they have in the last block."""
    return replaced(expression, {one.name: Name(f"{one.name}_all") for one in plan.reduces})
