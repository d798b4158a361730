"""Expressions over named arrays: built with Python's operators, evaluated, and written as CUDA C++."""

import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from inspect import Parameter, Signature
from typing import Any, Literal

from prism_bench.errors import SpecError

# Expressions over named arrays, written with Python's operators.

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
        return FunctionCall(self, tuple(_as_expression(argument) for argument in arguments))


@dataclass(frozen=True)
class FunctionChoice:
    """A parameter of the kernel that chooses one of several functions of one argument; the first is the default."""

    parameter: str
    functions: Mapping[str, Function] = field(hash=False)

    def __post_init__(self) -> None:
        for name, function in self.functions.items():
            if function.stretch is None or function.arity != 1 or function.value.asks != ("xp", "special"):
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
        return max(function.flops for function in self.functions.values())


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
class _OfChosen(Expression):
    """A number of the function that a choice's parameter names."""

    choice: FunctionChoice
    number: Literal["stretch", "at_zero"]


def names(text: str) -> tuple[Name, ...]:
    """Return a name for each word: `x, y = names("x y")`."""
    return tuple(Name(name) for name in text.split())


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
    names = (part.name for expression in expressions for part in walk(expression) if isinstance(part, Name))
    return tuple(dict.fromkeys(names))


def calls_in(*expressions: Expression) -> Iterator[FunctionCall]:
    """Yield every call of a function in the expressions."""
    return (part for expression in expressions for part in walk(expression) if isinstance(part, FunctionCall))


def functions_in(*expressions: Expression) -> tuple[Function | FunctionChoice, ...]:
    """Return the functions and choices that the expressions call, each once."""
    return tuple({repr(call.function): call.function for call in calls_in(*expressions)}.values())


def choices_in(*expressions: Expression) -> tuple[FunctionChoice, ...]:
    """Return the choices of functions that the expressions hold, each once."""
    return tuple(function for function in functions_in(*expressions) if isinstance(function, FunctionChoice))


def flops(expression: Expression) -> int:
    """Return the operations for one element."""
    steps = sum(call.function.flops for call in calls_in(expression))
    return steps + sum(isinstance(part, Binary) for part in walk(expression))


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
        return replace(expression, arguments=tuple(substituted(argument, by) for argument in expression.arguments))
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
        return _OfChosen(function, "at_zero") + _OfChosen(function, "stretch") * size
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


# The Python that the specs of a catalogue share, read by name where a fused kernel's spec needs it.


@dataclass(frozen=True)
class Includes:
    """The folders `include` and `peers` of a catalogue; `package` is what the catalogue's specs are loaded into."""

    package: str

    def value(self, module: str, name: str) -> Any:
        """Return `name` of a module below include/: `arrays.map_arrays` is include/arrays/map_arrays.py."""
        return getattr(import_module(f"{self.package}.include.{module}"), name)

    def peer(self, module: str, name: str) -> Any:
        """Return `name` of peers/<module>.py."""
        return getattr(import_module(f"{self.package}.peers.{module}"), name)


# Expressions as functions of values by name: arrays of NumPy or CuPy in float64, and numbers.
#
# What an expression calls of the catalogue's shared Python is looked up once, when the function is made.

Values = Mapping[str, Any]
Evaluator = Callable[[Values], Any]

_OPERATIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


def evaluator(expression: Expression, includes: Includes) -> Evaluator:
    """Return the function of values, which hold `xp` and `special` where functions ask for these."""
    if isinstance(expression, Name):
        return operator.itemgetter(expression.name)
    if isinstance(expression, Number):
        constant = expression.value
        return lambda values: constant
    if isinstance(expression, _OfChosen):
        return _of_chosen(expression)
    if isinstance(expression, Absolute):
        inner = evaluator(expression.argument, includes)
        return lambda values: values["xp"].abs(inner(values))
    if isinstance(expression, Binary):
        operation = _OPERATIONS[expression.sign]
        left, right = evaluator(expression.left, includes), evaluator(expression.right, includes)
        return lambda values: operation(left(values), right(values))
    if isinstance(expression, FunctionCall):
        return _call(expression, includes)
    raise SpecError(f"{expression!r} has no value")


def _of_chosen(expression: _OfChosen) -> Evaluator:
    parameter = expression.choice.parameter
    numbers = {name: getattr(function, expression.number) for name, function in expression.choice.functions.items()}
    return lambda values: numbers[values[parameter]]


def _call(call: FunctionCall, includes: Includes) -> Evaluator:
    arguments = [evaluator(argument, includes) for argument in call.arguments]
    if isinstance(call.function, Function):
        return _applied(call.function, arguments, includes)
    choice: FunctionChoice = call.function
    applied = {name: _applied(function, arguments, includes) for name, function in choice.functions.items()}
    return lambda values: applied[values[choice.parameter]](values)


