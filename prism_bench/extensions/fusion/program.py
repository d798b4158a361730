"""A program: inputs, stages and outputs named once, and whether they fit together."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from keyword import iskeyword
from typing import Any, ClassVar

from prism_bench.errors import SpecError, unknown
from prism_bench.extensions.fusion.expression import Expression, SharedName, names_in
from prism_bench.spec.inputs import Fill
from prism_bench.spec.kernel import Golden
from prism_bench.spec.peer import Peer
from prism_bench.spec.workload import Workload

# What a stage of a program may be.

REDUCTIONS = {"sum": "SumOf", "squares": "SquaresOf", "max": "LargestOf"}  # and their functors in the headers
PRECISIONS = ("float32", "three_bfloat16", "tf32", "float16", "bfloat16", "float8")
AS_BITS = ("bfloat16", "float8")  # which travel as unsigned integers


@dataclass(frozen=True)
class Map:
    """`name` = the expression at every place of its axis, or of finished sums; stored in input `into`, if any."""

    name: str
    expression: Expression
    into: str | None = None

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The expressions that the stage computes."""
        return (self.expression,)


@dataclass(frozen=True)
class Reduce:
    """`name` = the expression reduced over its axis, in a fixed order.

    `how` is sum, squares or max, or a tuple of some of them, which makes `reduce` a parameter of the kernel.
    """

    name: str
    how: str | tuple[str, ...]
    expression: Expression

    def __post_init__(self) -> None:
        for how in self.hows:
            if how not in REDUCTIONS:
                raise SpecError(f"stage '{self.name}': unknown reduction '{how}'; known: {', '.join(REDUCTIONS)}")

    @property
    def hows(self) -> tuple[str, ...]:
        """All ways to reduce, the default first."""
        return (self.how,) if isinstance(self.how, str) else self.how

    @property
    def chosen(self) -> bool:
        """Whether a parameter of the kernel chooses how."""
        return not isinstance(self.how, str)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The expressions that the stage computes."""
        return (self.expression,)


@dataclass(frozen=True)
class ColumnSums:
    """`name`[j] = sum over i of matrix[i, j] weights[i], where the weights may be an expression."""

    name: str
    matrix: str
    weights: Expression

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """What is computed before the stage takes it further."""
        return (self.weights,)


@dataclass(frozen=True)
class RowDots:
    """`name`[i] = sum over j of matrix[i, j] vector[j]."""

    name: str
    matrix: str
    vector: str

    expressions: ClassVar[tuple[Expression, ...]] = ()


@dataclass(frozen=True)
class Product:
    """`name`[i, j] = sum over k of left[i, k] right[k, j], with sums in float32.

    `precisions` are those of the operands, the first one the kernel's and the others variants: float32 on the FMA
    units, tf32, float16, bfloat16 and float8 (e4m3) on the tensor cores, and three_bfloat16, which has float32's
    precision there: each operand is the sum of three bfloat16.
    """

    name: str
    left: str
    right: str
    precisions: tuple[str, ...] = ("float32",)

    expressions: ClassVar[tuple[Expression, ...]] = ()

    def __post_init__(self) -> None:
        for precision in self.precisions:
            if precision not in PRECISIONS:
                raise SpecError(f"stage '{self.name}': unknown precision '{precision}'; known: {', '.join(PRECISIONS)}")
        if not self.precisions or self.precisions[0] != "float32":
            raise SpecError(f"stage '{self.name}': precisions begin with float32, the kernel's own")


@dataclass(frozen=True)
class Nearest:
    """`name`[i] = the distance of point i's k-th neighbour, in the maximum norm over all coordinates of `points`.

    Those are inputs of one row (or one number) a point; `k` is a parameter of the kernel, here its default.
    """

    name: str
    points: tuple[str, ...]
    k: int = 4

    expressions: ClassVar[tuple[Expression, ...]] = ()


@dataclass(frozen=True)
class Within:
    """`name`[i] = how many other points are strictly nearer to point i than `radius`[i], in the maximum norm."""

    name: str
    points: tuple[str, ...]
    radius: str

    expressions: ClassVar[tuple[Expression, ...]] = ()


Scan = Nearest | Within
Tiled = ColumnSums | RowDots | Product
Anchor = Reduce | Tiled | Scan
Stage = Map | Anchor


# A program: inputs, stages and outputs named once, and all else that the spec of its kernel needs.

NUMBERS = ("float32", "float64")
SAMPLES = SharedName("neighbours.neighbours", "SAMPLES")


@dataclass(frozen=True)
class Input:
    """An array read by the stages; `shape` names one axis or two, `fill` how it is drawn (normal where it is None)."""

    name: str
    shape: str
    fill: Fill | SharedName | None = None

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of the axes."""
        return tuple(self.shape.split())


@dataclass(frozen=True)
class ByHand:
    """The hand-written form, a variant of the kernel: `entry` of `<name>.cu` in the family's folder.

    {} in the entry is a place for what varies: the number's type, or tile and template arguments. `tensor` is the entry
    for tensor cores; `arguments` are the names to pass where they are not the generated kernel's.
    """

    entry: str
    arguments: tuple[str, ...] | None = None
    tensor: str | None = None


