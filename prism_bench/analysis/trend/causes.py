"""Why a level changed: what the records on both sides of a step do not have in common."""

from collections.abc import Iterable, Iterator, Mapping

import numpy

from prism_bench.analysis.trend.series import Series
from prism_bench.analysis.trend.step import CAUSES, Breakpoint, Cause
from prism_bench.metric import MEASURED
from prism_bench.store import History
from prism_bench.store.points import Facts

CLOCK_CHANGE = 0.01  # relative: between processes a clock differs by a few tenths of a percent
CLOCK_NIGHTS = 31
MOST = 0.5  # of all cases: where so many machine codes changed at once, it was not the source of one kernel
NEARBY = (0, -1, 1)  # a step in a noisy series may be found one night off its cause

_NO_MATTER = ("processes", "seed", "seeds", "criteria")  # settings of a protocol that move no median
_TOOLCHAIN = ("nvrtc", "runtime", "cuda")
_DRIVER = ("driver", "driver_cuda")


class Causes:
    """Tells why, for the steps of one history. What two records differ in is worked out once."""

    def __init__(self, history: History):
        self._records = history.records
        points = history.points
        self._bounds = numpy.searchsorted(points["record"].to_numpy(), range(len(self._records) + 1))
        self._cases, self._codes = (points[name].cat.codes.to_numpy() for name in ("case", "code"))
        self._unknown = list(points["code"].cat.categories).index("") if "" in points["code"].cat.categories else -1
        self._compared: dict[tuple[int, int], dict[str, str]] = {}

    def of(self, series: Series, first: int) -> tuple[int, Cause]:
        """The cause of the step at place `first` of the series, and that place, moved to the cause if it is nearby."""
        for offset in NEARBY:
            place = first + offset
            if 0 < place < len(series.records) and (found := self._changes(series, place)):
                return place, _cause(found)
        return first, _cause(self._softer(series, first))

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

    def _softer(self, series, place):
        """What changes slowly, or every night, and so explains a step only where nothing else does."""
        old, new = (self._records[int(series.records[one])] for one in (place - 1, place))
        found = _clock(series, place)
        untold = self._unknown in (series.codes[place - 1], series.codes[place])
        if old.commit != new.commit and series.key.subject == "kernel" and (untold or _by_host(series)):
            found["sources"] = CAUSES["sources"]
        return found


def differences(old: Facts, new: Facts) -> dict[str, str]:
    """What two records differ in that may move every series, in words by kind of cause."""
    found = {}
    settings = [name for name in sorted(old.protocol | new.protocol) if name not in _NO_MATTER]
    changed = [name for name in settings if old.protocol.get(name) != new.protocol.get(name)]
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


def _clock(series, place):
    sides = series.clocks[max(0, place - CLOCK_NIGHTS) : place], series.clocks[place : place + CLOCK_NIGHTS]
    before, after = (float(numpy.median(side)) for side in sides)
    if not before or not after or abs(after / before - 1) < CLOCK_CHANGE:
        return {}
    return {"clock": f"{CAUSES['clock']} ({before / 1e6:.0f} -> {after / 1e6:.0f} MHz)"}


def _cause(found):
    kinds = [kind for kind in CAUSES if kind in found] or ["unexplained"]
    return Cause(kinds[0], found.get(kinds[0], CAUSES[kinds[0]]), tuple(found[kind] for kind in kinds[1:]))