def _applied(function: Function, arguments: list[Evaluator], includes: Includes) -> Evaluator:
    value, asks = includes.value(function.value.module, function.value.name), function.value.asks
    return lambda values: value(*(argument(values) for argument in arguments), *(values[name] for name in asks))


# Functions of the device headers that programs may call, each with its float64 form in kernels/include.

divergence = Function(
    "divergence",
    "GaussianDivergence<{T}>{{}}",
    "entropy/gaussian.cuh",
    SharedName("entropy.gaussian", "divergence"),
    arity=4,
    flops=7,
)
log_likelihood = Function(
    "log_likelihood", "LogLikelihood<{T}>{{}}", "entropy/gaussian.cuh",
    SharedName("entropy.gaussian", "log_likelihood"), size=SharedName("entropy.gaussian", "likelihood_size"),
    arity=2, flops=6,
)  # fmt: skip


psi = Function(  # of a whole number
    "psi", "digamma_of", "neighbours/ksg.cuh", SharedName("neighbours.neighbours", "psi", ("special",)),
    size=SharedName("neighbours.neighbours", "psi_size", ("special",)), flops=30,
)  # fmt: skip


def _activation(name: str, cuda: str, flops: int, stretch: float = 1.0, at_zero: float = 0.0) -> Function:
    value = SharedName("layers.activations", name, ("xp", "special"))
    return Function(
        name, f"{cuda}{{{{}}}}", "layers/activations.cuh", value, stretch=stretch, at_zero=at_zero, flops=flops
    )


identity = _activation("identity", "Identity", 0)
relu = _activation("relu", "Relu", 1)
sigmoid = _activation("sigmoid", "Sigmoid", 4, stretch=0.25, at_zero=0.5)
tanh = _activation("tanh", "Tanh", 5)
gelu = _activation("gelu", "Gelu", 9, stretch=1.13)
activation = FunctionChoice(
    "activation", {function.name: function for function in (gelu, identity, relu, sigmoid, tanh)}
)


# Expressions as CUDA C++.

_RANK = {"+": 1, "-": 1, "*": 2, "/": 2}


def cuda(expression: Expression, number: str = "T") -> str:
    """Return CUDA C++ of that number type."""
    if isinstance(expression, Name):
        return expression.name
    if isinstance(expression, Number):
        return f"{number}({expression.value!r})"
    if isinstance(expression, FunctionCall):
        arguments = ", ".join(cuda(argument, number) for argument in expression.arguments)
        return f"{_callee(expression.function, number)}({arguments})"
    if not isinstance(expression, Binary):
        raise TypeError(f"{expression!r} has no CUDA form")
    rank = _RANK[expression.sign]
    left, right = cuda(expression.left, number), cuda(expression.right, number)
    left = f"({left})" if _rank(expression.left) < rank else left
    right = f"({right})" if _rank(expression.right) <= rank else right
    return f"{left} {expression.sign} {right}"


def _callee(function: Function | FunctionChoice, number: str) -> str:
    return f"{class_of(function)}{{}}" if isinstance(function, FunctionChoice) else function.cuda.format(T=number)


def class_of(choice: FunctionChoice) -> str:
    """Return the template parameter that a choice is made by: `activation` -> Activation."""
    return choice.parameter.title().replace("_", "")


def _rank(expression: Expression) -> int:
    return _RANK[expression.sign] if isinstance(expression, Binary) else 3


def terms(text: str) -> Iterator[str]:
    """Yield the text cut before each + and - that is in no bracket."""
    depth, begin = 0, 0
    for at, sign in enumerate(text):
        depth += (sign in "([{") - (sign in ")]}")
        if depth == 0 and text[at : at + 3] in (" + ", " - "):
            yield text[begin:at]
            begin = at + 1
    yield text[begin:]


# Functions that ask by name, made in memory: a spec's functions say by their parameters' names what they need.


class Asking:
    """A function of keywords `names`, which passes their values to `function` in that order."""

    def __init__(self, names: Iterable[str], function: Callable[..., Any]) -> None:
        self._names, self._function = tuple(dict.fromkeys(names)), function
        self.__signature__ = Signature([Parameter(name, Parameter.KEYWORD_ONLY) for name in self._names])

    def __call__(self, **values: Any) -> Any:
        return self._function(*(values[name] for name in self._names))


class AskingForAll(Asking):
    """A function of keywords `names`, which passes them to `function` as one mapping."""

    def __call__(self, **values: Any) -> Any:
        return self._function(values)