@dataclass(frozen=True)
class ProgramForm:
    """Other stages for the same inputs and outputs: a variant of the kernel, timed at the documents' size."""

    meaning: str
    stages: tuple[Stage, ...]


@dataclass(frozen=True)
class FusionProgram:
    """What one fused kernel computes. Stages name inputs, scalars and each other, in any order; `outputs` name stages.

    `scalars` are parameters with their defaults. `numbers` are the types that it comes in: float32 and float64.
    `peers` are the library calls to time.
    `within` is how far an output may be from float64 on unrounded inputs, normwise: `tune --precision` chooses by
    it.
    """

    inputs: tuple[Input, ...]
    stages: tuple[Stage, ...]
    outputs: tuple[str, ...]
    workloads: Mapping[str, Workload]
    edges: tuple[Workload, ...]
    scalars: Mapping[str, float] = field(default_factory=dict)
    numbers: tuple[str, ...] = ("float32",)
    golden: tuple[Golden, ...] = ()
    peers: Mapping[str, Peer | Callable[..., Any]] = field(default_factory=dict)
    forms: Mapping[str, ProgramForm] = field(default_factory=dict)
    within: float | None = None
    by_hand: ByHand | None = None
    aliases: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for number in self.numbers:
            if number not in NUMBERS:
                raise SpecError(f"unknown precision '{number}' of the program; known: {', '.join(NUMBERS)}")
        if self.within is not None and not self.within > 0:
            raise SpecError(f"within is {self.within}: an error greater than 0, such as 1e-3")
        for operand in self.inputs:
            if not 1 <= len(operand.axes) <= 2:
                raise SpecError(f"input '{operand.name}' has shape '{operand.shape}': one axis or two")
        object.__setattr__(self, "inputs", tuple(map(self._filled, self.inputs)))

    def _filled(self, operand: Input) -> Input:
        """Return the input with its fill: inputs that stages take distances of are finite."""
        scans = [stage for stage in self.stages if isinstance(stage, Nearest | Within)]
        of_points = any(operand.name in stage.points for stage in scans)
        return replace(operand, fill=SAMPLES) if of_points and not operand.fill else operand


# Whether the stages fit together: names known, no circle, and along which axes each result is.

Axes = Mapping[str, tuple[str, ...]]

# What generated sources and the functions of specs use for other things.
_TAKEN = """T Op OWN Points ROWS WIDTH apart arguments arrived blocks by_block by_hand column cuda device double dtype
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
    axes = dict.fromkeys(axis for operand in program.inputs for axis in operand.axes)
    return (*axes, *(("k",) if any(isinstance(stage, Nearest) for stage in stages) else ()))


def in_order(program: FusionProgram, stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """Return the stages, each after those that it reads; SpecError for a name twice or unknown, and for a circle."""
    numbers = extents(program, stages)
    named = [*(operand.name for operand in program.inputs), *program.scalars, *(stage.name for stage in stages)]
    _check_names(named, numbers)
    known = {*named, *numbers} - {stage.name for stage in stages}
    by_name: dict[str, Stage] = {stage.name: stage for stage in stages}
    placed: dict[str, Stage] = {}

    def place(name: str, path: list[str]) -> None:
        if name in path:
            raise SpecError(f"stages go in a circle: {' -> '.join([*path[path.index(name) :], name])}")
        for operand in operands(by_name[name]) if name not in placed else ():
            if operand in by_name:
                place(operand, [*path, name])
            elif operand not in known:
                raise SpecError(f"stage '{name}': {unknown('name', operand, named)}")
        placed.setdefault(name, by_name[name])

    for name in by_name:
        place(name, [])
    return tuple(placed.values())


def _check_names(named: Sequence[str], axes: Sequence[str]) -> None:
    for name in (*named, *axes):
        if not name.isidentifier() or iskeyword(name) or name in _TAKEN:
            raise SpecError(f"nothing can be called '{name}': the generated source has another use for it")
        if [*named, *axes].count(name) > 1:
            raise SpecError(f"two things are called '{name}': inputs, scalars, stages and axes have different names")


def axes_of(program: FusionProgram, ordered: Sequence[Stage]) -> dict[str, tuple[str, ...]]:
    """Return the axes of every input, scalar and stage, none for one number; SpecError if operands do not fit."""
    axes: dict[str, tuple[str, ...]] = dict.fromkeys((*program.scalars, *extents(program, ordered)), ())
    axes |= {operand.name: operand.axes for operand in program.inputs}
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
            raise SpecError(
                f"stage '{stage.name}': points of '{stage.points[0]}' go along '{' '.join(along)}', "
                f"'{name}' along '{' '.join(axes[name][:1])}'"
            )
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
    along = {name: axes[name] for name in names_in(expression) if axes[name]}
    widest = max(along.values(), key=len, default=())
    for name, name_axes in along.items():
        if name_axes != widest and name_axes != widest[-1:]:
            first = next(other for other, theirs in along.items() if theirs == widest)
            raise SpecError(
                f"stage '{stage.name}' joins '{first}' of shape '{' '.join(widest)}' with '{name}' of shape "
                f"'{' '.join(name_axes)}': operands of one expression are along the same axis"
            )
    return widest
