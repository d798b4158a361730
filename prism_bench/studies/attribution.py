"""Events of the profiled program, and which launches of a capture belong to which of its cases."""

import json
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Required, TypedDict

from prism_bench.errors import ResultsError
from prism_bench.profilers.launches import ProfiledLaunch
from prism_bench.run_record import Status


class CaseEnd(TypedDict, total=False):
    """How a case ended, the number of its launches, and of those that followed it."""

    status: Required[Status]
    reason: Required[str | None]
    launches: Required[int]
    following: int


class ProfileEvent(TypedDict, total=False):
    """One event of the profiled program.

    In order: `begin` of a case, `at` for each thing done with it, then its `end` with the fields of a `CaseEnd`; `late`
    where it takes too long; `left` are cases that there was no time for.
    """

    begin: str
    at: str
    end: str
    status: Status
    reason: str | None
    launches: int
    following: int
    late: str
    left: list[str]


CaseLaunches = tuple[list[ProfiledLaunch], list[ProfiledLaunch]]  # of the case, and following it


def ends_of(events: Sequence[ProfileEvent]) -> dict[str, CaseEnd]:
    """Return how each case ended, by name."""
    return {
        event["end"]: CaseEnd(
            status=event.get("status", "failed"), reason=event.get("reason"), launches=event.get("launches", 0),
            following=event.get("following", 0),
        )
        for event in events if "end" in event
    }  # fmt: skip


def attributed(
    launches: list[ProfiledLaunch], ends: Mapping[str, CaseEnd], cut: bool = False
) -> dict[str, CaseLaunches]:
    """Return the launches of each case, and those that followed it: by the ranges around them, else by their order.

    With `cut` a case ended the program, so that some of its launches may come last. A ResultsError where there are no
    ranges, and the launches are not as many as the cases' plans have.
    """
    ordered = sorted(launches, key=lambda launch: launch.id)

    def within(name: str) -> list[ProfiledLaunch]:
        return [launch for launch in ordered if any(f":{name}:" in cell for cell in launch.ranges)]

    by_range = {name: (within(name), within(f"after {name}")) for name in ends}
    if cut or sum(len(own) + len(after) for own, after in by_range.values()) == len(ordered):
        return by_range
    expected = sum(end["launches"] + end.get("following", 0) for end in ends.values())
    if expected != len(ordered):
        raise ResultsError(f"the profiler counted {len(ordered)} launches without ranges; the cases have {expected}")
    left = iter(ordered)
    return {name: (list(islice(left, end["launches"])), list(islice(left, end.get("following", 0))))
            for name, end in ends.items()}  # fmt: skip


def launched(events: Sequence[ProfileEvent]) -> bool:
    """Return whether kernels ran between marks, or the program ended before its first case."""
    return any(event.get("launches") for event in events) or not any("begin" in event for event in events)


def cut_short(events: Sequence[ProfileEvent], case_seconds: float) -> tuple[Status, str]:
    """Return status and reason of the case in which the program ended: too late or by itself, and during what."""
    last, name = [(place, event["begin"]) for place, event in enumerate(events) if "begin" in event][-1]
    during = [event["at"] for event in events[last:] if "at" in event]
    stage = during[-1] if during else "making its inputs"
    if any("late" in event for event in events[last:]):
        return "timed out", f"{name}: the limit for one case, --timeout {case_seconds:g}, was over during {stage}"
    return "crashed", f"{name}: ended the program that profiled it, during {stage}"


def read_events(path: Path) -> list[ProfileEvent]:
    """Return the events that are written completely by now."""
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]


def progress(path: Path) -> tuple[int, str]:
    """Return how many cases have ended, and which one is being profiled."""
    events = read_events(path)
    begun = [event["begin"] for event in events if "begin" in event]
    return sum("end" in event for event in events), begun[-1] if begun else "starting"
