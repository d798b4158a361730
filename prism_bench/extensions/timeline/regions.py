"""Timeline of a launch's regions: one clock for all multiprocessors, tracks, and a table of what the regions took."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from prism_bench.errors import MeasurementInvalid
from prism_bench.units import time_text

# A record as `regions.cuh` writes it. Its place is a flag, the multiprocessor, and in 5 bits the warp.
RECORD = np.dtype(
    [("end", "<u8"), *((name, "<u4") for name in ("length", "global", "block", "place", "region", "grid"))]
)
UNCLOSED = np.uint32(1 << 31)
_MOST_MISMATCH = 0.05  # of the timeline's length: how far clocks of multiprocessors may be apart
_LEAST_MISMATCH = 2e3  # ns, two steps of the coarsest clock of a device


@dataclass(frozen=True)
class RegionTimeline:
    """Regions of a launch in columns, sorted by launch, block, warp and time.

    `begin` and `end` are nanoseconds since the first region or, not `is_timed`, numbers of events. `region` indexes
    `names`, `launch` counts the launches, `parent` is the index of the region of the same warp around it, or -1.
    `mismatch` is how far, in nanoseconds, the times of 95 % of the regions miss the clock of the device.
    """

    names: tuple[str, ...]
    region: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    launch: np.ndarray
    block: np.ndarray
    warp: np.ndarray
    multiprocessor: np.ndarray
    parent: np.ndarray
    is_timed: bool
    mismatch: float = 0.0

    def __len__(self) -> int:
        return len(self.begin)

    @cached_property
    def length(self) -> np.ndarray:
        """Return how long each region was open."""
        return self.end - self.begin

    @cached_property
    def block_key(self) -> np.ndarray:
        """Return a number for each region that is the same within a block of a launch."""
        return _group(self.launch, self.block)

    @cached_property
    def warp_key(self) -> np.ndarray:
        """Return a number for each region that is the same within a warp of a launch."""
        return _group(self.launch, self.block, self.warp)

    @cached_property
    def slot(self) -> np.ndarray:
        """Return each region's place among the blocks that a multiprocessor holds at a time: the lowest free one."""
        count = int(self.block_key.max(initial=-1)) + 1
        first, last = np.full(count, np.inf), np.full(count, -np.inf)
        np.minimum.at(first, self.block_key, self.begin)
        np.maximum.at(last, self.block_key, self.end)
        home = np.zeros(count, np.int64)
        home[self.block_key] = self.multiprocessor
        slots = np.zeros(count, np.int64)
        ends: dict[int, list[float]] = {}
        for key in np.lexsort((first, home)):
            taken = ends.setdefault(int(home[key]), [])
            free = next((place for place, end in enumerate(taken) if end <= first[key]), len(taken))
            taken[free : free + 1] = [float(last[key])]
            slots[key] = free
        return slots[self.block_key]

    @property
    def busiest_events(self) -> int:
        """Return the events, two for each region, of the busiest warp's place on the device."""
        return 2 * int(np.bincount(_group(self.multiprocessor, self.slot, self.warp)).max(initial=0))


def _group(*columns: np.ndarray) -> np.ndarray:
    """Return a number from 0 for each row, equal for rows with equal values."""
    code = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        code = code * (int(column.max(initial=0)) + 1) + column
    return np.unique(code, return_inverse=True)[1]


def name_of(region: int, names: Mapping[int, str]) -> str:
    """Return a region's name; its id where the source builds the name by another macro."""
    return names.get(region, f"region {region:#010x}")


