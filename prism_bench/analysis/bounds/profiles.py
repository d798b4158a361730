"""Profiles of cases: the table of their metrics, and the launch ledger of a traced timeline."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from prism_bench.analysis.bounds.bottleneck import bound_of, check_bytes, dram_bytes, empty_duration, peak_rates, value
from prism_bench.analysis.run_analysis import Finding
from prism_bench.analysis.summary import cache_bytes
from prism_bench.profilers.metrics import LOGICAL
from prism_bench.profilers.nsys import StatsTable
from prism_bench.profilers.timeline import COPY, GRAPH, KERNEL, NO_CALL, SET, Calls, Timeline
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.record.schema import JsonTable
from prism_bench.units import count_text, rate_text, share_text

# Newest counters of every case, and the table of metrics: one row per profiled case.


@dataclass(frozen=True)
class Counted:
    """A case in a record of counters, with that record and the name of its file."""

    case: CaseResult
    record: RunRecord
    file: str

    @property
    def rank(self) -> tuple[bool, bool, str]:
        """Greater is better: counted, more than only DRAM bytes, newer."""
        profile = self.case.profile
        return bool(profile.get("values")), profile.get("set") != "traffic", self.record.created


def newest_counted(records: Iterable[tuple[Path, RunRecord]]) -> dict[str, Counted]:
    """Return the best counters of each case by name; a case without counters is that of the newest record."""
    best: dict[str, Counted] = {}
    for path, record in records:
        for case in record.cases:
            counted = Counted(case, record, path.name)
            if case.name not in best or counted.rank > best[case.name].rank:
                best[case.name] = counted
    return best


ProfileRow = dict[str, float | str | None]
_SAME_PEAK = 0.03
_FACTS = ("case", "label", "status", "reason")
_JUDGED = ("bound", "evidence", "dram_bytes", "compulsory_bytes", "dram_ratio", "bytes_verdict")


def rows(record: RunRecord) -> list[ProfileRow]:
    """Return a row per case: every logical metric (None if not counted), the bottleneck, the verdict on DRAM bytes."""
    empty, cached = empty_duration(record.cases), cache_bytes(record.machine)
    return [_row(case, empty, cached) for case in record.cases]


def _row(case: CaseResult, empty: float | None, cached: int) -> ProfileRow:
    bound, checked = bound_of(case, empty), check_bytes(case, cached)
    judged = (bound.by, bound.evidence, dram_bytes(case), case.bytes, checked.ratio, checked.verdict)
    counted = {name: value(case, name) for name in case.profile.get("values", {})}
    facts = {"case": case.name, "label": case.label, "status": case.status, "reason": case.reason}
    return {**facts, **dict(zip(_JUDGED, judged, strict=True)), **counted}


def newest_rows(counted: Mapping[str, Counted]) -> list[ProfileRow]:
    """Return a row per case, sorted by name, with the file of its record."""
    table: list[ProfileRow] = []
    for name in sorted(counted):
        case, record = counted[name].case, counted[name].record
        row = _row(case, empty_duration(record.cases), cache_bytes(record.machine))
        table.append({**row, "record": counted[name].file})
    return table


def csv_text(table: Sequence[ProfileRow]) -> str:
    """Return rows as CSV, numbers to five digits, an empty cell for a missing value."""
    names = list(dict.fromkeys([*_FACTS, *_JUDGED, *(name for row in table for name in row)]))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
    writer.writeheader()
    for row in table:
        numbers = {name: number for name, number in row.items() if isinstance(number, float)}
        texts = {name: f"{number:.5g}" if number % 1 else f"{number:.0f}" for name, number in numbers.items()}
        writer.writerow({**row, **texts})
    return text.getvalue()


def profile_findings(record: RunRecord) -> list[Finding]:
    """Return the findings of the profile: failed cases, unexplained DRAM bytes, inconsistent peaks."""
    cached = cache_bytes(record.machine)
    findings: list[Finding] = []
    for case in record.cases:
        if case.status != "ok":
            gravity = "note" if case.status == "skipped" else "bad"
            findings.append(Finding(gravity, case.status, case.name, case.reason or "the record gives no reason"))
        checked = check_bytes(case, cached)
        if checked.verdict in ("more", "less"):
            ratio = share_text(checked.ratio) if checked.ratio is not None else "unknown"
            message = f"DRAM moved {checked.words} that must move ({ratio})"
            findings.append(Finding("note", "bytes", case.name, message))
    rates = peak_rates(record.cases)
    if rates and max(rates) - min(rates) > 2 * _SAME_PEAK * median(rates):
        low, high = (rate_text(rate, "B/s") for rate in (min(rates), max(rates)))
        message = f"rates over shares give DRAM peaks from {low} to {high}; they must agree"
        findings.append(Finding("untrusted", "peaks", None, message))
    return findings


# Launch ledger: launches, gaps and copies of a timeline, in total and per named range.
#
# A gap is time in which a device had begun and had nothing to do: with its kernels, copies, sets and graphs in order of
# their start and a running maximum of their ends, each work that starts later than the maximum ends a gap. The cause of
# a gap follows from the call that brought this work:
#
#     sync      a synchronising call was under way when the gap began: the host waited instead of launching
#     host      the host made the call later than a whole call would have taken: it did other things first
#     launch    the host was launching as fast as it can: the cost of the call itself
#     queued    the call had returned before the gap began: the device's time between two kernels
#     unknown   the capture has no call for that work

Blame = Literal["sync", "host", "launch", "queued", "unknown"]
_BLAME = get_args(Blame)
Ints = NDArray[np.integer]
Mask = NDArray[np.bool_]
_CAPTURE_BEGINS, _CAPTURE_ENDS = ("streambegincapture",), ("streamendcapture",)
_LAUNCHES, _WAITS = ("launch",), ("synchronize", "streamwait", "eventquery")
_SECOND = 1e-9
_BLOCK = 1 << 18


@dataclass(frozen=True)
class Gaps:
    """Number of gaps, and the seconds in them."""

    count: int
    seconds: float


@dataclass(frozen=True)
class LedgerRow:
    """Account of one range, or of all work (`name` is None), in seconds and bytes.

    `span` is first start to last end, summed over devices; `busy` is its part with work. `graphs` are executions of
    graphs traced as a whole: work of the device whose kernels are not in `kernels`.
    """

    name: str | None
    kernels: int
    graphs: int
    launch_calls: int
    copies: int
    sets: int
    copied_bytes: int
    kernel_seconds: float
    span: float
    busy: float
    gaps: dict[Blame, Gaps]

    @property
    def idle(self) -> float:
        """Seconds in gaps."""
        return self.span - self.busy

    @property
    def gap_count(self) -> int:
        return sum(gaps.count for gaps in self.gaps.values())

    @property
    def busy_share(self) -> float | None:
        """The share of the span in which the device worked; None without a span."""
        return self.busy / self.span if self.span else None


@dataclass(frozen=True)
class KernelTotal:
    """Launches of one kernel, and the seconds in all of them."""

    name: str
    launches: int
    seconds: float


@dataclass(frozen=True)
class LaunchLedger:
    """Total, kernels by their time, seconds in copies, the ranges that took longest, and notes on the capture.

    `left_out` is the number of range names that took less time than those in `ranges`.
    """

    total: LedgerRow
    kernels: tuple[KernelTotal, ...]
    copy_seconds: float
    ranges: tuple[LedgerRow, ...]
    devices: dict[int, LedgerRow]
    tool: str
    version: str | None
    source: str
    notes: tuple[str, ...] = ()
    left_out: int = 0


def ledger(timeline: Timeline, most: int = 30) -> LaunchLedger:
    """Return the ledger of a timeline; of its range names at most the `most` longest."""
    joined = _Joined(timeline)
    total = joined.row(None)
    numbers: list[int] = np.unique(timeline.work.device).tolist()
    devices = (
        {numbers[0]: total}
        if len(numbers) == 1
        else {device: joined.row(None, timeline.work.device == device) for device in numbers}
    )
    ranges, left_out = _ranges(timeline, joined, most)
    notes = (*timeline.notes, *_notes(timeline))
    copied = timeline.work.length[timeline.work.kind == COPY].sum(dtype=np.int64)
    facts = timeline.tool, timeline.version, timeline.source, notes
    return LaunchLedger(total, _kernel_totals(timeline), float(copied) * _SECOND, ranges, devices, *facts, left_out)


def _kernel_totals(timeline: Timeline) -> tuple[KernelTotal, ...]:
    """Return the kernels of the timeline, those that took longest first."""
    work = timeline.work
    names, lengths = work.name[work.kind == KERNEL], work.length[work.kind == KERNEL]
    launches = np.bincount(names + 1)  # those without a name are first
    seconds = np.bincount(names + 1, lengths) * _SECOND
    order: list[int] = [place for place in np.argsort(-seconds, kind="stable").tolist() if launches[place]]
    texts = ("unnamed kernel", *timeline.names)
    return tuple(KernelTotal(texts[place], int(launches[place]), float(seconds[place])) for place in order)


def _notes(timeline: Timeline) -> Iterator[str]:
    graphs = int((timeline.work.kind == GRAPH).sum())
    if graphs:
        yield (
            f"{count_text(graphs, 'execution')} of graphs were traced as a whole: busy time has them, the number of "
            "kernels does not; capture with --cuda-graph-trace=node"
        )
    if timeline.overhead:
        yield f"the profiler's own overhead, {timeline.overhead * _SECOND:.3g} s, is inside the gaps"
    orphans = int((timeline.work.call == NO_CALL).sum())
    if orphans:
        yield f"{count_text(orphans, 'piece')} of work have no call in the capture"


def summed_up(table: StatsTable) -> tuple[KernelTotal, ...] | None:
    """Return the rows of a summary of nsys stats by their time; None for a table that is a trace, or of sizes."""
    if table.kind not in ("kernels", "calls", "transfers", "ranges"):
        return None
    totals = [
        KernelTotal(str(row["name"]), round(float(row["count"])), float(row["total"]))
        for row in table.rows
        if {"name", "count", "total"} <= row.keys() and row["count"] and "" not in (row["count"], row["total"])
    ]
    return tuple(sorted(totals, key=lambda total: -total.seconds))


class _Joined:
    """Work and calls of a timeline, joined."""

    def __init__(self, timeline: Timeline) -> None:
        self._work, self._calls = timeline.work, timeline.calls
        names = self._calls.name
        self._launching = _of_names(timeline.named(*_LAUNCHES), names) & self._calls.outer & ~self._captured(timeline)
        self._waits = _Waits(self._calls, _of_names(timeline.named(*_WAITS), names))
        self._transfers = self._work.transfers

    def row(self, name: str | None, chosen: Mask | None = None, calls: Mask | None = None) -> LedgerRow:
        """Return the account of the chosen work (a mask; None: all work) and calls (None: those that brought it)."""
        kinds = self._work.kind if chosen is None else self._work.kind[chosen]
        launching = (
            self._launching if chosen is None else self._launching & (self._brought(chosen) if calls is None else calls)
        )
        gaps, span, busy = self._gaps(chosen)
        copies = self._work.kind[self._transfers] == COPY
        mine: Mask = self._work.kind == KERNEL
        if chosen is not None:
            mine &= chosen
            copies &= chosen[self._transfers]
        return LedgerRow(
            name=name,
            kernels=int((kinds == KERNEL).sum()),
            graphs=int((kinds == GRAPH).sum()),
            launch_calls=int(launching.sum()),
            copies=int((kinds == COPY).sum()),
            sets=int((kinds == SET).sum()),
            copied_bytes=int(self._work.bytes[copies].sum()),
            kernel_seconds=float(self._work.length.sum(where=mine, dtype=np.int64)) * _SECOND,
            span=span,
            busy=busy,
            gaps=gaps,
        )

    def _captured(self, timeline: Timeline) -> Mask:
        """Return which calls were recorded into a graph: those without work while their thread captured."""
        begins, ends = (
            _of_names(timeline.named(*words), self._calls.name) for words in (_CAPTURE_BEGINS, _CAPTURE_ENDS)
        )
        captured = np.zeros(len(self._calls), bool)
        threads = zip(self._calls.process[begins].tolist(), self._calls.thread[begins].tolist(), strict=True)
        for process, thread in set(threads):
            mine = np.flatnonzero((self._calls.process == process) & (self._calls.thread == thread))
            order = np.arange(1, len(mine) + 1)
            begun, ended = (np.maximum.accumulate(order * calls[mine]) for calls in (begins, ends))
            captured[mine] = begun > ended
        return captured & ~self._brought(np.ones(len(self._work), bool))

    def _brought(self, chosen: Mask) -> Mask:
        mask = np.zeros(len(self._calls) + 1, bool)
        mask[self._work.call[chosen]] = True
        return mask[:-1]  # work without a call has marked the last one

    def _gaps(self, chosen: Mask | None) -> tuple[dict[Blame, Gaps], float, float]:
        """Return gaps by cause, span and busy time; block by block, since the whole may be large."""
        tally = _Tally()
        reached: dict[int, int] = {}
        began: dict[int, int] = {}
        for start in range(0, len(self._work), _BLOCK):
            block = np.arange(start, min(start + _BLOCK, len(self._work)))
            block = block if chosen is None else block[chosen[block]]
            for device in np.unique(self._work.device[block]).tolist():
                on = block[self._work.device[block] == device]
                began.setdefault(device, int(self._work.start[on[0]]))
                reached[device] = self._gaps_of(on, reached.get(device), tally)
        span = sum(reached[device] - began[device] for device in reached)
        return tally.gaps(), span * _SECOND, (span - tally.idle) * _SECOND

    def _gaps_of(self, on: Ints, reached: int | None, tally: "_Tally") -> int:
        """Tally the gaps before each piece of a device's work, busy until `reached`; return the new end."""
        start = self._work.start[on]
        ends = np.maximum.accumulate(start + self._work.length[on])
        before = np.empty_like(ends)
        before[0] = start[0] if reached is None else reached
        before[1:] = ends[:-1] if reached is None else np.maximum(ends[:-1], reached)
        open_ = np.flatnonzero(start > before)
        tally.add(self._blame(self._work.call[on[open_]], before[open_]), start[open_] - before[open_])
        return int(ends[-1] if reached is None else max(ends[-1], reached))

    def _blame(self, call: Ints, gap_start: Ints) -> Ints:
        """Return one index into BLAME for each gap; `call` brought the work that ended it."""
        if not len(self._calls):
            return np.full(len(call), _BLAME.index("unknown"))
        began, length = self._calls.start[call], self._calls.length[call].astype(np.int64)
        waited = self._waits.cover(gap_start, self._calls.process[call])
        conditions = [call == NO_CALL, waited, began + length <= gap_start, began - gap_start > length]
        causes: tuple[Blame, ...] = ("unknown", "sync", "queued", "host")
        return np.select(conditions, [_BLAME.index(cause) for cause in causes], _BLAME.index("launch"))


