"""Where a run record is read from that is no longer in its folder: its raw samples may be kept elsewhere.

A program sets that place once (`supply`); the command line does. Without it a missing record is missing.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol


class RawSource(Protocol):
    """A place that holds records which were removed from their folder."""

    def has(self, path: Path) -> bool:
        """Return whether the record that was at `path` is here."""
        ...

    def copy(self, path: Path) -> Path | None:
        """Return a readable copy of the record that was at `path`; None where it is not here."""
        ...


class _Supplied:
    def __init__(self) -> None:
        self.make: Callable[[], RawSource | None] | None = None
        self.source: RawSource | None = None


_SUPPLIED = _Supplied()


def supply(make: Callable[[], RawSource | None] | None) -> None:
    """Let `make` return the source, once, when a record is missing for the first time; None for no source."""
    _SUPPLIED.make, _SUPPLIED.source = make, None


def _source() -> RawSource | None:
    if _SUPPLIED.source is None and _SUPPLIED.make is not None:
        _SUPPLIED.source = _SUPPLIED.make()
    return _SUPPLIED.source


def is_present(path: Path) -> bool:
    """Return whether the record at `path` is there, or elsewhere."""
    if path.is_file():
        return True
    source = _source()
    return source is not None and source.has(path)


def copy_of(path: Path) -> Path | None:
    """Return a copy of the missing record from elsewhere; None where there is none."""
    source = _source()
    return source.copy(path) if source else None
