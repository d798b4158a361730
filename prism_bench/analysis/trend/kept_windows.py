"""Findings of windows, kept in the user's cache until something that they depend on changes.

They depend on the content of the window's records, on the noise floors, and on the code that tests. Of a window without
the seals of its records (see `store.history.StoredPoints`) nothing is kept. The cache may be deleted at any time.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from prism_bench.analysis.trend.tested import Floors, TestedWindow
from prism_bench.analysis.trend.windows import RecordWindow
from prism_bench.errors import ResultsError
from prism_bench.io.documents import json_of_kind, kind_in
from prism_bench.io.files import cache_folder, write_atomically
from prism_bench.record.store.history import History

_ANALYSIS = Path(__file__).parent.parent


@dataclass(frozen=True)
class KeptWindow:
    """The findings of a window whose content has this digest."""

    digest: str
    found: TestedWindow


class WindowCache:
    """What was found in windows of one history, with the same choice of cases and the same smallest change."""

    def __init__(self, history: History, floors: Floors, smallest: float) -> None:
        self._history, self._floors, self._smallest = history, floors, smallest
        self._digests: dict[tuple[str, str], str] = {}

    def read(self, window: RecordWindow) -> TestedWindow | None:
        """Return what was found in a window with the same content; None where nothing is known of it."""
        digest = self._digest(window)
        try:
            kept = kind_in(self._path(window), "findings of a window", KeptWindow)
        except (OSError, ResultsError):
            return None
        return kept.found if digest and kept.digest == digest else None

    def write(self, window: RecordWindow, found: TestedWindow) -> None:
        """Keep what was found; where nothing can be kept, the next trend takes longer, and that is all."""
        if digest := self._digest(window):
            try:
                write_atomically(self._path(window), json_of_kind(KeptWindow(digest, found)))
            except OSError:
                return

    def _path(self, window: RecordWindow) -> Path:
        """Return the file of a window: a new content of it replaces the old one, other noise floors do not."""
        first = self._history.records[window.places[0]]
        chosen = sorted(self._history.cases or ()), sorted(self._history.metrics or ())
        owner = window.machine, window.backend, window.environment
        which = (*owner, window.number, first.file, first.created, self._smallest, self._floors_of(window), *chosen)
        return cache_folder("trends") / f"{_digest_of([repr(which)])}.json"

    def _digest(self, window: RecordWindow) -> str | None:
        stored = [self._history.stored[place] for place in window.places]
        if not all(one.seal for one in stored):
            return None
        contents = (f"{one.facts.file} {one.facts.when} {one.facts.commit} {one.seal}" for one in stored)
        return _digest_of([_maker(), repr((window.shared, window.is_last)), *contents])

    def _floors_of(self, window: RecordWindow) -> str:
        """Return a digest of the noise floors of the window's machine and backend."""
        owner = window.machine, window.backend
        if owner not in self._digests:
            own = sorted((key[2:], floor) for key, floor in self._floors.items() if key[:2] == owner)
            self._digests[owner] = _digest_of([repr(own)])
        return self._digests[owner]


def _digest_of(texts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:32]


@cache
def _maker() -> str:
    """Return a digest of the code that tests: other code finds other steps."""
    folders = ("trend", "compare", "boards", ".")
    sources = sorted(path for folder in folders for path in (_ANALYSIS / folder).glob("*.py"))
    return _digest_of(source.read_text() for source in sources)