class _Tally:
    """Gaps counted by cause, in nanoseconds."""

    def __init__(self) -> None:
        self._counts, self._times = np.zeros(len(_BLAME), int), np.zeros(len(_BLAME))

    def add(self, blame: Ints, lengths: Ints) -> None:
        self._counts += np.bincount(blame, minlength=len(_BLAME))
        self._times += np.bincount(blame, lengths, minlength=len(_BLAME))

    @property
    def idle(self) -> int:
        return int(self._times.sum())

    def gaps(self) -> dict[Blame, Gaps]:
        tallied = zip(_BLAME, self._counts, self._times, strict=True)
        return {cause: Gaps(int(count), float(time) * _SECOND) for cause, count, time in tallied if count}


class _Waits:
    """Synchronising calls by process, to find whether a call was under way at a given time."""

    def __init__(self, calls: Calls, chosen: Mask) -> None:
        self._by_process: dict[int, tuple[Ints, Ints]] = {}
        for process in np.unique(calls.process[chosen]).tolist():
            mine = np.flatnonzero(chosen & (calls.process == process))
            ends = calls.start[mine] + calls.length[mine]
            self._by_process[process] = calls.start[mine], np.maximum.accumulate(ends)

    def cover(self, times: Ints, process: Ints) -> Mask:
        """Return a mask: whether a wait that had begun by then had not ended."""
        covered = np.zeros(len(times), bool)
        for number, (start, reached) in self._by_process.items():
            last = np.searchsorted(start, times, side="right") - 1
            covered |= (process == number) & (last >= 0) & (reached[np.maximum(last, 0)] >= times)
        return covered


