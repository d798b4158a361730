"""Causes of changes of level, and shifts: steps of one cause reported once."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import copysign, expm1, log
from statistics import median

import numpy

from prism_bench.analysis.build_identity import BuildChange, BuildIdentity, build_change
from prism_bench.analysis.compare.comparable import board_settings, free_settings, setting_changes, value_settings
from prism_bench.analysis.run_analysis import Finding, Gravity, metric_words, value_text
from prism_bench.analysis.trend.series import CAUSES, Breakpoint, CaseSeries, Cause, CauseKind, SeriesPoints, Step
from prism_bench.record.identity import Owner
from prism_bench.record.store import History
from prism_bench.record.store.points import Facts
from prism_bench.spec.metric import is_host_time
from prism_bench.units import count_text, share_text

# Causes of changes of level: what the records on both sides of a step do not have in common.
#
# Moves that other cases share at a run: what a change of every case, such as another GPU unit, explains.

AROUND = 5  # runs before and after, by whose medians a move is measured
_FEWEST = 3  # other cases: fewer show nothing
_COMMON = 0.75  # of the others, sorted by how far they moved; a quarter of them moved at least so far

_OfMetric = tuple[Owner, str]


class SharedMoves:
    """Moves of the cases whose machine code stayed the same, run by run, computed when they are needed."""

    def __init__(self, series: Iterable[CaseSeries], unknown: int, commits: Sequence[str | None]) -> None:
        self._unknown, self._commits = unknown, commits
        self._series: dict[_OfMetric, list[CaseSeries]] = {}
        self._moves: dict[tuple[_OfMetric, int], Mapping[str, float]] = {}
        for one in series:
            if one.key.subject == "kernel":
                self._series.setdefault(_owner(one), []).append(one)

    def move(self, series: CaseSeries, place: int, change: float) -> float | None:
        """Return the change of log time that other cases share with a `change` of the series at `place`.

        Cases differ in what they use of a device, so it is enough that a quarter of them moved. None where fewer than
        FEWEST other cases kept their machine code.
        """
        record = int(series.records[place])
        moves = [move for case, move in self._moves_at(_owner(series), record).items() if case != series.key.case]
        if len(moves) < _FEWEST:
            return None
        sign = copysign(1.0, change)
        return sign * max(0.0, float(numpy.quantile(sign * numpy.array(moves), _COMMON)))

    def _moves_at(self, owner: _OfMetric, record: int) -> Mapping[str, float]:
        if (owner, record) not in self._moves:
            found = ((one.key.case, self._move(one, record)) for one in self._series.get(owner, ()))
            self._moves[owner, record] = {case: move for case, move in found if move is not None}
        return self._moves[owner, record]

    def _move(self, series: CaseSeries, record: int) -> float | None:
        """Return how far the series moved from the runs before the record to those from it on; None with new code.

        Unknown code is the same within one commit.
        """
        place = int(numpy.searchsorted(series.records, record))
        inside = 0 < place < len(series.records) and int(series.records[place]) == record
        if not inside or series.codes[place - 1] != series.codes[place]:
            return None
        commits = {self._commits[int(series.records[one])] for one in (place - 1, place)}
        if series.codes[place] == self._unknown and (len(commits) > 1 or None in commits):
            return None
        before, after = series.values[max(0, place - AROUND) : place], series.values[place : place + AROUND]
        return float(numpy.log(numpy.median(after) / numpy.median(before)))


def _owner(series: CaseSeries) -> _OfMetric:
    return series.key.owner, series.key.metric


_CLOCK_CHANGE = 0.01  # relative: between processes a clock differs by a few tenths of a percent
_CLOCK_RUNS = 31
MOST = 0.5  # of all cases: where so many machine codes changed at once, it was not the source of one kernel
_NEARBY = (0, -1, 1)  # a step in a noisy series may be found one run off its cause

_EXCUSES: tuple[CauseKind, ...] = (
    "protocol",
    "device",
)  # they explain of a step what other cases share with it, and no more
_TOOLCHAIN = ("nvrtc", "runtime", "cuda")
_DRIVER = ("driver", "driver_cuda")

_UNEXPLAINED: CauseKind = "unexplained"
_Words = dict[CauseKind, str]  # what changed, in words by kind of cause
_Software = tuple[Mapping[str, str], Mapping[str, str]]


@dataclass(frozen=True)
class Change:
    """A change of level at `place` of a series: by `size` in log time, where `floor` (in log time) is worth a report.

    The level before began at place `start`, the new one ended before place `end`.
    """

    place: int
    size: float
    floor: float
    start: int
    end: int


class Causes:
    """Causes of the steps of one history. What two records differ in is computed once."""

    def __init__(self, history: History, series: Iterable[CaseSeries], points: SeriesPoints) -> None:
        self._records, self._columns = history.records, points.columns
        known, self._builds, self._boards = (points.vocabulary[word] for word in ("code", "build", "board"))
        self._codes: dict[int, dict[int, int]] = {}
        self._unknown = known.index("") if "" in known else -1
        self._compared: dict[tuple[int, int], _Words] = {}
        self._shared = SharedMoves(series, self._unknown, [facts.commit for facts in history.records])

    def of(self, series: CaseSeries, change: Change) -> tuple[int, Cause]:
        """Return the cause of the change of the series, and its place, moved to the cause if it is nearby."""
        if words := _of_boards(series, change):
            return change.place, Cause("device", words)
        for offset in _NEARBY:
            place = change.place + offset
            if 0 < place < len(series.records) and self._on_another_host(series, place):
                return place, Cause("device", f"another host: its clock read the {metric_words(series.key.metric)}")
            if 0 < place < len(series.records) and (found := self._changes(series, place)):
                return place, self._cause(series, replace(change, place=place), found)
        return self._soft_cause(series, change)

    def _soft_cause(self, series: CaseSeries, change: Change) -> tuple[int, Cause]:
        """Return the cause where nothing changed that explains a step: the clock, settings that are free, sources.

        Free settings should change no time: they are the cause of a step that other cases share, and else only named.
        """
        softer, last = self._softer(series, change), list[str]()
        for place in (change.place + offset for offset in _NEARBY):
            if not 0 < place < len(series.records):
                continue
            old, new = (self._records[int(series.records[one])] for one in (place - 1, place))
            if free := ", ".join(setting_changes(free_settings(old.protocol), free_settings(new.protocol))):
                last = [f"{CAUSES['protocol']} ({free})"]
                if "clock" not in softer and self._covered(change, self._shared.move(series, place, change.size)):
                    return place, Cause("protocol", last[0], tuple(softer.values()))
                break
        return change.place, _named(softer, last=last)

    def _covered(self, change: Change, shared: float | None) -> bool:
        """Return whether what other cases share of the change leaves nothing that is worth a report."""
        return shared is not None and abs(change.size) <= abs(shared) + change.floor

    def _cause(self, series: CaseSeries, change: Change, found: _Words) -> Cause:
        """Return the cause among what was `found`; an excuse for a step that others do not share comes last."""
        excuses: list[CauseKind] = [kind for kind in _EXCUSES if kind in found]
        if not excuses:
            return _named(found)
        shared = self._shared.move(series, change.place, change.size)
        if shared is None and "code" not in found and not self._sources(series, change.place):
            return _named(found)  # no other case, and nothing else that could be the cause
        if self._covered(change, shared):
            return _named(found, first=excuses)
        moved = "" if shared is None else f" (the other cases moved by {share_text(expm1(shared))})"
        aside = {kind: found.pop(kind) + moved for kind in excuses}
        return _named(found or self._softer(series, change), last=aside.values())

    def _on_another_host(self, series: CaseSeries, place: int) -> bool:
        """Return whether the host's clock read the metric and the host changed, or a GPU whose host is unknown."""
        if not is_host_time(series.key.metric):
            return False
        old, new = (self._records[int(series.records[one])] for one in (place - 1, place))
        before, after = ({str(board["host"]) for board in facts.boards if board.get("host")} for facts in (old, new))
        return before != after if before and after else old.device != new.device

    def _changes(self, series: CaseSeries, place: int) -> _Words:
        """Return what the records before and at `place` differ in that explains a step, by kind, in words."""
        old, new = int(series.records[place - 1]), int(series.records[place])
        found = dict(self._between(old, new))
        if found.get("device") == CAUSES["device"] and (series.levels or self._on_one_board(series, place)):
            found.pop("device")  # what its boards differ by is taken out, and `_of_boards` has the rest
        before, after = int(series.codes[place - 1]), int(series.codes[place])
        known = series.key.subject == "kernel" and self._unknown not in (before, after)
        build = self._build_change(series, place) if known and before != after else None
        if build and build.kind == "compiler":
            found["toolchain"] = build.words
        elif build or (known and before != after and not ("toolchain" in found and self._most_codes_changed(old, new))):
            found.pop("toolchain", None)
            found["code"] = build.words if build and build.kind == "both" else CAUSES["code"]
        elif known and before == after and len(found) > 1 and not is_host_time(series.key.metric):
            found.pop("toolchain", None)  # the machine code is the same: what else changed is the likelier cause
        software = self._records[old].software, self._records[new].software
        return found | _changed("library", software, _libraries(series, software))

    def _on_one_board(self, series: CaseSeries, place: int) -> bool:
        """Return whether one of both records' boards measured both runs: of merged records others may have changed."""
        boards = {self._boards[int(series.boards[one])] for one in (place - 1, place)}
        records = (self._records[int(series.records[one])] for one in (place - 1, place))
        return len(boards) == 1 and all(
            boards <= set(facts.device.split("+")) & (_uuids(facts) or boards) for facts in records
        )

    def _build_change(self, series: CaseSeries, place: int) -> BuildChange | None:
        old, new = (BuildIdentity.read(self._builds[int(series.builds[one])]) for one in (place - 1, place))
        return build_change(old, new)

    def _between(self, old: int, new: int) -> _Words:
        if (old, new) not in self._compared:
            self._compared[old, new] = _differences(self._records[old], self._records[new])
        return self._compared[old, new]

    def _most_codes_changed(self, old: int, new: int) -> bool:
        before, after = (self._codes_of(place) for place in (old, new))
        common = [case for case in before if case in after]
        changed = sum(before[case] != after[case] for case in common)
        return changed > MOST * len(common)

    def _codes_of(self, record: int) -> dict[int, int]:
        """Return the code of each case of a record."""
        if record not in self._codes:
            rows = numpy.flatnonzero(self._columns["record"] == record)
            cases, codes = (self._columns[name][rows].tolist() for name in ("case", "code"))
            self._codes[record] = dict(zip(cases, codes, strict=True))
        return self._codes[record]

    def _softer(self, series: CaseSeries, change: Change) -> _Words:
        """Return what changes slowly, or in every run, and so explains a step only where nothing else does."""
        return _clock(series, change) | self._sources(series, change.place)

    def _sources(self, series: CaseSeries, place: int) -> _Words:
        """Return new sources of a kernel whose machine code is not known, or that the host's clock timed."""
        old, new = (self._records[int(series.records[one])] for one in (place - 1, place))
        is_unknown = self._unknown in (int(series.codes[place - 1]), int(series.codes[place]))
        changed = (
            old.commit != new.commit
            and series.key.subject == "kernel"
            and (is_unknown or is_host_time(series.key.metric))
        )
        return {"sources": CAUSES["sources"]} if changed else {}


