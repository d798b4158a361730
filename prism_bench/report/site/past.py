"""What pages show of the past of every series, of which no more than a window of runs is in memory.

A history of years is read once, window by window: its values go to the script files that pages load (`series_data`),
and what tables and pictures show of them stays here.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy
from numpy.typing import NDArray

from prism_bench.analysis.trend import Key, Step
from prism_bench.analysis.trend.windows import BoardCourse, window_courses
from prism_bench.record.store import History

RUNS = 60  # the newest runs of a series that stay: a line in a table shows no more
AROUND = 45  # runs on each side of a step that stay, for its picture


class SeriesPast:
    """The past of the series of one backend. The runs around the steps `drawn` stay; it is read when first needed."""

    def __init__(self, history: History, backend: str, drawn: Iterable[Step]) -> None:
        self._history, self._backend = history, backend
        places = {facts.file: place for place, facts in enumerate(history.records)}
        self._drawn: dict[Key, list[int]] = {}
        for step in drawn:
            self._drawn.setdefault(step.key, []).append(places[step.record])
        self._is_read = False
        self._forget()

    def _forget(self) -> None:
        self._newest: dict[Key, BoardCourse] = {}
        self._around: dict[Key, BoardCourse] = {}
        self._board: dict[str, int] = {}
        self._moved: dict[str, list[int]] = {}

    def windows(self) -> Iterator[list[BoardCourse]]:
        """Yield the courses of each window, oldest first, in the order in which their series first came."""
        self._forget()
        for found in window_courses(self._history, self._backend):
            for one in found:
                self._remember(one)
            order = {key: number for number, key in enumerate(self._newest)}
            found.sort(key=lambda one: order[one.key])
            for case, own in _by_case(found).items():
                self._remember_boards(case, own)
            yield found
        self._is_read = True

    def newest(self, case: str) -> list[BoardCourse]:
        """Return the newest RUNS runs of each series of the case."""
        return self._cases.get(case, [])

    def around(self, step: Step) -> tuple[BoardCourse, int]:
        """Return the runs around a step that is drawn, AROUND on each side at most, and the place of its first one."""
        self._read()
        course = self._around[step.key]
        record = next(place for place in self._drawn[step.key] if self._history.records[place].file == step.record)
        place = int(numpy.searchsorted(course.records, record))
        start = max(0, place - AROUND)
        return _part(course, slice(start, place + AROUND)), place - start

    def other_boards(self, case: str) -> list[int]:
        """Return the records from which on another GPU measured the case."""
        self._read()
        return self._moved.get(case, [])

    @cached_property
    def _cases(self) -> Mapping[str, list[BoardCourse]]:
        self._read()
        return _by_case(self._newest.values())

    def _read(self) -> None:
        if not self._is_read:
            for _ in self.windows():
                pass

    def _remember(self, course: BoardCourse) -> None:
        key = course.key
        self._newest[key] = _part(_joined(self._newest.get(key), course), slice(-RUNS, None))
        if key in self._drawn:
            known = _joined(self._around.get(key), course)
            self._around[key] = _part(known, _near(known, self._drawn[key]))

    def _remember_boards(self, case: str, own: Sequence[BoardCourse]) -> None:
        """Keep the runs of a window from which on another GPU measured the case."""
        only = {board for one in own for board in (int(one.boards.min()), int(one.boards.max()))}
        if self._board.get(case) in only and len(only) == 1:
            return
        boards: dict[int, int] = {}
        for one in own:
            boards.update(zip(one.records.tolist(), one.boards.tolist(), strict=True))
        known = self._board.get(case)
        for place in sorted(boards):
            if known not in (None, boards[place]):
                self._moved.setdefault(case, []).append(place)
            known = self._board[case] = boards[place]


def _by_case(courses: Iterable[BoardCourse]) -> dict[str, list[BoardCourse]]:
    found: dict[str, list[BoardCourse]] = {}
    for one in courses:
        found.setdefault(one.key.case, []).append(one)
    return found


def _joined(earlier: BoardCourse | None, later: BoardCourse) -> BoardCourse:
    if earlier is None:
        return later
    columns = ("records", "values", "boards")
    return replace(later, **{name: numpy.concatenate([getattr(earlier, name), getattr(later, name)])
                             for name in columns})  # fmt: skip


def _part(course: BoardCourse, runs: slice | NDArray[numpy.bool_]) -> BoardCourse:
    """Return some runs of a course, as arrays that hold no others."""
    return BoardCourse(course.key, course.records[runs].copy(), course.values[runs].copy(), course.boards[runs].copy())


def _near(course: BoardCourse, records: Iterable[int]) -> NDArray[numpy.bool_]:
    """Return which runs are AROUND of one of the records, or near the end, where the next one may be."""
    near = numpy.zeros(len(course.records), bool)
    near[-AROUND:] = True
    for place in numpy.searchsorted(course.records, sorted(records)).tolist():
        near[max(0, place - AROUND) : place + AROUND] = True
    return near
