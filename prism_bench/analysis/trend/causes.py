"""Why a level changed: what the records on both sides of a step do not have in common."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import expm1, log

import numpy

from prism_bench.analysis.comparable import value_settings
from prism_bench.analysis.trend.series import CaseSeries
from prism_bench.analysis.trend.shared import SharedMoves
from prism_bench.analysis.trend.step import CAUSES, Breakpoint, Cause
from prism_bench.metric import MEASURED
from prism_bench.store import History
from prism_bench.store.points import Facts
from prism_bench.units import share_text

CLOCK_CHANGE = 0.01  # relative: between processes a clock differs by a few tenths of a percent
CLOCK_NIGHTS = 31
MOST = 0.5  # of all cases: where so many machine codes changed at once, it was not the source of one kernel
NEARBY = (0, -1, 1)  # a step in a noisy series may be found one night off its cause

_EXCUSES = ("protocol", "device")  # they explain of a step what other cases share with it, and no more
_TOOLCHAIN = ("nvrtc", "runtime", "cuda")
_DRIVER = ("driver", "driver_cuda")


@dataclass(frozen=True)
class Change:
    """A change of level at `place` of a series: by `size` in log time, where `floor` (in log time) is worth a word.

    The level before began at place `start`, the new one ended before place `end`.
    """

    place: int
    size: float
    floor: float
    start: int
    end: int


class Causes:
    """Tells why, for the steps of one history. What two records differ in is worked out once."""

    def __init__(self, history: History, series: Iterable[CaseSeries]) -> None:
        self._records = history.records
        points = history.points
        self._bounds = numpy.searchsorted(points["record"].to_numpy(), range(len(self._records) + 1))
        self._cases, self._codes = (points[name].cat.codes.to_numpy() for name in ("case", "code"))
        self._unknown = list(points["code"].cat.categories).index("") if "" in points["code"].cat.categories else -1
        self._compared: dict[tuple[int, int], dict[str, str]] = {}
        self._shared = SharedMoves(series, self._unknown)

    def of(self, series: CaseSeries, change: Change) -> tuple[int, Cause]:
        """The cause of the change of the series, and its place, moved to the cause if it is nearby."""
        for offset in NEARBY:
            place = change.place + offset
            if 0 < place < len(series.records) and (found := self._changes(series, place)):
                return place, self._cause(series, replace(change, place=place), found)
        return change.place, _named(self._softer(series, change))

    def _cause(self, series, change, found):
        """The cause among what was `found`; what excuses a step that others do not share is told after all else."""
        excuses = [kind for kind in _EXCUSES if kind in found]
        if not excuses:
            return _named(found)
        shared = self._shared.move(series, change.place, change.size)
        if shared is None and "code" not in found and not self._sources(series, change.place):
            return _named(found)  # nobody to ask, and nothing else that could be to blame
        if shared is not None and abs(change.size) <= abs(shared) + change.floor:
            return _named(found, first=excuses)
        told = "" if shared is None else f" (the other cases moved by {share_text(expm1(shared))})"
        aside = {kind: found.pop(kind) + told for kind in excuses}
        return _named(found or self._softer(series, change), last=aside.values())

    def _changes(self, series, place):
        """What the records before and at `place` differ in that explains a step of this series, by kind, in words."""
        old, new = int(series.records[place - 1]), int(series.records[place])
        found = dict(self._between(old, new))
        codes = series.codes[place - 1], series.codes[place]
        known = series.key.subject == "kernel" and self._unknown not in codes
        if known and codes[0] != codes[1] and not ("toolchain" in found and self._most_codes_changed(old, new)):
            found.pop("toolchain", None)
            found["code"] = CAUSES["code"]
        elif known and codes[0] == codes[1] and len(found) > 1 and not _by_host(series):
            found.pop("toolchain", None)  # the machine code is the same: what else changed is the likelier cause
        software = self._records[old].software, self._records[new].software
        return found | _told("library", software, _libraries(series, software))

    def _between(self, old, new):
        if (old, new) not in self._compared:
            self._compared[old, new] = differences(self._records[old], self._records[new])
        return self._compared[old, new]

    def _most_codes_changed(self, old, new):
        before, after = (self._codes_of(place) for place in (old, new))
        common = [case for case in before if case in after]
        changed = sum(before[case] != after[case] for case in common)
        return changed > MOST * len(common)

    def _codes_of(self, record):
        rows = slice(self._bounds[record], self._bounds[record + 1])
        return dict(zip(self._cases[rows].tolist(), self._codes[rows].tolist(), strict=True))

    def _softer(self, series, change):
        """What changes slowly, or every night, and so explains a step only where nothing else does."""
        return _clock(series, change) | self._sources(series, change.place)

    def _sources(self, series, place):
        """New sources of a kernel whose machine code is not known, or that the host's clock timed."""
        old, new = (self._records[int(series.records[one])] for one in (place - 1, place))
        untold = self._unknown in (series.codes[place - 1], series.codes[place])
        changed = old.commit != new.commit and series.key.subject == "kernel" and (untold or _by_host(series))
        return {"sources": CAUSES["sources"]} if changed else {}


