"""JSON text: the only place that writes it for files, standard output and other programs.

JSON has neither infinities nor NaN. Such a value becomes null, and a field `<name>_reason` beside it gives the cause.
Outputs of kernels that are infinite or NaN are words (`inf`, `nan`) in a record, and stay so.
"""

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any


def json_text(value: object, *, indent: int | None = None, sort_keys: bool = False) -> str:
    """Return the value as strict JSON, compact without `indent`; see the module for what JSON cannot hold."""
    form: dict[str, Any] = {"indent": indent, "sort_keys": sort_keys, "allow_nan": False}
    form["separators"] = (",", ":") if indent is None else None
    try:
        return json.dumps(value, default=_other, **form)
    except (ValueError, TypeError):  # a float that is not finite, or a key that is no text
        return json.dumps(plain(value), **form)


def json_line(value: object) -> str:
    """Return a value for our own processes, or one to tell values apart by; infinities and NaN stay what they are."""
    return json.dumps(value, default=str)


def _other(value: object) -> Any:
    """Return NumPy's scalars and arrays as numbers and lists, anything else as text."""
    return value.tolist() if callable(getattr(value, "tolist", None)) else str(value)


def plain(value: object) -> Any:
    """Return the value in JSON's own types: null where a float is not finite, text where no type fits."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return _object(value)
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(one) for one in value]
    if callable(getattr(value, "tolist", None)):  # NumPy's scalars and arrays
        return plain(value.tolist())
    return str(value)


def _object(value: Mapping[Any, Any]) -> dict[str, Any]:
    """The object, with a reason beside every value in which something is null that was a float."""
    made: dict[str, Any] = {}
    for key, one in value.items():
        made[str(key)] = plain(one)
        reason = _reason(one)
        if reason and f"{key}_reason" not in value:
            made[f"{key}_reason"] = reason
    return made


def _reason(value: object) -> str | None:
    """Why the value, or some of a list's, is null; None where nothing is. Objects inside have reasons of their own."""
    value = value.tolist() if callable(getattr(value, "tolist", None)) else value
    odd = [one for one in _floats(value) if not math.isfinite(one)]
    if not odd:
        return None
    words = " and ".join(sorted({_word(one) for one in odd}))
    return words if isinstance(value, float) else f"{len(odd)} null: {words}"


def _floats(value: object) -> Iterable[float]:
    """The float itself, or those of a list of lists; whatever has a `tolist` is such a list."""
    if isinstance(value, float):
        yield value
    elif isinstance(value, list | tuple | set | frozenset):
        for one in value:
            yield from _floats(one)
    elif callable(getattr(value, "tolist", None)):
        yield from _floats(value.tolist())


def _word(value: float) -> str:
    return "not a number" if math.isnan(value) else "infinite" if value > 0 else "minus infinite"
