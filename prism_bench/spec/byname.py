"""Call functions of a spec, which ask for what they need by parameter name."""

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from inspect import Parameter, signature
from pathlib import Path
from types import CodeType
from typing import Any, TypeVar

from prism_bench.errors import SpecError
from prism_bench.io.installation import extras_named

_Result = TypeVar("_Result")


def wanted(function: Callable[..., object]) -> tuple[str, ...]:
    """Return the names that `function` asks for."""
    return tuple(_parameters(function))


def call(function: Callable[..., _Result], offered: Mapping[str, Any], where: str) -> _Result:
    """Call `function` with the offered values that it names; raise a SpecError for a name that is not offered.

    An exception of the function gets a note with the line of the spec that raised it.
    """
    bound = bind(function, offered, where)
    try:
        with extras_named():
            return bound()
    except Exception as error:
        _note_line(error, function)
        raise


def bind(function: Callable[..., _Result], offered: Mapping[str, Any], where: str) -> Callable[[], _Result]:
    """Return `function` with the offered values that it names; raise a SpecError for a name that is not offered."""
    arguments: dict[str, Any] = {}
    for name, parameter in _parameters(function).items():
        if name in offered:
            arguments[name] = offered[name]
        elif parameter.default is Parameter.empty:
            raise SpecError(f"{where} asks for '{name}', which is none of: {', '.join(sorted(offered))}")
    return partial(function, **arguments)


def defined_at(function: Callable[..., object]) -> str:
    """Return where the function was written, `softmax.py line 12`; its name if it has no Python source."""
    code = _code(function)
    return f"{Path(code.co_filename).name} line {code.co_firstlineno}" if code else repr(function)


def line_in(error: BaseException, file: str) -> int | None:
    """Return the innermost line of `file` at which the error was raised; None if it was raised elsewhere."""
    line, trace = None, error.__traceback__
    while trace:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _note_line(error: Exception, function: Callable[..., object]) -> None:
    code = _code(function)
    line = line_in(error, code.co_filename) if code else None
    note = f"{Path(code.co_filename).name} line {line}" if code and line else f"in {function!r}"
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)


def _code(function: Callable[..., object]) -> CodeType | None:
    """Return the code of a function, also of one that a `functools.partial` holds."""
    return getattr(getattr(function, "func", function), "__code__", None)


@lru_cache(maxsize=4096)
def _parameters(function: Callable[..., object]) -> Mapping[str, Parameter]:
    """Return the parameters; kept, since reading a signature takes longer than most of these functions."""
    return signature(function).parameters