def differences(old: Facts, new: Facts) -> dict[str, str]:
    """What two records differ in that may move every series, in words by kind of cause."""
    found = {}
    before, after = value_settings(old.protocol), value_settings(new.protocol)
    changed = [name for name in sorted(before | after) if before.get(name) != after.get(name)]
    if changed:
        found["protocol"] = f"{CAUSES['protocol']} ({', '.join(changed)})"
    if old.device != new.device:
        found["device"] = CAUSES["device"]
    software = old.software, new.software
    return found | _told("toolchain", software, _TOOLCHAIN) | _told("driver", software, _DRIVER)


def breakpoints(records: Iterable[Facts]) -> Iterator[Breakpoint]:
    """Every place at which successive records of one machine and backend differ; `records` are the oldest first."""
    newest: dict[tuple[str, str], Facts] = {}
    for facts in records:
        owner = facts.machine, facts.backend
        if owner in newest:
            for kind, words in differences(newest[owner], facts).items():
                yield Breakpoint(*owner, facts.file, facts.created, kind, words)
        newest[owner] = facts


def _told(kind: str, software: tuple[Mapping, Mapping], names: Iterable[str]) -> dict[str, str]:
    """`{"driver": "driver 570.1 -> 580.2"}`; empty where all versions are the same."""
    old, new = software
    changed = [name for name in names if old.get(name) != new.get(name)]
    words = [f"{name} {old.get(name, 'absent')} -> {new.get(name, 'absent')}" for name in changed]
    return {kind: ", ".join(words)} if words else {}


def _libraries(series, software):
    """The packages whose versions matter to a series: a peer's own, NumPy's and its like for a CPU's, CuPy's else."""
    names = sorted(software[0] | software[1])
    peer = series.key.subject.removeprefix("peer:")
    if peer != series.key.subject:
        return [name for name in names if name == peer or name.startswith(f"{peer}-")]
    if series.key.backend == "cuda" and series.key.metric != "wall_time":
        return [name for name in names if name.startswith("cupy")]
    return [name for name in names if name not in (*_TOOLCHAIN, *_DRIVER)]


def _by_host(series):
    """Whether the host's clock read the metric, so that the host's own code counts too."""
    return series.key.metric in MEASURED and MEASURED[series.key.metric].clock == "host"


def _clock(series, change):
    """That the SM clock changed, where it did by as much as the level."""
    begin, place = max(change.start, change.place - CLOCK_NIGHTS), change.place
    sides = series.clocks[begin:place], series.clocks[place : min(change.end, place + CLOCK_NIGHTS)]
    before, after = (float(numpy.median(side)) for side in sides)
    if not before or not after or abs(after / before - 1) < CLOCK_CHANGE:
        return {}
    if abs(change.size) > abs(log(after / before)) + change.floor:
        return {}  # a clock explains no more than its own change
    return {"clock": f"{CAUSES['clock']} ({before / 1e6:.0f} -> {after / 1e6:.0f} MHz)"}


def _named(found: Mapping[str, str], first: Sequence[str] = (), last: Iterable[str] = ()) -> Cause:
    """The cause of the kinds that were `found`: `first` before the others, in the order of CAUSES; the words `last`."""
    kinds = [kind for kind in dict.fromkeys([*first, *CAUSES]) if kind in found] or ["unexplained"]
    also = (*(found[kind] for kind in kinds[1:]), *last)
    return Cause(kinds[0], found.get(kinds[0], CAUSES[kinds[0]]), also)
