"""Placement of kernels on boards: where they were measured last time, else where least is to be done."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from prism_bench.case import Case
from prism_bench.run_record import RunRecord


@dataclass(frozen=True)
class CaseGroup:
    """Cases that one board measures: a kernel with its variants, peers and the forms that it replaces.

    `seconds` is what a run of them is expected to take, `tasks` are the tasks of the cases.
    """

    kernels: tuple[str, ...]
    tasks: tuple[str, ...]
    seconds: float


def grouped(cases: Sequence[Case], seconds: Mapping[str, float]) -> list[CaseGroup]:
    """Return the groups of the cases in the order of their first case; `seconds` are those of each case by name."""
    home = {case.spec.name: case.spec.name for case in cases}
    for case in cases:
        later = (case.spec.before or "").partition(":")[0]
        if later in home:
            _join(home, case.spec.name, later)
    found: dict[str, list[Case]] = {}
    for case in cases:
        found.setdefault(_root(home, case.spec.name), []).append(case)
    return [
        CaseGroup(
            tuple(dict.fromkeys(case.spec.name for case in group)),
            tuple(case.task for case in group),
            sum(seconds.get(case.name, 0.0) for case in group),
        )
        for group in found.values()
    ]


def _root(home: Mapping[str, str], kernel: str) -> str:
    while home[kernel] != kernel:
        kernel = home[kernel]
    return kernel


def _join(home: dict[str, str], one: str, other: str) -> None:
    home[_root(home, one)] = _root(home, other)


def last_boards(records: Iterable[RunRecord]) -> dict[str, str]:
    """Return by kernel the UUID of the board that measured it last; `records` are the newest first."""
    found: dict[str, str] = {}
    for record in records:
        whole = {"uuid": record.machine.get("uuid"), "kernels": [case.kernel for case in record.cases]}
        for part in record.parts or (whole,):
            for kernel in part["kernels"] if part["uuid"] else ():
                found.setdefault(kernel, part["uuid"])
    return found


LEAST_SECONDS = 20.0  # of free groups in a job: shorter ones would mostly start processes


class Schedule:
    """What is still to be measured: groups that belong to a board, and groups that any board may take.

    A board takes its own groups first, the longest first, then free ones as long as others have more to do.
    """

    def __init__(self, groups: Iterable[CaseGroup], boards: Sequence[str], last: Mapping[str, str]) -> None:
        """Place the groups whose kernels `last` places on one of these boards there; the others are free."""
        self._own: dict[str, list[CaseGroup]] = {board: [] for board in boards}
        self._free: list[CaseGroup] = []
        for group in sorted(groups, key=lambda one: (-one.seconds, one.kernels)):
            known = [last[kernel] for kernel in group.kernels if last.get(kernel) in self._own]
            (self._own[known[0]] if known else self._free).append(group)

    @property
    def left(self) -> float:
        """The seconds of everything that no board has taken yet, on one board."""
        return sum(group.seconds for group in [*self._free, *(one for own in self._own.values() for one in own)])

    def __bool__(self) -> bool:
        return bool(self._free or any(self._own.values()))

    def add(self, groups: Iterable[CaseGroup]) -> None:
        """Let any board take these groups: the board that had them was lost."""
        self._free = sorted([*self._free, *groups], key=lambda one: (-one.seconds, one.kernels))

    def drop(self, board: str) -> None:
        """Let any board take the groups of a board that measures no more."""
        self.add(self._own.pop(board, []))

    def take(self, board: str, seconds: float, boards: int) -> list[CaseGroup]:
        """Return the board's next groups, of about so many seconds; none where nothing is left for it.

        The last block of free groups is divided among the `boards`, so that they end at about the same time.
        """
        taken = _first(self._own.get(board, []), seconds)
        spent = sum(group.seconds for group in taken)
        fair = max(LEAST_SECONDS, sum(group.seconds for group in self._free) / max(1, boards))
        if not taken or spent < min(seconds, fair):
            taken += _first(self._free, max(0.0, min(seconds, fair) - spent))
        return taken


def _first(groups: list[CaseGroup], seconds: float) -> list[CaseGroup]:
    """Remove and return the first groups of a list: one at least, and no more than fit in the seconds."""
    taken: list[CaseGroup] = []
    while groups and (not taken or sum(one.seconds for one in taken) + groups[0].seconds <= seconds):
        taken.append(groups.pop(0))
    return taken