def _of_names(mask: Mask, names: Ints) -> Mask:
    """Return which elements have a name in the mask; False for elements without a name."""
    return np.append(mask, False)[names]


def _ranges(timeline: Timeline, joined: _Joined, most: int) -> tuple[tuple[LedgerRow, ...], int]:
    """Return the rows of the longest ranges, and the number of names left out."""
    ranges = timeline.ranges
    rows: list[LedgerRow] = []
    lengths = np.bincount(ranges.name + 1, ranges.end - ranges.start, 1)[1:]  # those without a name are first
    longest: list[int] = [name for name in np.argsort(-lengths, kind="stable").tolist() if lengths[name] > 0]
    for name in longest[:most]:
        calls = _calls_inside(timeline, ranges.name == name)
        work = np.append(calls, False)[timeline.work.call]  # work without a call: the appended one
        rows.append(joined.row(timeline.names[name], work, calls))
    return tuple(rows), max(0, len(longest) - most)


def _calls_inside(timeline: Timeline, chosen: Mask) -> Mask:
    """Return a mask over the calls: made in one of the chosen ranges, by its thread."""
    calls, ranges = timeline.calls, timeline.ranges
    inside = np.zeros(len(calls), bool)
    for process, thread in {*zip(ranges.process[chosen].tolist(), ranges.thread[chosen].tolist(), strict=True)}:
        mine = chosen & (ranges.process == process) & (ranges.thread == thread)
        opened = np.zeros(len(calls) + 1, np.int16)  # it may overflow; the final sums are right
        np.add.at(opened, np.searchsorted(calls.start, ranges.start[mine]), 1)
        np.add.at(opened, np.searchsorted(calls.start, ranges.end[mine], "right"), -1)
        inside |= (np.cumsum(opened[:-1], out=opened[:-1]) > 0) & (calls.process == process) & (calls.thread == thread)
    return inside