def _of_boards(series: CaseSeries, change: Change) -> str | None:
    """Return why the boards that took over may be the step, in words; None where they are not."""
    if series.levels is None:
        return None
    before = series.boards[change.start : change.place].tolist()
    after = series.boards[change.place : change.end].tolist()
    reach = series.levels.reach(before, after)
    return series.levels.words(before, after) if reach and abs(change.size) <= change.floor + reach else None


def _differences(old: Facts, new: Facts) -> _Words:
    """Return what two records differ in that may move every series, in words by kind of cause."""
    found: _Words = {}
    if all(getattr(old, name) == getattr(new, name) for name in ("protocol", "device", "boards", "software")):
        return found
    before, after = value_settings(old.protocol), value_settings(new.protocol)
    changed = [name for name in sorted(before | after) if before.get(name) != after.get(name)]
    if changed:
        found["protocol"] = f"{CAUSES['protocol']} ({', '.join(changed)})"
    earlier, later = _uuids(old), _uuids(new)
    moved = old.device != new.device or bool(earlier and later and earlier != later)
    settings = setting_changes(board_settings(old.boards), board_settings(new.boards))
    if moved or settings:
        found["device"] = ", ".join([*([CAUSES["device"]] if moved else []), *settings])
    software = old.software, new.software
    return found | _changed("toolchain", software, _TOOLCHAIN) | _changed("driver", software, _DRIVER)


