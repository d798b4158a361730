"""Expressions of a launch card: whole numbers from the axes of a case, without any code of the submission's author.

They have numbers, names, `+ - * // %`, comparisons, `and`, `or`, `not`, `a if b else c`, and the functions `min`,
`max`, `ceil_div` and `next_power_of_2`. An axis that is a text can be compared with one: `kind == 'clipped'`.
"""

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from inspect import Parameter, Signature

from prism_bench.errors import SpecError

LONGEST, DEEPEST = 500, 200  # characters, and parts within parts
LARGEST = (1 << 64) - 1  # an axis may be a seed of 64 bits
_OPERATORS: Mapping[type[ast.AST], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip
FUNCTIONS: Mapping[str, Callable[..., int]] = {
    "min": min, "max": max, "ceil_div": lambda a, b: -(-a // b),
    "next_power_of_2": lambda a: 1 << max(0, a - 1).bit_length(),
}  # fmt: skip
_ARITY = {"min": (2, 8), "max": (2, 8), "ceil_div": (2, 2), "next_power_of_2": (1, 1)}


@dataclass(frozen=True)
class CardExpression:
    """One expression by its text; a SpecError where it has more than a card may."""

    text: str

    def __post_init__(self) -> None:
        names = self.names  # reads the text
        odd = sorted(name for name in names if name in FUNCTIONS)
        if odd:
            raise SpecError(f"'{self.text}': {odd[0]} is a function")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names that it asks for, sorted."""
        found: set[str] = set()
        _check(_tree(self.text), self.text, found)
        return tuple(sorted(found))

    def value(self, offered: Mapping[str, object]) -> int:
        """Return its value; a SpecError for a name that is not offered, a division by 0 or a number out of range."""
        missing = [name for name in self.names if name not in offered]
        if missing:
            raise SpecError(f"'{self.text}' asks for '{missing[0]}', which is none of {', '.join(sorted(offered))}")
        try:
            return _value(_tree(self.text), offered, self.text)
        except ZeroDivisionError:
            raise SpecError(f"'{self.text}' divides by 0") from None


class CardFunction:
    """A function of what some expressions ask for, whose signature names that."""

    def __init__(
        self, asked: tuple[CardExpression, ...], compute: Callable[[Mapping[str, object]], object],
        others: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        names = sorted({name for one in asked for name in one.names} | set(others))
        self.__signature__ = Signature([Parameter(name, Parameter.KEYWORD_ONLY) for name in names])
        self._compute = compute

    def __call__(self, **offered: object) -> object:
        return self._compute(offered)

    def __repr__(self) -> str:
        return "the card"


@lru_cache(maxsize=1024)
def _tree(text: str) -> ast.expr:
    if len(text) > LONGEST:
        raise SpecError(f"an expression of {len(text)} characters; it has at most {LONGEST}")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise SpecError(
            f"'{text}' is no expression: {error.msg if isinstance(error, SyntaxError) else error}"
        ) from None


def _check(node: ast.AST, text: str, found: set[str], depth: int = 1) -> None:
    if depth > DEEPEST:
        raise SpecError(f"an expression of more than {DEEPEST} parts within parts")
    match node:
        case ast.Constant(value=value) if type(value) is int and value <= LARGEST:
            return
        case ast.Name(id=name):
            found.add(name)
            return
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            parts: list[ast.expr] = [left, right]
        case ast.UnaryOp(op=ast.USub() | ast.Not(), operand=operand):
            parts = [operand]
        case ast.BoolOp(values=values):
            parts = values
        case ast.Compare(left=ast.Name(id=name), ops=[ast.Eq() | ast.NotEq()], comparators=[ast.Constant(value=str())]):
            found.add(name)
            return
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _OPERATORS:
            parts = [left, right]
        case ast.IfExp(test=test, body=body, orelse=orelse):
            parts = [test, body, orelse]
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
            least, most = _ARITY[name]
            if not least <= len(args) <= most:
                raise SpecError(f"'{text}': {name} takes {least if least == most else f'{least} to {most}'} numbers")
            parts = args
        case _:
            what = ast.unparse(node) if isinstance(node, ast.expr) else type(node).__name__
            raise SpecError(f"'{text}': '{what}' is nothing that an expression of a card has")
    for part in parts:
        _check(part, text, found, depth + 1)


def _value(node: ast.AST, offered: Mapping[str, object], text: str) -> int:
    def inner(part: ast.AST) -> int:
        return _value(part, offered, text)

    match node:
        case ast.Constant(value=value) if isinstance(value, int):
            found = value
        case ast.Name(id=name):
            found = _whole(offered[name], name, text)
        case ast.Compare(left=ast.Name(id=name), ops=[op], comparators=[ast.Constant(value=str(word))]):
            found = int((offered[name] == word) == isinstance(op, ast.Eq))
        case ast.Compare(left=ast.Name(id=name), ops=[ast.Eq() | ast.NotEq() as op]) if isinstance(offered[name], str):
            found = int(isinstance(op, ast.NotEq))  # a text is no number
        case ast.BinOp(left=left, op=op, right=right) | ast.Compare(left=left, ops=[op], comparators=[right]):
            found = int(_OPERATORS[type(op)](inner(left), inner(right)))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            found = -inner(operand)
        case ast.UnaryOp(operand=operand):
            found = int(not inner(operand))
        case ast.BoolOp(op=op, values=values):
            found = int((all if isinstance(op, ast.And) else any)(map(inner, values)))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            found = inner(body) if inner(test) else inner(orelse)
        case ast.Call(func=ast.Name(id=name), args=args):
            found = FUNCTIONS[name](*map(inner, args))
        case _:
            raise AssertionError("checked before")
    if not -LARGEST <= found <= LARGEST:
        raise SpecError(f"'{text}' is {found:.3g}, too large a number")
    return found


def _whole(value: object, name: str, text: str) -> int:
    if not isinstance(value, int | float) or int(value) != value:
        raise SpecError(f"'{text}' asks for '{name}', which is {value!r} here and no whole number")
    return int(value)
