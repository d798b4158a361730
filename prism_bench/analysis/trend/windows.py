"""Windows of a history: so many records of one machine, backend and environment that their series are tested together.

A history of years is tested piece by piece, so that neither memory nor the time for one run more grows with it. A
window begins with the last records of the one before it: a step near its end is tested with runs on both sides. Where
a window begins depends on nothing but the number of records before it.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy

from prism_bench.analysis.trend.series import Course, Ints, SeriesPoints, series_of
from prism_bench.analysis.trend.step import Key
from prism_bench.record.identity import Owner
from prism_bench.record.store import History

LENGTH = 768  # records of a window that no earlier one has
OVERLAP = 256  # records that it shares with the one before


@dataclass(frozen=True)
class RecordWindow:
    """Records of one owner: their `places` in the history, of which `shared` are in an earlier window."""

    machine: str
    backend: str
    number: int
    places: Sequence[int]
    shared: int
    is_last: bool
    environment: str = ""

    def tests(self, record: int) -> bool:
        """Return whether a step that begins at this place of the window is for this window to find."""
        return (not self.shared or record >= OVERLAP // 2) and (self.is_last or record < self.end)

    @property
    def end(self) -> int:
        """The place from which on steps are for the next window to find."""
        return len(self.places) if self.is_last else len(self.places) - OVERLAP // 2


def windows_of(history: History) -> Iterator[RecordWindow]:
    """Yield the windows of each machine, backend and environment, the oldest first."""
    owners: dict[Owner, list[int]] = {}
    for place, facts in enumerate(history.records):
        owners.setdefault(facts.owner, []).append(place)
    for (machine, backend, environment), places in owners.items():
        for number, first in enumerate(range(0, len(places), LENGTH)):
            begin, end = max(0, first - OVERLAP), first + LENGTH
            yield RecordWindow(
                machine, backend, number, places[begin:end], first - begin, end >= len(places), environment
            )  # fmt: skip


@dataclass(frozen=True, eq=False)
class BoardCourse(Course):
    """A course with the GPU of each run: the same number in `boards` for the same one, in every course of a history.

    It is the point's own board, since a merged record has several; where that is unknown, or several boards measured
    the case, what its record was measured on.
    """

    boards: Ints


def window_courses(history: History, backend: str | None = None) -> Iterator[list[BoardCourse]]:
    """Yield for each window, of one backend or of all, the courses of its runs that no earlier window has.

    A key without a trusted run there has none. No more than one window is in memory.
    """
    numbers: dict[str, int] = {}
    for window in windows_of(history):
        if backend in (None, window.backend):
            yield list(_own_courses(history.part(window.places), window, numbers))


def _own_courses(part: History, window: RecordWindow, numbers: dict[str, int]) -> Iterator[BoardCourse]:
    """Yield the courses of a window's own runs, as arrays that hold no others."""
    places, points = numpy.array(window.places, "i4"), SeriesPoints.of(part)
    devices = _numbered((facts.device for facts in part.records), numbers)
    known = _numbered(points.vocabulary["board"], numbers)
    unknown = numbers.get("", -1)
    for one in series_of(part, points=points):
        own = one.records >= window.shared
        if own.any():
            boards, within = known[one.boards[own]], one.records[own]
            boards = numpy.where(boards == unknown, devices[within], boards)
            yield BoardCourse(one.key, places[within], one.values[own], boards)


def courses(history: History, wanted: Collection[Key] | None = None) -> Iterator[BoardCourse]:
    """Yield the whole course of every key with a trusted run, or of the `wanted` ones; they may be many."""
    found: dict[Key, list[BoardCourse]] = {}
    for window in window_courses(history):
        for one in window:
            if wanted is None or one.key in wanted:
                found.setdefault(one.key, []).append(one)
    for key, parts in found.items():
        yield BoardCourse(
            key, numpy.concatenate([one.records for one in parts]), numpy.concatenate([one.values for one in parts]),
            numpy.concatenate([one.boards for one in parts]),
        )  # fmt: skip


def _numbered(words: Iterable[str], numbers: dict[str, int]) -> Ints:
    """Return the number of each word; a new one gets the next."""
    return numpy.array([numbers.setdefault(word, len(numbers)) for word in words], "i4")