def _uuids(facts: Facts) -> set[str]:
    """Return the boards that the record lists; none in older records."""
    return {str(board["uuid"]) for board in facts.boards if board.get("uuid")}


def breakpoints(records: Iterable[Facts]) -> Iterator[Breakpoint]:
    """Yield every place at which successive records of one owner differ; `records` are oldest first.

    A record whose time or machine is a guess has no place among them.
    """
    newest: dict[Owner, Facts] = {}
    for facts in records:
        if facts.guessed:
            continue
        machine, backend, environment = owner = facts.owner
        if owner in newest:
            for kind, words in _differences(newest[owner], facts).items():
                yield Breakpoint(machine, backend, facts.file, facts.created, kind, words, environment)
        newest[owner] = facts


def _changed(kind: CauseKind, software: _Software, names: Iterable[str]) -> _Words:
    """Return `{"driver": "driver 570.1 -> 580.2"}`; empty where all versions are the same."""
    old, new = software
    changed = [name for name in names if old.get(name) != new.get(name)]
    words = [f"{name} {old.get(name, 'absent')} -> {new.get(name, 'absent')}" for name in changed]
    return {kind: ", ".join(words)} if words else {}


def _libraries(series: CaseSeries, software: _Software) -> list[str]:
    """Return the packages whose versions matter: a peer's own, those on the CPU for a CPU's series, else CuPy's."""
    packages = sorted({*software[0], *software[1]})
    peer = series.key.subject.removeprefix("peer:")
    if peer != series.key.subject:
        return [name for name in packages if name == peer or name.startswith(f"{peer}-")]
    if series.key.backend == "cuda" and series.key.metric != "wall_time":
        return [name for name in packages if name.startswith("cupy")]
    return [name for name in packages if name not in (*_TOOLCHAIN, *_DRIVER)]


