"""Kinds of values: what the nouns of a spec take, by their annotations.

A wrong kind is refused where it is written, with the noun, the field, the value and what would be right.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import fields
from functools import lru_cache, wraps
from inspect import signature
from numbers import Integral, Number, Real
from os import PathLike
from pathlib import Path
from types import FunctionType, NoneType, UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from prism_bench.errors import SpecError

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

# By annotation: the kinds taken, and their name for one value and for several.
_PLAIN: Mapping[Any, tuple[Any, str, str]] = {
    str: (str, "a text", "texts"),
    int: (Integral, "a whole number", "whole numbers"),
    float: (Real, "a number", "numbers"),
    complex: (Number, "a number", "numbers"),
    bool: (bool, "True or False", "truth values"),
    Path: (PathLike, "a path", "paths"),
    Hashable: (Hashable, "a number or a text", "numbers or texts"),
    Callable: (Callable, "a function", "functions"),
    NoneType: (NoneType, "None", "None"),
}
_BUILTIN: Mapping[Any, frozenset[type]] = {
    str: frozenset({str}),
    int: frozenset({int}),
    float: frozenset({int, float}),
    complex: frozenset({int, float, complex}),
    bool: frozenset({bool}),
    NoneType: frozenset({NoneType}),
    Callable: frozenset({FunctionType}),
    Hashable: frozenset({int, float, str, bool}),
}
_ADVICE = {
    "shape": 'write axes in a text: "rows cols"',
    "dtype": 'write the name of a type: "float32"',
    "fill": "write a fill: normal()",
}


class Noun:
    """Base of the dataclasses of a spec: a field holds what its annotation declares, or a SpecError is raised.

    A tuple may be written as a list.
    """

    def __post_init__(self) -> None:
        kinds, values = _kinds(type(self)), vars(self)
        first = values[next(iter(kinds))]
        label = f"{type(self).__name__}({first!r})" if isinstance(first, str) else type(self).__name__
        for name in [name for name, kind in kinds.items() if not _is_plainly(values[name], kind)]:
            value = values[name]
            if _is_listed(value) and not isinstance(value, tuple) and _takes_tuple(kinds[name]):
                object.__setattr__(self, name, tuple(value))
            require(f"{label}: {name}", values[name], kinds[name], _ADVICE.get(name))


def require_kinds(noun: object, label: str, advice: Mapping[str, str]) -> None:
    """Raise a SpecError for a field of a dataclass that holds something else than it declares.

    `advice` has what to write by field, where the annotation alone is no help.
    """
    for name, kind in _kinds(type(noun)).items():
        if not _is_plainly(value := getattr(noun, name), kind):
            require(f"{label}: {name}", value, kind, advice.get(name))


def require(where: str, value: object, kind: Any, advice: str | None = None) -> None:
    """Raise a SpecError for a value that is not of the kind that an annotation declares."""
    odd = _odd(value, kind)
    if odd:
        shown = " ".join(repr(odd[0]).split())  # an array has lines
        verb = "is" if odd[0] is value else "holds"
        raise SpecError(f"{where} {verb} {shown:.80}; {advice or f'it is {_described(kind)}'}")


def listed(value: Any) -> Any:
    """Return what a collection holds as a tuple, and any other value as it is, for `require` to refuse."""
    return tuple(cast("Any", value)) if isinstance(value, Iterable) and not _is_single(value) else cast("Any", value)


def checked(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Return the function with its arguments checked as the fields of a noun are."""

    @wraps(function)
    def checking(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        kinds = _kinds(function)
        for name, value in signature(function).bind(*args, **kwargs).arguments.items():
            if not _is_plainly(value, kinds[name]):
                require(f"{function.__name__}: {name}", value, kinds[name])
        return function(*args, **kwargs)

    return checking


@lru_cache(maxsize=256)
def _kinds(noun: Any) -> Mapping[str, Any]:
    """Return the annotations of a dataclass's fields, or of a function's parameters."""
    hints = get_type_hints(noun)
    return {field.name: hints[field.name] for field in fields(noun)} if isinstance(noun, type) else hints


# Most values are of a builtin type that their annotation names: these need no search, which takes ten times as long.


def _is_plainly(value: Any, kind: Any) -> bool:
    """Return whether a value is of a kind by its type alone, or a tuple or a dict of such values."""
    single, in_tuple, in_dict = _builtin(kind)
    exact: type = type(value)  # pyright: ignore[reportUnknownVariableType]
    if exact is tuple:
        return in_tuple is not None and all(type(part) in in_tuple for part in value)
    if exact is dict:
        return in_dict is not None and all(type(key) is str and type(part) in in_dict for key, part in value.items())
    return exact in single


_Types = frozenset[type]


@lru_cache(maxsize=512)
def _builtin(kind: Any) -> tuple[_Types, _Types | None, _Types | None]:
    """Return the types whose values a kind takes as they are, and those in its tuples and dicts; None without such."""
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        single, *parts = zip(*map(_builtin, inside), strict=True)
        in_tuple, in_dict = (next((types for types in part if types is not None), None) for part in parts)
        return frozenset[type]().union(*single), in_tuple, in_dict
    if origin is tuple and inside[-1] is ...:
        return frozenset(), _builtin(inside[0])[0], None
    if origin is Mapping and inside[0] is str:
        return frozenset(), None, _builtin(inside[1])[0]
    return _BUILTIN.get(origin or kind, frozenset()), None, None


def _odd(value: Any, kind: Any) -> list[Any]:
    """Return what is wrong of a value, itself or something that it holds: a list of one, or empty."""
    origin, inside = get_origin(kind), get_args(kind)
    if kind is Any or kind is object:
        return []
    if origin in (Union, UnionType):
        wrong = [_odd(value, choice) for choice in inside]
        return [] if [] in wrong else next((odd for odd in wrong if odd[0] is not value), [value])
    if origin is Literal:
        return [] if isinstance(value, str) and value in inside else [value]
    if origin is tuple:
        if not _is_listed(value) or (inside[-1] is not ... and len(value) != len(inside)):
            return [value]
        return next((odd for part in value if (odd := _odd(part, inside[0]))), list[Any]())
    if origin is Mapping:
        if not isinstance(value, Mapping):
            return [value]
        pairs = cast("Mapping[Any, Any]", value).items()
        odds = (_odd(key, inside[0]) or _odd(part, inside[1]) for key, part in pairs)
        return next(filter(None, odds), list[Any]())
    kinds = _PLAIN[origin or kind][0] if (origin or kind) in _PLAIN else Mapping if issubclass(kind, Mapping) else kind
    is_truth = isinstance(value, bool) and kind in (int, float)
    return [] if isinstance(value, kinds) and not is_truth else [value]


def _is_listed(value: Any) -> bool:
    return isinstance(value, Collection) and not _is_single(value)


def _is_single(value: Any) -> bool:
    return isinstance(value, str | bytes | Mapping) or getattr(value, "shape", None) == ()


def _takes_tuple(kind: Any) -> bool:
    return tuple in (get_origin(kind), *map(get_origin, get_args(kind)))


def _described(kind: Any, *, several: bool = False) -> str:
    """Return what a kind is: `a tuple of texts, or None`."""
    origin, inside = get_origin(kind), get_args(kind)
    if (origin or kind) in _PLAIN:
        return _PLAIN[origin or kind][2 if several else 1]
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(_described(choice, several=several) for choice in inside))
    if origin is Literal:
        return f"one of {', '.join(map(repr, inside))}"
    if origin is tuple:
        count = "" if inside[-1] is ... else f"{len(inside)} "
        return f"a tuple of {count}{_described(inside[0], several=True)}"
    if origin is Mapping:
        return f"a dict of {_described(inside[1], several=True)} by name"
    return "values" if kind is Any else kind.__name__ if several else f"a {kind.__name__}"
