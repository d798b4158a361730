"""Expressions over named arrays, written with Python's operators."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from prism_bench.errors import SpecError

Sign = Literal["+", "-", "*", "/"]


@dataclass(frozen=True)
class Expression:
    """A value at every place of an axis, or one number."""

    def __add__(self, other: "Operand") -> "Binary":
        return Binary("+", self, _as_expression(other))

    def __radd__(self, other: "Operand") -> "Binary":
        return Binary("+", _as_expression(other), self)

    def __sub__(self, other: "Operand") -> "Binary":
        return Binary("-", self, _as_expression(other))

    def __rsub__(self, other: "Operand") -> "Binary":
        return Binary("-", _as_expression(other), self)

    def __mul__(self, other: "Operand") -> "Binary":
        return Binary("*", self, _as_expression(other))

    def __rmul__(self, other: "Operand") -> "Binary":
        return Binary("*", _as_expression(other), self)

    def __truediv__(self, other: "Operand") -> "Binary":
        return Binary("/", self, _as_expression(other))

    def __rtruediv__(self, other: "Operand") -> "Binary":
        return Binary("/", _as_expression(other), self)

    def __neg__(self) -> "Binary":
        return Binary("*", Number(-1.0), self)


Operand = Expression | int | float


@dataclass(frozen=True)
class Name(Expression):
    """An input, a scalar, or the result of a stage."""

    name: str


@dataclass(frozen=True)
class Number(Expression):
    """A constant."""

    value: float


@dataclass(frozen=True)
class Binary(Expression):
    """Left and right joined by one of + - * /."""

    sign: Sign
    left: Expression
    right: Expression


@dataclass(frozen=True)
class SharedName:
    """`name` of a module below kernels/include, such as `entropy.gaussian`.

    For a function, `asks` are the modules that it takes last.
    """

    module: str
    name: str
    asks: tuple[str, ...] = ("xp",)


@dataclass(frozen=True)
class Function:
    """A function of a device header: `cuda` with {T} for the number's type, and its float64 form `value`.

    How far a result may be off follows from `stretch`, the most that an error of the one argument grows, with `at_zero`
    = |f(0)| (then |f(x)| <= at_zero + stretch |x|), or from `size`, the absolute terms that the result is summed from.
    """

    name: str
    cuda: str
    header: str
    value: SharedName
    size: SharedName | None = None
    stretch: float | None = None
    at_zero: float = 0.0
    arity: int = 1
    flops: int = 1

    @property
    def functor(self) -> str:
        """The class for float, as a template argument."""
        return self.cuda.format(T="float").removesuffix("{}")

    def __call__(self, *arguments: Operand) -> "FunctionCall":
        if len(arguments) != self.arity:
            raise SpecError(f"{self.name} takes {self.arity} arguments, not {len(arguments)}")
        return FunctionCall(self, tuple(_as_expression(one) for one in arguments))


@dataclass(frozen=True)
class FunctionChoice:
    """A parameter of the kernel that chooses one of several functions of one argument; the first is the default."""

    parameter: str
    functions: Mapping[str, Function] = field(hash=False)

    def __post_init__(self) -> None:
        for name, one in self.functions.items():
            if one.stretch is None or one.arity != 1 or one.value.asks != ("xp", "special"):
                raise SpecError(
                    f"{self.parameter} '{name}': a choice is among functions of one argument, with a stretch, whose "
                    "float64 form asks for xp and special"
                )

    def __call__(self, argument: Operand) -> "FunctionCall":
        return FunctionCall(self, (_as_expression(argument),))

    @property
    def default(self) -> str:
        """The name of the function that is chosen unless a workload names another."""
        return next(iter(self.functions))

    @property
    def flops(self) -> int:
        """Operations of the costliest function."""
        return max(one.flops for one in self.functions.values())


@dataclass(frozen=True)
class FunctionCall(Expression):
    """A function, or a choice of them, of its arguments."""

    function: Function | FunctionChoice
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class Absolute(Expression):
    """The absolute value of an expression."""

    argument: Expression


@dataclass(frozen=True)
class OfChosen(Expression):
    """A number of the function that a choice's parameter names."""

    choice: FunctionChoice
    number: Literal["stretch", "at_zero"]


