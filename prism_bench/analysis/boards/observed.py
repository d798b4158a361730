"""What boards of one kind measured of the same code: log medians by unit and session.

A unit is a case with one machine code, under one driver, toolkit and protocol: its time is one number, whichever board
takes it. A session is what one board measured in one run.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy
from numpy.typing import NDArray

from prism_bench.analysis.compare.comparable import SOFTWARE, value_settings
from prism_bench.io.documents import json_line
from prism_bench.record.store import History
from prism_bench.record.store.points import Facts

Ints = NDArray[numpy.int64]
Floats = NDArray[numpy.float64]
_Thing = TypeVar("_Thing")
_Unit = tuple[str, str, int]  # case, code, surroundings
_Row = tuple[int, str, _Unit, float]


@dataclass(frozen=True, eq=False)
class Observations:
    """Trusted medians of one machine, backend and metric, one a row.

    `units`, `sessions` and `boards` number the rows' units, sessions and boards, the latter in `names`; `logs` are the
    natural logs of the medians in seconds. `cases` has the case of each unit, `records` the place in the history of
    each session's record.
    """

    names: tuple[str, ...]
    cases: tuple[str, ...]
    records: tuple[int, ...]
    units: Ints
    sessions: Ints
    boards: Ints
    logs: Floats

    def rows(self, chosen: NDArray[numpy.bool_]) -> "Observations":
        """Return the chosen rows, with the same numbers."""
        units, sessions, boards = (column[chosen] for column in (self.units, self.sessions, self.boards))
        return Observations(self.names, self.cases, self.records, units, sessions, boards, self.logs[chosen])


def machines_of(history: History) -> list[tuple[str, str]]:
    """Return machine and backend of the records, each pair once: a machine's name is that of its kind of GPU."""
    return list(dict.fromkeys((facts.machine, facts.backend) for facts in history.records))


def several_boards(records: Sequence[Facts]) -> bool:
    """Return whether more than one board is behind the records."""
    return len({board for facts in records for board in facts.device.split("+") if board}) > 1


def observed(history: History, metric: str) -> Observations:
    """Return what the history's boards measured in `metric`; its records are of one machine and backend.

    Medians that are not trusted, or of code that is not known, are left out.
    """
    rows = list(_rows(history, metric))
    names, cases, runs = _Numbers[str](), _Numbers[_Unit](), _Numbers[tuple[int, str]]()
    boards, units, sessions = list[int](), list[int](), list[int]()
    for record, board, unit, _ in rows:
        boards.append(names.of(board))
        units.append(cases.of(unit))
        sessions.append(runs.of((record, board)))
    logs = numpy.log(numpy.array([row[3] for row in rows], "f8"))
    return Observations(
        tuple(names.known), tuple(unit[0] for unit in cases.known), tuple(run[0] for run in runs.known),
        numpy.array(units, "i8"), numpy.array(sessions, "i8"), numpy.array(boards, "i8"), logs,
    )  # fmt: skip


class _Numbers(Generic[_Thing]):
    """Numbers of things, in the order in which they first come."""

    def __init__(self) -> None:
        self.known: dict[_Thing, int] = {}

    def of(self, thing: _Thing) -> int:
        """Return its number."""
        return self.known.setdefault(thing, len(self.known))


def _rows(history: History, metric: str) -> Iterator[_Row]:
    """Yield record, board, unit and seconds of every point of a known board, and of the anchors of several."""
    points = history.table
    known = {code for code in points.vocabulary["code"] if code}
    wanted = points.rows_with({"metric": {metric}, "subject": {"kernel"}, "doubt": {""}, "code": known})
    points = points.chosen(wanted & (points.columns["value"] > 0))
    around = _surroundings(history.records)
    places: list[int] = points.columns["record"].tolist()
    seconds: list[float] = points.columns["value"].tolist()
    cases, codes, boards = (points.texts(name) for name in ("case", "code", "board"))
    for record, case, code, board, value in zip(places, cases, codes, boards, seconds, strict=True):
        unit = case, code, around[record]
        if board:
            yield record, board, unit, value
        for other, anchors in history.records[record].anchors.items():
            own = anchors.get(case, {}).get(metric, 0.0)
            if own > 0:
                yield record, other, unit, own


def _surroundings(records: Sequence[Facts]) -> list[int]:
    """Return a number for the software and the protocol of each record: the same where times may be compared."""
    numbers = _Numbers[str]()
    found: list[int] = []
    for facts in records:
        software = {name: version for name, version in facts.software.items() if name.startswith(SOFTWARE)}
        found.append(numbers.of(json_line([software, value_settings(facts.protocol)])))
    return found
