"""Where a history is kept: what every such place offers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from prism_bench.errors import ResultsError

BRANCH = "branch:"
DEFAULT = f"{BRANCH}prism-bench-history"
Content = Path | bytes  # a file's, read when it is needed


@dataclass(frozen=True)
class HistoryState:
    """What a history holds: digests of each file by name, several where keepers at once wrote it, and a `version`."""

    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    version: str = ""


@dataclass(frozen=True)
class Keep:
    """One keep: what it is called, when it was (ISO 8601, UTC), by whom, and how many files it wrote."""

    id: str
    when: str
    who: str
    files: int


class HistoryTarget(Protocol):
    """A place that keeps a history."""

    @property
    def address(self) -> str:
        """Its address, for messages."""
        ...

    def digest(self, data: bytes) -> str:
        """Return the digest that this place names a content by."""
        ...

    def read(self) -> HistoryState:
        """Return what is kept; an empty state where nothing is."""
        ...

    def contents(self, files: Iterable[tuple[str, str]]) -> Iterable[bytes | ResultsError]:
        """Yield the contents of files by name and digest, in their order; errors in place of those that are missing."""
        ...

    def write(self, state: HistoryState, changes: Mapping[str, Content]) -> str:
        """Keep the changes after `state`; return the keep's name, or raise HistoryMoved and write nothing."""
        ...

    def keeps(self) -> list[Keep]:
        """Return all keeps, the newest first."""
        ...

    def problems(self) -> list[str]:
        """Return a sentence for each thing that is missing or damaged here."""
        ...


def sound_contents(target: HistoryTarget, files: Sequence[tuple[str, str]]) -> Iterator[bytes | ResultsError]:
    """Yield the contents of files by name and digest; an error for one that is missing or is not what was kept."""
    for (name, digest), data in zip(files, target.contents(files), strict=True):
        damaged = isinstance(data, bytes) and target.digest(data) != digest
        yield ResultsError(f"{name}: its content is not what was kept") if damaged else data