def _clock(series: CaseSeries, change: Change) -> _Words:
    """Return that the SM clock changed, where it did by as much as the level."""
    begin, place = max(change.start, change.place - _CLOCK_RUNS), change.place
    sides = series.clocks[begin:place], series.clocks[place : min(change.end, place + _CLOCK_RUNS)]
    before, after = (float(numpy.median(side)) for side in sides)
    if not before or not after or abs(after / before - 1) < _CLOCK_CHANGE:
        return {}
    if abs(change.size) > abs(log(after / before)) + change.floor:
        return {}  # a clock explains no more than its own change
    return {"clock": f"{CAUSES['clock']} ({before / 1e6:.0f} -> {after / 1e6:.0f} MHz)"}


def _named(found: Mapping[CauseKind, str], first: Sequence[CauseKind] = (), last: Iterable[str] = ()) -> Cause:
    """Return the cause of what was `found`: kinds of `first` before the others, in the order of CAUSES; then `last`."""
    order: list[CauseKind] = [*first, *(kind for kind in CAUSES if kind not in first)]
    kinds: list[CauseKind] = [kind for kind in order if kind in found] or [_UNEXPLAINED]
    also = (*(found[kind] for kind in kinds[1:]), *last)
    return Cause(kinds[0], found.get(kinds[0], CAUSES[kinds[0]]), also)


# Shifts: steps of one cause put together, reported once however many cases moved.

RECENT = 30  # records of a series for which a step to the worse is held against it; afterwards it is history
# Where these changed, times before and after were not made alike: no code has become slower.
_NOT_THE_CODE = ("protocol", "device", "clock")
_NAMED = 3


