"""What the profiled program told, event by event, and which launches of a capture belong to which of its cases."""

import json
from pathlib import Path

from prism_bench.errors import ResultsError
from prism_bench.profilers.launches import ProfiledLaunch


def attributed(launches: list[ProfiledLaunch], ends: list[dict], cut: bool = False) -> dict[str, tuple[list, list]]:
    """The launches of each case, and those that followed it: by the ranges around them, else by their order.

    `cut` says that a case ended the program, so that some of its launches may stand last. A ResultsError where ranges
    do not tell, and the launches are not as many as the cases' plans have.
    """
    ordered = sorted(launches, key=lambda launch: launch.id)
    within = lambda name: [one for one in ordered if any(f":{name}:" in cell for cell in one.ranges)]  # noqa: E731
    by_range = {end["end"]: (within(end["end"]), within(f"after {end['end']}")) for end in ends}
    if cut or sum(len(own) + len(after) for own, after in by_range.values()) == len(ordered):
        return by_range
    expected = sum(end["launches"] + end.get("following", 0) for end in ends)
    if expected != len(ordered):
        raise ResultsError(f"the profiler counted {len(ordered)} launches without ranges; the cases have {expected}")
    groups, first = {}, 0
    for end in ends:
        middle = first + end["launches"]
        last = middle + end.get("following", 0)
        groups[end["end"]] = ordered[first:middle], ordered[middle:last]
        first = last
    return groups


def launched(events: list[dict]) -> bool:
    """Whether kernels ran between marks, or the program never came so far as to fail by itself."""
    return any(event.get("launches") for event in events) or not any("begin" in event for event in events)


def cut_short(events: list[dict], case_seconds: float) -> tuple[str, str]:
    """Status and reason of the case in which the program ended: too late or by itself, and during what."""
    last = max(place for place, event in enumerate(events) if "begin" in event)
    name, during = events[last]["begin"], [event["at"] for event in events[last:] if "at" in event]
    stage = during[-1] if during else "making its inputs"
    if any("late" in event for event in events[last:]):
        return "timed out", f"{name}: the limit for one case, --case-seconds {case_seconds:g}, was over during {stage}"
    return "crashed", f"{name}: ended the program that profiled it, during {stage}"


def read_events(path: Path) -> list[dict]:
    """The events that were written whole by now."""
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]


def told_so_far(path: Path) -> tuple[int, str]:
    """How many cases have ended, and which one is being profiled."""
    events = read_events(path)
    begun = [event["begin"] for event in events if "begin" in event]
    return sum("end" in event for event in events), begun[-1] if begun else "starting"
