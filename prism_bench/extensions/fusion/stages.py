"""What a stage of a program may be."""

from dataclasses import dataclass
from typing import ClassVar

from prism_bench.errors import SpecError
from prism_bench.extensions.fusion.expression import Expression

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
        for one in self.hows:
            if one not in REDUCTIONS:
                raise SpecError(f"stage '{self.name}': unknown reduction '{one}'; known: {', '.join(REDUCTIONS)}")

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
        for one in self.precisions:
            if one not in PRECISIONS:
                raise SpecError(f"stage '{self.name}': unknown precision '{one}'; known: {', '.join(PRECISIONS)}")
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
