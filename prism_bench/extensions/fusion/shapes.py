"""Whether the stages fit together: names known, no circle, and along which axes each result is."""

from collections.abc import Iterable, Mapping, Sequence
from keyword import iskeyword

from prism_bench.errors import SpecError, unknown
from prism_bench.extensions.fusion.expression import Expression, names_in
from prism_bench.extensions.fusion.program import FusionProgram
from prism_bench.extensions.fusion.stages import ColumnSums, Nearest, Product, Reduce, RowDots, Scan, Stage, Within

Axes = Mapping[str, tuple[str, ...]]

# What generated sources and the functions of specs use for other things.
TAKEN = """T Op OWN Points ROWS WIDTH apart arguments arrived blocks by_block by_hand column cuda device double dtype
entry epilogue float int launch long op other own p part parts passed point points reduce reference row spec special
splits stages sums tile tiles tolerance weight xp""".split()


def operands(stage: Stage) -> tuple[str, ...]:
    """Return the names that a stage reads."""
    if isinstance(stage, Product):
        return stage.left, stage.right
    if isinstance(stage, RowDots):
        return stage.matrix, stage.vector
    if isinstance(stage, Nearest | Within):
        return (*stage.points, *((stage.radius,) if isinstance(stage, Within) else ()))
    return (*((stage.matrix,) if isinstance(stage, ColumnSums) else ()), *names_in(*stage.expressions))


def extents(program: FusionProgram, stages: Iterable[Stage]) -> tuple[str, ...]:
    """Return the whole numbers that expressions may name: the inputs' axes, and `k` where a stage is Nearest."""
    axes = dict.fromkeys(axis for one in program.inputs for axis in one.axes)
    return (*axes, *(("k",) if any(isinstance(stage, Nearest) for stage in stages) else ()))


def in_order(program: FusionProgram, stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """Return the stages, each after those that it reads; SpecError for a name twice or unknown, and for a circle."""
    numbers = extents(program, stages)
    named = [*(one.name for one in program.inputs), *program.scalars, *(stage.name for stage in stages)]
    _check_names(named, numbers)
    given = {*named, *numbers} - {stage.name for stage in stages}
    by_name: dict[str, Stage] = {stage.name: stage for stage in stages}
    placed: dict[str, Stage] = {}

    def place(name: str, path: list[str]) -> None:
        if name in path:
            raise SpecError(f"stages go in a circle: {' -> '.join([*path[path.index(name) :], name])}")
        for operand in operands(by_name[name]) if name not in placed else ():
            if operand in by_name:
                place(operand, [*path, name])
            elif operand not in given:
                raise SpecError(f"stage '{name}': {unknown('name', operand, named)}")
        placed.setdefault(name, by_name[name])

    for name in by_name:
        place(name, [])
    return tuple(placed.values())


def _check_names(named: Sequence[str], axes: Sequence[str]) -> None:
    for name in (*named, *axes):
        if not name.isidentifier() or iskeyword(name) or name in TAKEN:
            raise SpecError(f"nothing can be called '{name}': the generated source has another use for it")
        if [*named, *axes].count(name) > 1:
            raise SpecError(f"two things are called '{name}': inputs, scalars, stages and axes have different names")


def axes_of(program: FusionProgram, ordered: Sequence[Stage]) -> dict[str, tuple[str, ...]]:
    """Return the axes of every input, scalar and stage, none for one number; SpecError where operands do not fit."""
    axes: dict[str, tuple[str, ...]] = dict.fromkeys((*program.scalars, *extents(program, ordered)), ())
    axes |= {one.name: one.axes for one in program.inputs}
    for stage in ordered:
        axes[stage.name] = _result(stage, axes)
    return axes


def _result(stage: Stage, axes: Axes) -> tuple[str, ...]:
    if isinstance(stage, Product):
        (rows, depth), (wanted, columns) = (_two(stage, name, axes) for name in (stage.left, stage.right))
        _same(stage, f"columns of '{stage.left}'", depth, f"rows of '{stage.right}'", wanted)
        return rows, columns
    if isinstance(stage, RowDots):
        rows, columns = _two(stage, stage.matrix, axes)
        _same(stage, f"columns of '{stage.matrix}'", columns, f"'{stage.vector}'", *axes[stage.vector])
        return (rows,)
    if isinstance(stage, ColumnSums):
        rows, columns = _two(stage, stage.matrix, axes)
        _same(stage, f"rows of '{stage.matrix}'", rows, "its weights", *_joined(stage, stage.weights, axes))
        return (columns,)
    if isinstance(stage, Nearest | Within):
        return _points(stage, axes)
    joined = _joined(stage, stage.expression, axes)
    if isinstance(stage, Reduce) and not joined:
        raise SpecError(f"stage '{stage.name}' reduces what is one number already")
    return () if isinstance(stage, Reduce) else joined


def _points(stage: Scan, axes: Axes) -> tuple[str, ...]:
    along = axes[stage.points[0]][:1]
    for name in operands(stage):
        if axes[name][:1] != along or not along:
            raise SpecError(f"stage '{stage.name}': points of '{stage.points[0]}' go along '{' '.join(along)}', "
                            f"'{name}' along '{' '.join(axes[name][:1])}'")  # fmt: skip
    return along


def _two(stage: Stage, name: str, axes: Axes) -> tuple[str, ...]:
    if len(axes[name]) != 2:
        raise SpecError(f"stage '{stage.name}': '{name}' of shape '{' '.join(axes[name])}' is no matrix")
    return axes[name]


def _same(stage: Stage, what: str, axis: str, other: str, *theirs: str) -> None:
    if (axis,) != theirs:
        raise SpecError(f"stage '{stage.name}': {what} go along '{axis}', {other} along '{' '.join(theirs)}'")


def _joined(stage: Stage, expression: Expression, axes: Axes) -> tuple[str, ...]:
    """Return the axes of an element-wise expression; a vector joins a matrix along its last axis."""
    found = {name: axes[name] for name in names_in(expression) if axes[name]}
    widest = max(found.values(), key=len, default=())
    for name, own in found.items():
        if own != widest and own != widest[-1:]:
            first = next(other for other, theirs in found.items() if theirs == widest)
            raise SpecError(
                f"stage '{stage.name}' joins '{first}' of shape '{' '.join(widest)}' with '{name}' of shape "
                f"'{' '.join(own)}': operands of one expression are along the same axis"
            )
    return widest
