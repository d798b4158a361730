"""Expressions over named arrays, written with Python's operators; printed as CUDA C++ and as NumPy."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from prism_bench.errors import SpecError

_RANK = {"+": 1, "-": 1, "*": 2, "/": 2}


@dataclass(frozen=True)
class Expression:
    """A value at every place of an axis, or one number."""

    def __add__(self, other):
        return Binary("+", self, _wrapped(other))

    def __radd__(self, other):
        return Binary("+", _wrapped(other), self)

    def __sub__(self, other):
        return Binary("-", self, _wrapped(other))

    def __rsub__(self, other):
        return Binary("-", _wrapped(other), self)

    def __mul__(self, other):
        return Binary("*", self, _wrapped(other))

    def __rmul__(self, other):
        return Binary("*", _wrapped(other), self)

    def __truediv__(self, other):
        return Binary("/", self, _wrapped(other))

    def __rtruediv__(self, other):
        return Binary("/", _wrapped(other), self)

    def __neg__(self):
        return Binary("*", Number(-1.0), self)


@dataclass(frozen=True)
class Name(Expression):
    """An input, a scalar, or the result of a stage."""

    name: str


@dataclass(frozen=True)
class Number(Expression):
    value: float


@dataclass(frozen=True)
class Binary(Expression):
    """Left and right joined by one of + - * /."""

    sign: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Shared:
    """`name` of kernels/include/<module>.py; for a function, `asks` are the modules that it takes last."""

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
    value: Shared
    size: Shared | None = None
    stretch: float | None = None
    at_zero: float = 0.0
    arity: int = 1
    flops: int = 1

    @property
    def functor(self) -> str:
        """The class for float, as a template argument."""
        return self.cuda.format(T="float").removesuffix("{}")

    def __call__(self, *arguments) -> "Call":
        if len(arguments) != self.arity:
            raise SpecError(f"{self.name} takes {self.arity} arguments, not {len(arguments)}")
        return Call(self, tuple(_wrapped(one) for one in arguments))


@dataclass(frozen=True)
class Choice:
    """A parameter of the kernel that chooses one of several functions of one argument; the first is the default."""

    parameter: str
    functions: Mapping[str, Function] = field(hash=False)

    def __post_init__(self):
        for name, one in self.functions.items():
            if one.stretch is None or one.arity != 1 or one.value.asks != ("xp", "special"):
                raise SpecError(
                    f"{self.parameter} '{name}': a choice is among functions of one argument, with a stretch, whose "
                    "float64 form asks for xp and special"
                )

    def __call__(self, argument) -> "Call":
        return Call(self, (_wrapped(argument),))

    @property
    def default(self) -> str:
        return next(iter(self.functions))

    @property
    def flops(self) -> int:
        return max(one.flops for one in self.functions.values())


@dataclass(frozen=True)
class Call(Expression):
    """A function, or a choice of them, of its arguments."""

    function: Function | Choice
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class Python(Expression):
    """Python to print as it is."""

    text: str


ABSOLUTE = Function("abs", "fabs", "activations.cuh", Shared("", "xp.abs", ()))


def names(text: str) -> tuple[Name, ...]:
    """`x, y = names("x y")`."""
    return tuple(Name(one) for one in text.split())


def _wrapped(value) -> Expression:
    if isinstance(value, Expression):
        return value
    if isinstance(value, int | float):
        return Number(float(value))
    raise SpecError(f"{value!r} is neither expression nor number")


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and all its parts."""
    yield expression
    for part in _parts(expression):
        yield from walk(part)


def _parts(expression):
    if isinstance(expression, Binary):
        return expression.left, expression.right
    return expression.arguments if isinstance(expression, Call) else ()


def names_in(*expressions: Expression) -> tuple[str, ...]:
    """The names that the expressions hold, each once, in order."""
    found = (part.name for one in expressions for part in walk(one) if isinstance(part, Name))
    return tuple(dict.fromkeys(found))


