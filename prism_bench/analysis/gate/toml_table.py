"""Strict reader of TOML files: every error names the file, the table and what would have been right."""

import tomllib
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Final, TypeVar, cast, get_origin, overload

from prism_bench.errors import ResultsError
from prism_bench.io.documents import text_of

_Kind = TypeVar("_Kind")
_Default = TypeVar("_Default")


class _Required:
    """Mark of a key without a default."""


_REQUIRED: Final = _Required()


class TomlTable:
    """One table of a file. Values are taken out key by key; `finish` rejects the keys that are left."""

    def __init__(self, data: Mapping[str, object], where: str) -> None:
        self._data, self._left, self.where = data, dict(data), where
        self._known: list[str] = []

    def keys(self) -> list[str]:
        """Return all keys of the table."""
        return list(self._data)

    @overload
    def take(self, key: str, kind: type[_Kind]) -> _Kind: ...

    @overload
    def take(self, key: str, kind: type[_Kind], default: _Default) -> _Kind | _Default: ...

    def take(self, key: str, kind: type[_Kind], default: _Default | _Required = _REQUIRED) -> _Kind | _Default:
        """Return the value of `key`; a ResultsError where it is missing without a default, or of another kind."""
        if key not in self._data and not isinstance(default, _Required):
            self._known.append(key)
            return default
        value = self._required(key)
        plain = get_origin(kind) or kind
        if isinstance(value, bool) or not isinstance(value, plain):
            raise ResultsError(f"{self.where}: '{key}' is {value!r}, not {plain.__name__}")
        return cast("_Kind", value)

    def _required(self, key: str) -> object:
        self._known.append(key)
        if key not in self._data:
            raise ResultsError(f"{self.where}: '{key}' is missing")
        return self._left.pop(key)

    @property
    def left(self) -> Collection[str]:
        """The keys that no caller has taken."""
        return self._left.keys()

    @overload
    def number(self, key: str) -> float: ...

    @overload
    def number(self, key: str, default: _Default) -> float | _Default: ...

    def number(self, key: str, default: _Default | _Required = _REQUIRED) -> float | _Default:
        """Return a number that is not negative; a ResultsError as of `take`."""
        if key not in self._data and not isinstance(default, _Required):
            return self.take(key, float, default)
        value = self._required(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ResultsError(f"{self.where}: '{key}' is {value!r}, not int or float")
        if not 0 <= value < float("inf"):
            raise ResultsError(f"{self.where}: '{key}' is {value}; it must be a number from 0 upwards")
        return value

    def known_word(self, key: str, known: Collection[str]) -> str:
        """Return a word among `known`."""
        word = self.take(key, str)
        if word not in known:
            raise ResultsError(f"{self.where}: {key} '{word}' is unknown{_near(word, known)}")
        return word

    def finish(self) -> None:
        """Raise a ResultsError where a key is left that no caller took."""
        for key in self._left:
            raise ResultsError(f"{self.where}: unknown key '{key}'{_near(key, self._known)}")


def read_table(path: Path) -> TomlTable:
    """Return the file at `path` as a table; a ResultsError with the line where it is malformed."""
    try:
        return TomlTable(tomllib.loads(text_of(path, "readable TOML")), str(path))
    except (OSError, ValueError, RecursionError) as error:
        raise ResultsError(f"{path}: not readable TOML ({error})") from error


def _near(word: str, known: Iterable[str]) -> str:
    near = get_close_matches(word, list(known), n=3, cutoff=0.4)
    return f"; did you mean {', '.join(near)}?" if near else ""
