"""The launch ledger: what a stretch of work cost in launches, gaps and copies, whole and per named range.

A gap is time in which a device had begun and had nothing to do: its kernels, copies and sets in order of their start,
a running maximum of their ends, and a gap wherever the next one starts later. Who is to blame is read off the call that
brought the work which ends the gap:

    sync      a synchronising call was under way when the gap began: the host waited instead of launching
    host      the host came to the call later than a whole call would have taken: it did something else first
    launch    the host was launching as fast as it can: the cost of the call itself
    queued    the call had returned before the gap began: the device's own time between two kernels
    unknown   the capture has no call for that work
"""

from dataclasses import dataclass

import numpy as np

from prism_bench.profilers.timeline import COPY, KERNEL, SET, Timeline, Work

BLAME = ("sync", "host", "launch", "queued", "unknown")
_LAUNCHES, _WAITS = ("launch",), ("synchronize", "streamwait", "eventquery")
_SECOND = 1e-9
_NO_CALL = -1


@dataclass(frozen=True)
class Gaps:
    """How many gaps there were, and the seconds in them."""

    count: int
    seconds: float


@dataclass(frozen=True)
class LedgerRow:
    """The account of one range, or of all (`name` is None), in seconds and bytes.

    `span` is first start to last end, summed over devices; `busy` the part of it in which something ran.
    """

    name: str | None
    kernels: int
    launch_calls: int
    copies: int
    sets: int
    copied_bytes: int
    kernel_seconds: float
    span: float
    busy: float
    gaps: dict[str, Gaps]

    @property
    def idle(self) -> float:
        """Seconds in gaps."""
        return self.span - self.busy

    @property
    def gap_count(self) -> int:
        return sum(gaps.count for gaps in self.gaps.values())

    @property
    def busy_share(self) -> float | None:
        """The part of the span in which the device worked; None where there is no span."""
        return self.busy / self.span if self.span else None


@dataclass(frozen=True)
class Ledger:
    """The whole, the ranges that took longest, and what a reader must know of the capture."""

    total: LedgerRow
    ranges: tuple[LedgerRow, ...]
    devices: dict[int, LedgerRow]
    tool: str
    version: str | None
    source: str
    notes: tuple[str, ...] = ()


def ledger(timeline: Timeline, most: int = 30) -> Ledger:
    """The ledger of a timeline; of its ranges at most those `most` names that hold the most work."""
    joined = _Joined(timeline)
    everything = np.ones(len(timeline.work), bool)
    devices = {int(one): joined.row(None, timeline.work.device == one) for one in np.unique(timeline.work.device)}
    found, left_out = _ranges(timeline, joined, most)
    total = joined.row(None, everything)
    notes = (*timeline.notes, *_notes(timeline, joined, left_out))
    return Ledger(total, found, devices, timeline.tool, timeline.version, timeline.source, notes)


def _notes(timeline, joined, left_out):
    if timeline.untraced_graphs:
        yield (f"{timeline.untraced_graphs} graph launches were traced as a whole: their kernels are not counted; "
               "capture with --cuda-graph-trace=node")  # fmt: skip
    if timeline.overhead:
        yield f"the profiler's own overhead, {timeline.overhead * _SECOND:.3g} s, lies inside the gaps"
    orphans = int((joined.call == _NO_CALL).sum())
    if orphans:
        yield f"{orphans} pieces of work have no call in the capture"
    if left_out:
        yield f"{left_out} more range names were left out"


