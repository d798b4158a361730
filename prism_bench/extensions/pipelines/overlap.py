"""How much of the time in which a device worked it worked on several things at once."""

from dataclasses import dataclass

import numpy as np

from prism_bench.errors import MeasurementInvalid
from prism_bench.profilers.timeline import COPY, KERNEL, Timeline


@dataclass(frozen=True)
class Overlap:
    """Overlap in one named range.

    It has `kernels` and `copies`, seconds in which anything ran (`busy`), and in which two pieces of work or more did
    (`shared`); `span` is from the first start to the last end.
    """

    kernels: int
    copies: int
    span: float
    busy: float
    shared: float

    @property
    def share(self) -> float:
        """The part of the busy time in which two or more pieces of work ran."""
        return self.shared / self.busy if self.busy else 0.0


def overlap(timeline: Timeline, name: str) -> Overlap:
    """Return what ran between the begin and the end of the range called `name`, which must hold all of its work.

    MeasurementInvalid where the timeline has no such range or no work in it.
    """
    chosen = _inside(timeline, name)
    if not chosen.any():
        raise MeasurementInvalid(f"the timeline holds no work in a range '{name}'")
    start, kind = timeline.work.start[chosen], timeline.work.kind[chosen]
    end = start + timeline.work.length[chosen]
    busy, shared = depths(start, end)
    span = (end.max() - start.min()) * 1e-9
    return Overlap(int((kind == KERNEL).sum()), int((kind == COPY).sum()), float(span), busy * 1e-9, shared * 1e-9)


def _inside(timeline: Timeline, name: str) -> np.ndarray:
    chosen = np.zeros(len(timeline.work), bool)
    words = np.array(timeline.names, object)
    for place in np.flatnonzero(words[timeline.ranges.name] == name) if len(timeline.ranges) else ():
        begin, end = timeline.ranges.start[place], timeline.ranges.end[place]
        chosen |= (timeline.work.start >= begin) & (timeline.work.start < end)
    return chosen


def depths(start: np.ndarray, end: np.ndarray) -> tuple[float, float]:
    """How long at least one of the intervals is open, and how long at least two."""
    times = np.concatenate([start, end])
    steps = np.concatenate([np.ones(len(start), int), -np.ones(len(end), int)])
    order = np.lexsort((steps, times))  # at one time ends come first: what follows at once does not overlap
    depth, lengths = np.cumsum(steps[order])[:-1], np.diff(times[order])
    return float(lengths[depth >= 1].sum()), float(lengths[depth >= 2].sum())