def names(text: str) -> tuple[Name, ...]:
    """Return a name for each word: `x, y = names("x y")`."""
    return tuple(Name(one) for one in text.split())


def _as_expression(value: Operand) -> Expression:
    if isinstance(value, Expression):
        return value
    if isinstance(value, int | float):
        return Number(float(value))
    raise SpecError(f"{value!r} is neither expression nor number")


def walk(expression: Expression) -> Iterator[Expression]:
    """Yield the expression and all its parts."""
    yield expression
    for part in _parts(expression):
        yield from walk(part)


def _parts(expression: Expression) -> tuple[Expression, ...]:
    if isinstance(expression, Binary):
        return expression.left, expression.right
    if isinstance(expression, Absolute):
        return (expression.argument,)
    return expression.arguments if isinstance(expression, FunctionCall) else ()


def names_in(*expressions: Expression) -> tuple[str, ...]:
    """Return the names that the expressions hold, each once, in order."""
    found = (part.name for one in expressions for part in walk(one) if isinstance(part, Name))
    return tuple(dict.fromkeys(found))


def calls_in(*expressions: Expression) -> Iterator[FunctionCall]:
    """Yield every call of a function in the expressions."""
    return (part for one in expressions for part in walk(one) if isinstance(part, FunctionCall))


def functions_in(*expressions: Expression) -> tuple[Function | FunctionChoice, ...]:
    """Return the functions and choices that the expressions call, each once."""
    return tuple({repr(call.function): call.function for call in calls_in(*expressions)}.values())


def choices_in(*expressions: Expression) -> tuple[FunctionChoice, ...]:
    """Return the choices of functions that the expressions hold, each once."""
    return tuple(one for one in functions_in(*expressions) if isinstance(one, FunctionChoice))


def flops(expression: Expression) -> int:
    """Return the operations for one element."""
    own = sum(call.function.flops for call in calls_in(expression))
    return own + sum(isinstance(part, Binary) for part in walk(expression))


def replaced(expression: Expression, by: Mapping[str, Expression]) -> Expression:
    """Return the expression with names put for others."""
    return substituted(expression, {Name(name): other for name, other in by.items()})


def substituted(expression: Expression, by: Mapping[Expression, Expression]) -> Expression:
    """Return the expression with every part that `by` has replaced, the outermost first."""
    if expression in by:
        return by[expression]
    if isinstance(expression, Binary):
        return replace(expression, left=substituted(expression.left, by), right=substituted(expression.right, by))
    if isinstance(expression, FunctionCall):
        return replace(expression, arguments=tuple(substituted(one, by) for one in expression.arguments))
    return expression


def absolute(expression: Expression, positive: Collection[str] = ()) -> Expression:
    """Return the sum of the absolute terms of an expression: what its rounding errors are in proportion to.

    Names in `positive` are absolute already.
    """
    if isinstance(expression, Number):
        return Number(abs(expression.value))
    if isinstance(expression, Binary):
        return _absolute_terms(expression, positive)
    if not isinstance(expression, FunctionCall):
        return expression if isinstance(expression, Name) and expression.name in positive else Absolute(expression)
    function, arguments = expression.function, expression.arguments
    if isinstance(function, FunctionChoice):
        size = absolute(arguments[0], positive)
        return OfChosen(function, "at_zero") + OfChosen(function, "stretch") * size
    if function.stretch is None:
        return FunctionCall(replace(function, value=function.size or function.value), arguments)
    size = absolute(arguments[0], positive)
    grown = size if function.stretch == 1 else Number(function.stretch) * size
    return Number(function.at_zero) + grown if function.at_zero else grown


def _absolute_terms(expression: Binary, positive: Collection[str]) -> Binary:
    left = absolute(expression.left, positive)
    if expression.sign == "/":
        plain = isinstance(expression.right, Number | Name)
        return left / (absolute(expression.right, positive) if plain else Absolute(expression.right))
    return Binary("+" if expression.sign == "-" else expression.sign, left, absolute(expression.right, positive))