# Profiles of cases from a tracer (CUPTI, nsys): launches, gaps and copies of one call, without counters.


def profiles(ledger: LaunchLedger, repeats: int = 1) -> dict[str, JsonTable]:
    """Return the profile part by case, from the ledger's range of its name, with `repeats` calls."""
    reason = f"{ledger.tool} traces and counts no hardware events; the tool ncu does"
    facts: JsonTable = {
        "tool": ledger.tool,
        "version": ledger.version,
        "set": "traced",
        "clock_control": "none",
        "cache_control": "none",
        "passes": 1,
        "kernels": [],
    }
    uncounted = {name: {"value": None, "unit": metric.unit, "reason": reason} for name, metric in LOGICAL.items()}
    return {
        row.name: {**facts, "values": uncounted | _traced(row, ledger.tool, repeats)}
        for row in ledger.ranges
        if row.name is not None
    }


def _traced(row: LedgerRow, tool: str, repeats: int) -> JsonTable:
    counted = {
        "profiler_duration": (row.kernel_seconds / repeats, "s"),
        "launches": (row.kernels / repeats, "1"),
        "launch_calls": (row.launch_calls / repeats, "1"),
        "gaps": (row.gap_count / repeats, "1"),
        "gap_seconds": (row.idle / repeats, "s"),
        "copies": (row.copies / repeats, "1"),
        "copied_bytes": (row.copied_bytes / repeats, "B"),
    }
    source = f"activity records of {tool}"
    return {name: {"value": number, "unit": unit, "source": source} for name, (number, unit) in counted.items()}
