"""A TOML file read strictly: every complaint names the file, the table and what would have been right."""

import tomllib
from collections.abc import Collection
from difflib import get_close_matches
from pathlib import Path

from prism_bench.documents import text_of
from prism_bench.errors import ResultsError

_REQUIRED = object()


class TomlTable:
    """One table of a file. Values are taken out key by key; what is left at the end was nobody's: `finish` says so."""

    def __init__(self, data: dict, where: str):
        self._data, self._left, self.where = data, dict(data), where
        self._known: list[str] = []

    def take(self, key: str, kind: type | tuple = str, default=_REQUIRED):
        """The value of `key`; a ResultsError where it is missing without a default, or of another kind."""
        self._known.append(key)
        if key not in self._data:
            if default is _REQUIRED:
                raise ResultsError(f"{self.where}: '{key}' is missing")
            return default
        value = self._left.pop(key)
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if isinstance(value, bool) or not isinstance(value, kinds):
            raise ResultsError(f"{self.where}: '{key}' is {value!r}, not {' or '.join(one.__name__ for one in kinds)}")
        return value

    @property
    def left(self) -> Collection[str]:
        """The keys that nobody has taken."""
        return self._left.keys()

    def number(self, key: str, default=_REQUIRED):
        """A number that is not negative."""
        value = self.take(key, (int, float), default)
        if isinstance(value, (int, float)) and not 0 <= value < float("inf"):
            raise ResultsError(f"{self.where}: '{key}' is {value}; it must be a number from 0 upwards")
        return value

    def known_word(self, key: str, known: Collection[str], default=_REQUIRED):
        """A word among `known`."""
        word = self.take(key, str, default)
        if word is not default and word not in known:
            raise ResultsError(f"{self.where}: {key} '{word}' is unknown{_near(word, known)}")
        return word

    def finish(self) -> None:
        """A ResultsError where a key is left that nobody asked for."""
        for key in self._left:
            raise ResultsError(f"{self.where}: unknown key '{key}'{_near(key, self._known)}")


def read_table(path: Path) -> TomlTable:
    """The file at `path` as a table; a ResultsError with the line where it is malformed."""
    try:
        return TomlTable(tomllib.loads(text_of(path, "readable TOML")), str(path))
    except (OSError, ValueError, RecursionError) as error:
        raise ResultsError(f"{path}: not readable TOML ({error})") from error


def _near(word, known):
    near = get_close_matches(word, list(known), n=3, cutoff=0.4)
    return f"; did you mean {', '.join(near)}?" if near else ""
