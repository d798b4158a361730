"""Functions that ask by name, made in memory: a spec's functions say by their parameters' names what they need."""

from collections.abc import Callable, Iterable
from inspect import Parameter, Signature
from typing import Any


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
