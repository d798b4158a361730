"""How many operations a plan takes, as the `flops` of a spec."""

from math import prod

from prism_bench.extensions.fusion.asking import Asking
from prism_bench.extensions.fusion.expression import Expression, flops, names_in
from prism_bench.extensions.fusion.plan import FusionPlan
from prism_bench.extensions.fusion.stages import Anchor, ColumnSums, Nearest, Product, Reduce, RowDots

Counts = dict[tuple[str, ...], int]  # operations by the axes that they are done along


def operations(plan: FusionPlan) -> Asking:
    """Return the function of axes: a function call or an operator counts, a product's step counts two."""
    counts: Counts = {}
    for anchor in plan.anchors:
        for axes, count in _of_stage(plan, anchor):
            counts[axes] = counts.get(axes, 0) + count
    for name, one in plan.outputs.items():
        counts[plan.axes[name]] = counts.get(plan.axes[name], 0) + flops(one)
    terms = {axes: count for axes, count in counts.items() if axes and count}
    names = tuple(dict.fromkeys(axis for axes in terms for axis in axes))

    def counted(*extents: int) -> int:
        known = dict(zip(names, extents, strict=True))
        return sum(count * prod(known[axis] for axis in axes) for axes, count in terms.items())

    return Asking(names, counted)


def _of_stage(plan: FusionPlan, stage: Anchor) -> list[tuple[tuple[str, ...], int]]:
    """Return operations by axes; a scan takes two a coordinate, and a comparison with the k nearest or each radius."""
    axes = plan.axes
    if isinstance(stage, Reduce):
        return [(_axes(plan, stage.expression), flops(stage.expression) + (2 if stage.how == "squares" else 1))]
    if isinstance(stage, Product):
        return [((*axes[stage.left], axes[stage.right][1]), 2)]
    if isinstance(stage, ColumnSums | RowDots):
        return [(axes[stage.matrix], 2), (axes[stage.matrix][:1], sum(flops(one) for one in stage.expressions))]
    along = axes[stage.name]
    compared = 1 if isinstance(stage, Nearest) else len(stage.points)
    return [*(((*along, *axes[name]), 2) for name in stage.points), ((*along, *along), compared)]


def _axes(plan: FusionPlan, expression: Expression) -> tuple[str, ...]:
    return next(plan.axes[name] for name in names_in(expression) if plan.axes[name])