def timeline_of(records: np.ndarray, names: Mapping[int, str], clock: float | None) -> RegionTimeline:
    """Return the timeline of a buffer's records, whose cycles have `clock` hertz; without a clock they are events."""
    ids, region = np.unique(records["region"], return_inverse=True)
    place = (records["place"] & ~UNCLOSED).astype(np.int64)
    multiprocessor, warp = place >> 5, place & 31
    end, mismatch = _times(records, multiprocessor, clock) if clock else (records["end"].astype(np.float64), 0.0)
    begin = end - records["length"] * (1e9 / clock if clock else 1.0)
    if clock:
        begin, end = begin - begin.min(), end - begin.min()
    else:  # lanes that do not record count, too
        begin, end = np.unique((begin, end), return_inverse=True)[1].reshape(2, -1).astype(np.float64)
    launch, block = np.unique(records["grid"], return_inverse=True)[1], records["block"].astype(np.int64)
    order = np.lexsort((-end, begin, warp, block, launch))
    columns = (region, begin, end, launch, block, warp, multiprocessor)
    region, begin, end, launch, block, warp, multiprocessor = (column[order] for column in columns)
    parent = _parents(_group(launch, block, warp), begin, end)
    texts = tuple(name_of(int(number), names) for number in ids)
    return RegionTimeline(
        texts, region, begin, end, launch, block, warp, multiprocessor, parent, clock is not None, mismatch
    )


def _times(records: np.ndarray, multiprocessor: np.ndarray, clock: float) -> tuple[np.ndarray, float]:
    """Return the ends in nanoseconds of the device's clock, and how far they miss it.

    Each multiprocessor counts its cycles from another time, which is the median distance of its regions from the
    device's clock. That clock moves in coarse steps.
    """
    device = (records["global"] - records["global"][0]).astype(np.int32).astype(np.float64)
    ends = np.empty(len(records))
    for number in np.unique(multiprocessor):
        here = multiprocessor == number
        cycles = (records["end"][here] - records["end"][here].min()).astype(np.float64) * (1e9 / clock)
        ends[here] = cycles + np.median(device[here] - cycles)
    mismatch = float(np.percentile(np.abs(ends - device), 95))
    if mismatch > max(_LEAST_MISMATCH, _MOST_MISMATCH * float(np.ptp(ends))):
        raise MeasurementInvalid(
            f"clocks of the multiprocessors do not agree: regions miss the device's clock by "
            f"{time_text(mismatch * 1e-9)}; the SM clock changed in the launch, or it took longer than 2 s"
        )
    return ends, mismatch


