"""Functions of a spec ask for what they need by parameter name; this hands it to them."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from inspect import Parameter, signature

from prism_bench.errors import SpecError


def wanted(function: Callable) -> tuple[str, ...]:
    """The names that `function` asks for."""
    return tuple(_parameters(function))


def call(function: Callable, offered: Mapping, where: str):
    """Call `function` with the offered values it names; a name nobody offers is a SpecError that says `where`."""
    arguments = {}
    for name, parameter in _parameters(function).items():
        if name in offered:
            arguments[name] = offered[name]
        elif parameter.default is Parameter.empty:
            raise SpecError(f"{where} asks for '{name}', which is none of: {', '.join(sorted(offered))}")
    return function(**arguments)


@lru_cache(maxsize=4096)
def _parameters(function):
    """Specs are asked again and again, and to read a signature takes longer than most of their answers."""
    return signature(function).parameters
