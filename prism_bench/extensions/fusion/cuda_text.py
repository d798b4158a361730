"""Expressions as CUDA C++."""

from collections.abc import Iterator

from prism_bench.extensions.fusion.expression import (
    Binary,
    Expression,
    Function,
    FunctionCall,
    FunctionChoice,
    Name,
    Number,
)

_RANK = {"+": 1, "-": 1, "*": 2, "/": 2}


def cuda(expression: Expression, number: str = "T") -> str:
    """Return CUDA C++ of that number type."""
    if isinstance(expression, Name):
        return expression.name
    if isinstance(expression, Number):
        return f"{number}({expression.value!r})"
    if isinstance(expression, FunctionCall):
        return f"{_callee(expression.function, number)}({', '.join(cuda(one, number) for one in expression.arguments)})"
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