@dataclass(frozen=True)
class Shift:
    """Steps of one machine that begin with one record, in one direction, by one cause."""

    steps: tuple[Step, ...]

    @property
    def first(self) -> Step:
        return self.steps[0]

    @property
    def cases(self) -> tuple[str, ...]:
        """The cases that moved, each once."""
        return tuple(dict.fromkeys(step.key.case for step in self.steps))

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that moved, each once."""
        return tuple(dict.fromkeys(step.key.metric for step in self.steps))

    @property
    def largest(self) -> Step:
        """The step that moved most."""
        return max(self.steps, key=lambda step: max(step.ratio, 1 / step.ratio))

    @property
    def ratio(self) -> float:
        """The ratio of the step that is largest."""
        return self.largest.ratio

    def gravity(self, recent: int = RECENT) -> Gravity:
        """Return `bad` where a kernel has become worse and still is, by a cause in the code or around it."""
        held = [
            step
            for step in self.steps
            if step.worse and not step.recovered and step.age <= recent and step.key.subject == "kernel"
        ]
        return "bad" if held and self.first.cause.kind not in _NOT_THE_CODE else "note"

    def finding(self, recent: int = RECENT) -> Finding:
        """Return the finding of all its steps."""
        case, metric = (found[0] if len(found) == 1 else None for found in (self.cases, self.metrics))
        return Finding(self.gravity(recent), "step", case, self.message, metric, self.ratio)

    @property
    def message(self) -> str:
        """One sentence: what moved, by how much, since when, why."""
        step = self.first
        why = "; ".join((step.cause.words, *(f"also {words}" for words in step.cause.also)))
        recovered = ", meanwhile recovered" if step.worse and all(one.recovered for one in self.steps) else ""
        where = f" in {step.key.environment}" if step.key.environment else ""
        return f"{self._what} {self._by}{where} since {step.since} ({step.record}){recovered}: {why}{self._commits}"

    @property
    def _what(self) -> str:
        whose = {step.key.subject for step in self.steps} - {"kernel"}
        subject = f"{', '.join(sorted(whose)).replace(':', ' ')} " if whose else ""
        metrics = ", ".join(metric_words(metric) for metric in self.metrics)
        if len(self.cases) == 1:
            return f"{self.cases[0]}, {subject}{metrics}:"
        more = f" and {len(self.cases) - _NAMED} more" if len(self.cases) > _NAMED else ""
        return f"{count_text(len(self.cases), 'case')} ({', '.join(self.cases[:_NAMED])}{more}), {subject}{metrics}:"

    @property
    def _by(self) -> str:
        changes = sorted(abs(step.ratio - 1) for step in self.steps)
        word = "worse by" if self.first.worse else "better by"
        if len(changes) > 1:
            least, usual, most = (share_text(share) for share in (changes[0], median(changes), changes[-1]))
            return f"{word} {least} each," if least == most else f"{word} {least} to {most}, {usual} typically,"
        before, after = (value_text(self.first.key.metric, value) for value in (self.first.before, self.first.after))
        return f"{word} {share_text(changes[0])} ({before} -> {after})"

    @property
    def _commits(self) -> str:
        old, new = self.first.commits
        return f" [{old[:8]}..{new[:8]}]" if old and new and old != new else ""


def shifts(steps: Iterable[Step]) -> list[Shift]:
    """Return the steps put together, in the order of their first ones."""
    found: dict[tuple[Owner, str, bool, str, str], list[Step]] = {}
    for step in steps:
        words = "" if step.cause.kind == "clock" else step.cause.words  # every case has its own reading of the clock
        identity = step.key.owner, step.record, step.worse, step.cause.kind, words
        found.setdefault(identity, []).append(step)
    return [Shift(tuple(together)) for together in found.values()]


def findings(found: Sequence[Shift], recent: int = RECENT) -> list[Finding]:
    """Return one finding for each shift, the grave ones first."""
    return sorted((shift.finding(recent) for shift in found), key=lambda finding: finding.gravity != "bad")
