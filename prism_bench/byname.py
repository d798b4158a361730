"""Functions of a spec ask for what they need by parameter name; this hands it to them."""

from collections.abc import Callable, Mapping
from inspect import Parameter, signature

from prism_bench.errors import SpecError


def wanted(function: Callable) -> tuple[str, ...]:
    """The names that `function` asks for."""
    return tuple(signature(function).parameters)


def call(function: Callable, offered: Mapping, where: str):
    """Call `function` with the offered values it names; a name nobody offers is a SpecError that says `where`."""
    arguments = {}
    for name, parameter in signature(function).parameters.items():
        if name in offered:
            arguments[name] = offered[name]
        elif parameter.default is Parameter.empty:
            raise SpecError(f"{where} asks for '{name}', which is none of: {', '.join(sorted(offered))}")
    return function(**arguments)
