"""JSON text: the only place that writes it for files, standard output and other programs.

JSON has neither infinities nor NaN. Such a value becomes null, and another field, `<name>_reason`, gives the cause.
Outputs of kernels that are infinite or NaN are words (`inf`, `nan`) in a record, and stay so.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, cast, runtime_checkable


@runtime_checkable
class _ArrayLike(Protocol):
    """A scalar or an array of NumPy, or of a library like it."""

    def tolist(self) -> Any:
        """Return the value as Python's own numbers and lists."""
        ...


def json_text(value: object, *, indent: int | None = None, sort_keys: bool = False) -> str:
    """Return the value as strict JSON, compact without `indent`; see the module for what JSON cannot hold."""
    form: dict[str, Any] = {"indent": indent, "sort_keys": sort_keys, "allow_nan": False}
    form["separators"] = (",", ":") if indent is None else None
    try:
        return json.dumps(value, default=_other, **form)
    except (ValueError, TypeError):  # a float that is not finite, or a key that is no text
        return json.dumps(plain(value), **form)


def quoted(text: str) -> str:
    """Return the text as a string of JSON that YAML and TOML read alike, which know no pairs of surrogates."""
    return json.dumps(text, ensure_ascii=False)


def json_line(value: object) -> str:
    """Return JSON for our own processes, or to compare values by; infinities and NaN stay what they are."""
    return json.dumps(value, default=str)


def _other(value: object) -> Any:
    """Return NumPy's scalars and arrays as numbers and lists, anything else as text."""
    return value.tolist() if isinstance(value, _ArrayLike) else str(value)


def plain(value: object) -> Any:
    """Return the value in JSON's own types: null where a float is not finite, text where no type fits."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return _object(cast("Mapping[object, object]", value))
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(one) for one in cast("Iterable[object]", value)]
    if isinstance(value, _ArrayLike):
        return plain(value.tolist())
    return str(value)


def _object(value: Mapping[object, object]) -> dict[str, Any]:
    """Return the object, with a reason for every value in which a float became null."""
    made: dict[str, Any] = {}
    for key, one in value.items():
        made[str(key)] = plain(one)
        reason = _reason(one)
        if reason and f"{key}_reason" not in value:
            made[f"{key}_reason"] = reason
    return made


def _reason(value: object) -> str | None:
    """Return why the value, or some of a list's, is null; None if nothing is. Objects inside have other reasons."""
    value = value.tolist() if isinstance(value, _ArrayLike) else value
    odd = [one for one in _floats(value) if not math.isfinite(one)]
    if not odd:
        return None
    words = " and ".join(sorted({_word(one) for one in odd}))
    return words if isinstance(value, float) else f"{len(odd)} null: {words}"


def _floats(value: object) -> Iterator[float]:
    """Yield the float itself, or those of a list of lists; whatever has a `tolist` is such a list."""
    if isinstance(value, float):
        yield value
    elif isinstance(value, list | tuple | set | frozenset):
        for one in cast("Iterable[object]", value):
            yield from _floats(one)
    elif isinstance(value, _ArrayLike):
        yield from _floats(value.tolist())


def _word(value: float) -> str:
    return "not a number" if math.isnan(value) else "infinite" if value > 0 else "minus infinite"