class _Joined:
    """Work and calls of a timeline brought together."""

    def __init__(self, timeline: Timeline):
        self._work, self._calls = timeline.work, timeline.calls
        self.call = _call_of_work(timeline)
        is_launch, is_wait = timeline.named(*_LAUNCHES), timeline.named(*_WAITS)
        self._launching = _of_names(is_launch, self._calls.name)
        self._waits = _Waits(self._calls, _of_names(is_wait, self._calls.name))

    def row(self, name, chosen: np.ndarray, calls: np.ndarray | None = None) -> LedgerRow:
        """The account of the chosen work, and of the chosen calls: those that brought it, unless given."""
        work = self._work.where(chosen)
        launching = self._launching if calls is None else self._launching & calls
        if calls is None and not chosen.all():
            launching = launching & self._brought(chosen)
        gaps, span, busy = self._gaps(work, self.call[chosen])
        kernels, copies = work.kind == KERNEL, work.kind == COPY
        return LedgerRow(
            name=name,
            kernels=int(kernels.sum()),
            launch_calls=_distinct(self._calls, launching),
            copies=int(copies.sum()),
            sets=int((work.kind == SET).sum()),
            copied_bytes=int(work.bytes[copies].sum()),
            kernel_seconds=float((work.end[kernels] - work.start[kernels]).sum()) * _SECOND,
            span=span,
            busy=busy,
            gaps=gaps,
        )

    def _brought(self, chosen):
        mask = np.zeros(len(self._calls), bool)
        brought = self.call[chosen]
        mask[brought[brought != _NO_CALL]] = True
        return mask

    def _gaps(self, work: Work, call):
        counts, seconds = np.zeros(len(BLAME), int), np.zeros(len(BLAME))
        span = idle = 0
        for device in np.unique(work.device):
            on = np.flatnonzero(work.device == device)
            order = on[np.argsort(work.start[on], kind="stable")]
            start, reached = work.start[order], np.maximum.accumulate(work.end[order])
            length = start[1:] - reached[:-1]
            open_, blame = length > 0, self._blame(call[order[1:]], reached[:-1], work.process[order[1:]])
            span += int(reached[-1] - start[0])
            idle += int(length[open_].sum())
            counts += np.bincount(blame[open_], minlength=len(BLAME))
            seconds += np.bincount(blame[open_], length[open_], minlength=len(BLAME)) * _SECOND
        gaps = {word: Gaps(int(n), float(s)) for word, n, s in zip(BLAME, counts, seconds, strict=True) if n}
        return gaps, span * _SECOND, (span - idle) * _SECOND

    def _blame(self, call, gap_start, process):
        """One index into BLAME for each gap; `call` brought the work that ended it."""
        known = call != _NO_CALL
        if not len(self._calls):
            return np.full(len(call), BLAME.index("unknown"))
        began, ended = self._calls.start[call], self._calls.end[call]
        late = began - gap_start > ended - began
        conditions = [~known, self._waits.cover(gap_start, process), ended <= gap_start, late]
        words = ("unknown", "sync", "queued", "host")
        return np.select(conditions, [BLAME.index(word) for word in words], BLAME.index("launch"))


class _Waits:
    """Synchronising calls: was one under way at a given time, in a given process?"""

    def __init__(self, calls, chosen):
        self._by_process = {}
        for process in np.unique(calls.process[chosen]):
            mine = np.flatnonzero(chosen & (calls.process == process))
            order = mine[np.argsort(calls.start[mine])]
            self._by_process[int(process)] = calls.start[order], np.maximum.accumulate(calls.end[order])

    def cover(self, times, process):
        """A mask: whether a wait that had begun by then had not ended."""
        covered = np.zeros(len(times), bool)
        for one, (start, reached) in self._by_process.items():
            last = np.searchsorted(start, times, side="right") - 1
            covered |= (process == one) & (last >= 0) & (reached[np.maximum(last, 0)] >= times)
        return covered


def _call_of_work(timeline: Timeline) -> np.ndarray:
    """For each piece of work the index of the call that brought it; joined on correlation id and process.

    Of a runtime call and the driver call inside it, which share their id, the outer one.
    """
    work, calls = timeline.work, timeline.calls
    if not len(calls):
        return np.full(len(work), _NO_CALL, np.int64)
    keys = _key(calls)
    order = np.lexsort((calls.start, keys))
    keys = keys[order]
    wanted = _key(work)
    place = np.searchsorted(keys, wanted)
    place[place == len(keys)] = 0
    return np.where(keys[place] == wanted, order[place], _NO_CALL)


def _key(rows):
    return (rows.process.astype(np.int64) << 32) | rows.correlation


def _distinct(calls, chosen):
    """How many of the chosen calls there are, a runtime call and the driver call inside it being one."""
    return len(np.unique((calls.process[chosen].astype(np.int64) << 32) | calls.correlation[chosen]))


def _of_names(mask, names):
    """Which elements have a name of the mask; those without a name have none."""
    return (names >= 0) & np.append(mask, False)[names]


def _ranges(timeline, joined, most):
    """The rows of the ranges that brought the most work, and how many names were left out."""
    ranges, rows = timeline.ranges, []
    lengths = np.bincount(ranges.name, ranges.end - ranges.start) if len(ranges) else np.zeros(0)
    longest = [int(one) for one in np.argsort(-lengths, kind="stable") if lengths[one] > 0]
    for name in longest[:most]:
        calls = _calls_inside(timeline, ranges.name == name)
        work = np.append(calls, False)[joined.call]  # without a call: the appended one
        rows.append(joined.row(timeline.names[name], work, calls))
    return tuple(rows), max(0, len(longest) - most)


def _calls_inside(timeline, chosen):
    """A mask over the calls: made in one of the chosen ranges, by its thread."""
    calls, ranges = timeline.calls, timeline.ranges
    inside = np.zeros(len(calls), bool)
    for process, thread in {*zip(ranges.process[chosen].tolist(), ranges.thread[chosen].tolist(), strict=True)}:
        mine = chosen & (ranges.process == process) & (ranges.thread == thread)
        starts, ends = np.sort(ranges.start[mine]), np.sort(ranges.end[mine])
        open_at = np.searchsorted(starts, calls.start, "right") - np.searchsorted(ends, calls.start, "left")
        inside |= (open_at > 0) & (calls.process == process) & (calls.thread == thread)
    return inside