def functions_in(*expressions: Expression) -> tuple[Function | Choice, ...]:
    """The functions and choices that the expressions call, each once."""
    return tuple({repr(p.function): p.function for e in expressions for p in walk(e) if isinstance(p, Call)}.values())


def flops(expression: Expression) -> int:
    """Operations for one element."""
    own = sum(part.function.flops for part in walk(expression) if isinstance(part, Call))
    return own + sum(isinstance(part, Binary) for part in walk(expression))


def replaced(expression: Expression, by: Mapping[str, Expression]) -> Expression:
    """The expression with names put for others."""
    if isinstance(expression, Name):
        return by.get(expression.name, expression)
    if isinstance(expression, Binary):
        return Binary(expression.sign, replaced(expression.left, by), replaced(expression.right, by))
    if isinstance(expression, Call):
        return Call(expression.function, tuple(replaced(one, by) for one in expression.arguments))
    return expression


def absolute(expression: Expression, positive=()) -> Expression:
    """The sum of the absolute terms of an expression: what its rounding errors are in proportion to.

    Names in `positive` are absolute already.
    """
    if isinstance(expression, Number):
        return Number(abs(expression.value))
    if isinstance(expression, Name):
        return expression if expression.name in positive else Call(ABSOLUTE, (expression,))
    if isinstance(expression, Binary):
        left = absolute(expression.left, positive)
        if expression.sign == "/":
            plain = isinstance(expression.right, Number | Name)
            return left / (absolute(expression.right, positive) if plain else Call(ABSOLUTE, (expression.right,)))
        return Binary("+" if expression.sign == "-" else expression.sign, left, absolute(expression.right, positive))
    if isinstance(expression.function, Function) and expression.function.stretch is None:
        function = expression.function
        return Call(Function(function.name, "", "", function.size or function.value), expression.arguments)
    return _stretched(expression.function, absolute(expression.arguments[0], positive))


def _stretched(function, size):
    if isinstance(function, Choice):
        chosen = f"{function.parameter.upper()}[{function.parameter}]"
        return Python(f"{chosen}[3]") + Python(f"{chosen}[2]") * size
    grown = size if function.stretch == 1 else Number(function.stretch) * size
    return Number(function.at_zero) + grown if function.at_zero else grown


def cuda(expression: Expression, number: str = "T") -> str:
    """CUDA C++ of that number type."""
    return _printed(expression, lambda value: f"{number}({value!r})", lambda f, args: _cuda_call(f, args, number))


def _cuda_call(function, arguments, number):
    called = f"{class_of(function)}{{}}" if isinstance(function, Choice) else function.cuda.format(T=number)
    return f"{called}({', '.join(arguments)})"


def class_of(choice: Choice) -> str:
    """The template parameter that a choice is made by: `activation` -> Activation."""
    return choice.parameter.title().replace("_", "")


def python(expression: Expression) -> str:
    """Python over float64 arrays."""
    return _printed(expression, repr, _python_call)


def _python_call(function, arguments):
    if isinstance(function, Choice):
        return f"{function.parameter.upper()}[{function.parameter}][1]({', '.join([*arguments, 'xp', 'special'])})"
    return f"{function.value.name}({', '.join([*arguments, *function.value.asks])})"


def _printed(expression, number, call):
    if isinstance(expression, Name):
        return expression.name
    if isinstance(expression, Python):
        return expression.text
    if isinstance(expression, Number):
        return number(expression.value)
    if isinstance(expression, Call):
        return call(expression.function, [_printed(one, number, call) for one in expression.arguments])
    rank = _RANK[expression.sign]
    left, right = (_printed(one, number, call) for one in (expression.left, expression.right))
    left = f"({left})" if _rank(expression.left) < rank else left
    right = f"({right})" if _rank(expression.right) <= rank else right
    return f"{left} {expression.sign} {right}"


def _rank(expression):
    return _RANK[expression.sign] if isinstance(expression, Binary) else 3