def _parents(warps: np.ndarray, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return for each region, in the order of warp and time, the index of the innermost one around it, or -1."""
    parents = np.full(len(begin), -1, np.int64)
    around: list[int] = []
    for place in range(len(begin)):
        if place and warps[place] != warps[place - 1]:
            around.clear()
        while around and end[around[-1]] < end[place]:
            around.pop()
        if around:
            parents[place] = around[-1]
        around.append(place)
    return parents


# Table: one row for each name.


@dataclass(frozen=True)
class Spread:
    """Lowest, median and highest total of a region over warps or multiprocessors, in nanoseconds."""

    lowest: float
    median: float
    highest: float


@dataclass(frozen=True)
class RegionRow:
    """Regions of one name: how many, in how many blocks and warps of a block, within which other region, from when on.

    `share` is their own time, without regions inside them, of the time between first begin and last end of all warps;
    `low`, `middle`, `high` are the 5, 50 and 95 % quantiles of their lengths. These are None without times.
    """

    name: str
    count: int
    blocks: int
    warps: int
    inside: str
    first: float
    share: float | None = None
    low: float | None = None
    middle: float | None = None
    high: float | None = None
    over_warps: Spread | None = None
    over_multiprocessors: Spread | None = None


def rows(timeline: RegionTimeline) -> list[RegionRow]:
    """Return the table's rows, in the order in which regions are entered for the first time."""
    net = timeline.length.copy()
    nested = timeline.parent >= 0
    np.subtract.at(net, timeline.parent[nested], timeline.length[nested])
    whole = _warp_time(timeline)
    table = [_row(timeline, number, net, whole) for number in range(len(timeline.names))]
    return sorted(table, key=lambda row: row.first)


def _warp_time(timeline: RegionTimeline) -> float:
    count = int(timeline.warp_key.max(initial=-1)) + 1
    first, last = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(first, timeline.warp_key, timeline.begin)
    np.maximum.at(last, timeline.warp_key, timeline.end)
    return float((last - first).sum())


def _row(timeline: RegionTimeline, number: int, net: np.ndarray, whole: float) -> RegionRow:
    here = timeline.region == number
    around = timeline.parent[here]
    outer = sorted({timeline.names[region] for region in timeline.region[around[around >= 0]]})
    row = RegionRow(
        timeline.names[number],
        int(here.sum()),
        len(np.unique(timeline.block_key[here])),
        len(np.unique(timeline.warp[here])),
        ", ".join(outer),
        float(timeline.begin[here].min()),
    )
    if not timeline.is_timed:
        return row
    low, middle, high = np.percentile(timeline.length[here], (5, 50, 95))
    spreads = [_spread(keys[here], timeline.length[here]) for keys in (timeline.warp_key, timeline.multiprocessor)]
    share = float(net[here].sum()) / whole if whole else 0.0
    counted = (row.name, row.count, row.blocks, row.warps, row.inside, row.first)
    return RegionRow(*counted, share, float(low), float(middle), float(high), *spreads)


def _spread(keys: np.ndarray, lengths: np.ndarray) -> Spread:
    totals = np.bincount(np.unique(keys, return_inverse=True)[1], lengths)
    return Spread(float(totals.min()), float(np.median(totals)), float(totals.max()))


# Overlap: what other warps of the block do meanwhile.


def overlaps(timeline: RegionTimeline) -> dict[tuple[str, str], float]:
    """Return for pairs of regions the share of the first one's time in which a warp of the same block is in the second.

    No region of a pair is inside the other one. A producer's wait and a consumer's product are such a pair, and so are
    two regions that groups of warps enter in turn.
    """
    if not timeline.is_timed or not len(timeline):
        return {}
    step = float(timeline.end.max()) + 1.0
    begin, end = timeline.begin + step * timeline.block_key, timeline.end + step * timeline.block_key
    nested, shares = _nested(timeline), dict[tuple[str, str], float]()
    for second in range(len(timeline.names)):
        there = timeline.region == second
        edges, covered = _covered(begin[there], end[there])
        for first in range(len(timeline.names)):
            here = timeline.region == first
            if first == second or {(first, second), (second, first)} & nested:
                continue
            both = np.interp(end[here], edges, covered) - np.interp(begin[here], edges, covered)
            share = float(both.sum() / max(timeline.length[here].sum(), 1e-9))
            shares[timeline.names[first], timeline.names[second]] = share
    return shares


def _nested(timeline: RegionTimeline) -> set[tuple[int, int]]:
    """Return the pairs of names of which the second one is around the first one, at any distance."""
    pairs: set[tuple[int, int]] = set()
    inner, around = np.arange(len(timeline)), timeline.parent
    while (is_inside := around >= 0).any():
        inner, around = inner[is_inside], around[is_inside]
        codes = np.unique(timeline.region[inner] * len(timeline.names) + timeline.region[around])
        pairs |= {divmod(int(code), len(timeline.names)) for code in codes}
        around = timeline.parent[around]
    return pairs


def _covered(begin: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return times, and for each the length up to it of the union of the intervals."""
    order = np.argsort(begin, kind="stable")
    begin, last = begin[order], np.maximum.accumulate(end[order])
    opens = np.flatnonzero(np.concatenate(([True], begin[1:] > last[:-1])))
    closes = np.concatenate((opens[1:] - 1, [len(begin) - 1]))
    edges = np.stack((begin[opens], last[closes]), axis=1)
    lengths = np.concatenate(([0.0], np.cumsum(edges[:, 1] - edges[:, 0])))
    return edges.ravel(), np.stack((lengths[:-1], lengths[1:]), axis=1).ravel()
