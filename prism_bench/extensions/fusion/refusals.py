"""What one launch cannot do, refused with the reason.

A launch walks its arrays once. What the last block to finish knows (sums) may go into further numbers, but not back
into arrays: all other blocks have ended by then.
"""

from itertools import pairwise

from prism_bench.errors import SpecError
from prism_bench.extensions.fusion.expression import Expression, Name, names_in, replaced, substituted
from prism_bench.extensions.fusion.plan import FusionPlan
from prism_bench.extensions.fusion.shapes import operands
from prism_bench.extensions.fusion.stages import (
    Anchor,
    ColumnSums,
    Nearest,
    Product,
    Reduce,
    RowDots,
    Scan,
    Tiled,
    Within,
)


def cannot_fuse(stage: str, reason: str) -> SpecError:
    """Return the error for a stage or an output that no launch of this program can hold."""
    return SpecError(f"'{stage}' cannot be fused: {reason}")


def refuse(plan: FusionPlan) -> None:
    """Raise a SpecError with the reason where no one launch does what is planned."""
    _refuse_barriers(plan)
    _refuse_second_matrix(plan)
    _refuse_operands(plan)
    _refuse_scans(plan)
    _refuse_by_kind(plan)
    _refuse_overwriting(plan)
    if plan.stages_are_the_programs:
        unused = [one.name for one in plan.program.inputs if one.name not in plan.named()]
        if unused:
            raise SpecError(f"input '{unused[0]}' is read by no stage")


def _refuse_barriers(plan: FusionPlan) -> None:
    late = {one.name for one in plan.reduces}
    reads = [(name, late & set(names_in(one))) for name, one in plan.outputs.items() if plan.axes[name]]
    reads += [(one.name, late & set(operands(one))) for one in plan.anchors]
    for name, held in reads:
        if held:
            raise cannot_fuse(
                name, f"it goes over an axis with '{min(held)}', which is known only when the last block has finished; "
                "all others would have to wait for it (a grid barrier). Make it a separate program"
            )  # fmt: skip


def _refuse_second_matrix(plan: FusionPlan) -> None:
    tiled = [one for one in plan.anchors if isinstance(one, Tiled)]
    for first, stage in pairwise(tiled):
        raise cannot_fuse(
            stage.name, f"it walks a matrix, as '{first.name}' does, in its own tiles, and one launch walks one "
            "matrix. Make it a separate program"
        )  # fmt: skip


def _refuse_operands(plan: FusionPlan) -> None:
    given = {one.name: one for one in plan.program.inputs}
    for stage in plan.anchors:
        for name in _in_memory(stage):
            if name not in given:
                raise cannot_fuse(
                    stage.name, f"every block reads all of '{name}', so it must be in memory before the launch; "
                    "make it an input"
                )  # fmt: skip
    for name in names_in(*plan.expressions):
        if name in given and len(given[name].axes) == 2:
            raise cannot_fuse(
                name,
                f"maps go along one axis, not over '{given[name].shape}'; matrices are for the stages that walk them",
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
    """Refuse what a scan over all pairs of points cannot go with: it gives numbers of each point."""
    if not plan.scans:
        return
    first, nearest = plan.scans[0], [one for one in plan.scans if isinstance(one, Nearest)]
    if plan.tiled:
        raise cannot_fuse(first.name, f"it goes over all pairs of points, '{plan.tiled.name}' over a matrix")
    for other in nearest[1:]:
        raise cannot_fuse(other.name, f"a kernel looks for one k-th neighbour, and '{nearest[0].name}' does")
    if len(plan.clouds) > 3:
        raise cannot_fuse(first.name, f"points come from three arrays at most, not from {', '.join(plan.clouds)}")
    if plan.choices or plan.chosen:
        raise cannot_fuse(first.name, "parameters choose functions and reductions for RowDots and Product alone")
    known = {one.name for one in (*plan.program.inputs, *nearest)}
    for one in plan.scans:
        if isinstance(one, Within) and one.radius not in known:
            raise cannot_fuse(one.name, f"its radius '{one.radius}' is neither an input nor a neighbour's distance")
    _refuse_other_axes(plan, plan.axes[first.name])


def _refuse_other_axes(plan: FusionPlan, along: tuple[str, ...]) -> None:
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
            next(iter(plan.outputs)), f"an epilogue is a function of {product} + one vector, and of scalars; this one "
            f"holds {', '.join(vectors)} in another way"
        )  # fmt: skip
    return replaced(bare, {product: Name("sums")}), next(iter(vectors), None)


def _refuse_overwriting(plan: FusionPlan) -> None:
    elsewhere = {name for stage in plan.anchors for name in operands(stage)} if plan.tiled or plan.scans else set()
    for name in plan.overwritten:
        if name in elsewhere or (not plan.tiled and len(plan.outputs) > 1):
            reason = "it is overwritten while other blocks still read it; give it an output that is no input"
            raise cannot_fuse(name, reason)
