"""Expressions as functions of values by name: arrays of NumPy or CuPy in float64, and numbers.

What an expression calls of the catalogue's shared Python is looked up once, when the function is made.
"""

import operator
from collections.abc import Callable, Mapping
from typing import Any

from prism_bench.errors import SpecError
from prism_bench.extensions.fusion.expression import (
    Absolute,
    Binary,
    Expression,
    Function,
    FunctionCall,
    FunctionChoice,
    Name,
    Number,
    OfChosen,
)
from prism_bench.extensions.fusion.includes import Includes

Values = Mapping[str, Any]
Evaluator = Callable[[Values], Any]

_OPERATIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip


def evaluator(expression: Expression, includes: Includes) -> Evaluator:
    """Return the function of values, which hold `xp` and `special` where functions ask for these."""
    if isinstance(expression, Name):
        return operator.itemgetter(expression.name)
    if isinstance(expression, Number):
        constant = expression.value
        return lambda values: constant
    if isinstance(expression, OfChosen):
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


def _of_chosen(expression: OfChosen) -> Evaluator:
    parameter = expression.choice.parameter
    numbers = {name: getattr(one, expression.number) for name, one in expression.choice.functions.items()}
    return lambda values: numbers[values[parameter]]


def _call(call: FunctionCall, includes: Includes) -> Evaluator:
    arguments = [evaluator(one, includes) for one in call.arguments]
    if isinstance(call.function, Function):
        return _applied(call.function, arguments, includes)
    choice: FunctionChoice = call.function
    applied = {name: _applied(one, arguments, includes) for name, one in choice.functions.items()}
    return lambda values: applied[values[choice.parameter]](values)


def _applied(function: Function, arguments: list[Evaluator], includes: Includes) -> Evaluator:
    value, asks = includes.value(function.value.module, function.value.name), function.value.asks
    return lambda values: value(*(one(values) for one in arguments), *(values[name] for name in asks))
