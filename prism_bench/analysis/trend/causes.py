"""Causes of changes of level, and shifts: steps of one cause reported once."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import copysign, expm1, log
from statistics import median

import numpy

from prism_bench.analysis.build_identity import BuildIdentity, build_change
from prism_bench.analysis.compare.comparable import board_settings, free_settings, setting_changes, value_settings
from prism_bench.analysis.run_analysis import Finding, Gravity, metric_words
from prism_bench.analysis.trend.series import CAUSES, Breakpoint, CaseSeries, Cause, CauseKind, SeriesPoints, Step
from prism_bench.record.identity import Owner
from prism_bench.record.store import History
from prism_bench.record.store.points import Facts
from prism_bench.spec.metric import is_exact, is_host_time, value_text
from prism_bench.units import count_text, share_text

# Moves that other cases share at a run: a change of every case, such as another GPU unit, explains them.

AROUND = 5  # runs before and after, whose medians define a move
_FEWEST = 3  # other cases: fewer show nothing
_COMMON = 0.75  # of the other cases, sorted by their moves; a quarter of them moved at least as far

_OfMetric = tuple[Owner, str]


class _SharedMoves:
    """Moves of the cases with unchanged machine code, run by run, computed when needed."""

    def __init__(self, series: Iterable[CaseSeries], unknown: int, commits: Sequence[str | None]) -> None:
        self._unknown, self._commits = unknown, commits
        self._series: dict[_OfMetric, list[CaseSeries]] = {}
        self._moves: dict[tuple[_OfMetric, int], Mapping[str, float]] = {}
        for course in series:
            if course.key.subject == "kernel":
                self._series.setdefault((course.key.owner, course.key.metric), []).append(course)

    def move(self, series: CaseSeries, place: int, change: float) -> float | None:
        """Return the change of log time that other cases share with a `change` of the series at `place`.

        Cases use different parts of a device, so it is enough that a quarter of them moved. None if fewer than FEWEST
        other cases kept their machine code.
        """
        record, owner = int(series.records[place]), (series.key.owner, series.key.metric)
        moves = [move for case, move in self._moves_at(owner, record).items() if case != series.key.case]
        if len(moves) < _FEWEST:
            return None
        sign = copysign(1.0, change)
        return sign * max(0.0, float(numpy.quantile(sign * numpy.array(moves), _COMMON)))

    def _moves_at(self, owner: _OfMetric, record: int) -> Mapping[str, float]:
        if (owner, record) not in self._moves:
            moves = ((series.key.case, self._move(series, record)) for series in self._series.get(owner, ()))
            self._moves[owner, record] = {case: move for case, move in moves if move is not None}
        return self._moves[owner, record]

    def _move(self, series: CaseSeries, record: int) -> float | None:
        """Return the log ratio of the runs from the record on over those before it; None if the code changed.

        Unknown code is the same within one commit.
        """
        place = int(numpy.searchsorted(series.records, record))
        inside = 0 < place < len(series.records) and int(series.records[place]) == record
        if not inside or series.codes[place - 1] != series.codes[place]:
            return None
        commits = {self._commits[int(series.records[run])] for run in (place - 1, place)}
        if series.codes[place] == self._unknown and (len(commits) > 1 or None in commits):
            return None
        before, after = series.values[max(0, place - AROUND) : place], series.values[place : place + AROUND]
        return float(numpy.log(numpy.median(after) / numpy.median(before)))


# Causes of changes of level: differences between the records on both sides of a step.

_CLOCK_CHANGE = 0.01  # relative: between processes a clock differs by a few tenths of a percent
_CLOCK_RUNS = 31
MOST = 0.5  # of all cases: if more machine codes changed at once, the source of one kernel is not the cause
_NEARBY = (0, -1, 1)  # a step in a noisy series may be detected next to its cause

_EXCUSES: tuple[CauseKind, ...] = ("protocol", "device")  # they explain only the part of a step that other cases share
_OF_CODE: tuple[CauseKind, ...] = ("toolchain", "code")
_TOOLCHAIN = ("nvrtc", "runtime", "cuda")
_DRIVER = ("driver", "driver_cuda")

_UNEXPLAINED: CauseKind = "unexplained"
_Changes = dict[CauseKind, str]  # descriptions of changes by kind of cause
_Software = tuple[Mapping[str, str], Mapping[str, str]]


@dataclass(frozen=True)
class Change:
    """A change of level at position `place` of a series, by `size`; changes from `floor` on are worth a report.

    Both are in log time. The level before began at position `start`, the new level ended before position `end`.
    """

    place: int
    size: float
    floor: float
    start: int
    end: int


class Causes:
    """Causes of the steps of one history. The differences of two records are computed once."""

    def __init__(self, history: History, series: Iterable[CaseSeries], points: SeriesPoints) -> None:
        self._records, self._columns = history.records, points.columns
        known, self._builds, self._boards = (points.vocabulary[column] for column in ("code", "build", "board"))
        self._codes: dict[int, dict[int, int]] = {}
        self._unknown = known.index("") if "" in known else -1
        self._compared: dict[tuple[int, int], _Changes] = {}
        self._shared = _SharedMoves(series, self._unknown, [facts.commit for facts in history.records])

    def of(self, series: CaseSeries, change: Change) -> tuple[int, Cause]:
        """Return the cause of the change of the series, and its position, moved to the cause if it is nearby."""
        if reason := _of_boards(series, change):
            return change.place, Cause("device", reason)
        for offset in _NEARBY:
            place = change.place + offset
            if 0 < place < len(series.records) and self._on_another_host(series, place):
                return place, Cause("device", f"another host: its clock read the {metric_words(series.key.metric)}")
            if 0 < place < len(series.records) and (changes := self._changes(series, place)):
                return place, self._cause(series, replace(change, place=place), changes)
        return self._soft_cause(series, change)

    def _soft_cause(self, series: CaseSeries, change: Change) -> tuple[int, Cause]:
        """Return the cause if no change explains a step: the clock, free settings, or sources.

        Free settings should change no time: they are the cause of a step that other cases share, and else only named.
        """
        softer, last = self._softer(series, change), list[str]()
        for place in (change.place + offset for offset in _NEARBY):
            if not 0 < place < len(series.records):
                continue
            old, new = self._facts(series, place)
            if free := ", ".join(setting_changes(free_settings(old.protocol), free_settings(new.protocol))):
                last = [f"{CAUSES['protocol']} ({free})"]
                if "clock" not in softer and self._covered(change, self._shared.move(series, place, change.size)):
                    return place, Cause("protocol", last[0], tuple(softer.values()))
                break
        return change.place, _named(softer, last=last)

    def _facts(self, series: CaseSeries, place: int) -> tuple[Facts, Facts]:
        """Return the facts of the records before and at `place`."""
        return self._records[int(series.records[place - 1])], self._records[int(series.records[place])]

    def _covered(self, change: Change, shared: float | None) -> bool:
        """Return whether the move of other cases explains the change, except for less than is worth a report."""
        return shared is not None and abs(change.size) <= abs(shared) + change.floor

    def _cause(self, series: CaseSeries, change: Change, changes: _Changes) -> Cause:
        """Return the cause among the `changes`; an excuse for a step that other cases do not share comes last."""
        excuses: list[CauseKind] = [kind for kind in _EXCUSES if kind in changes]
        if not excuses:
            return _named(changes)
        shared = self._shared.move(series, change.place, change.size)
        if shared is None and "code" not in changes and not self._sources(series, change.place):
            return _named(changes)  # no other case, and no other possible cause
        if self._covered(change, shared):
            return _named(changes, first=excuses)
        moved = "" if shared is None else f" (the other cases moved by {share_text(expm1(shared))})"
        aside = {kind: changes.pop(kind) + moved for kind in excuses}
        return _named(changes or self._softer(series, change), last=aside.values())

    def _on_another_host(self, series: CaseSeries, place: int) -> bool:
        """Return whether the host's clock read the metric and the host changed, or a GPU whose host is unknown."""
        if not is_host_time(series.key.metric):
            return False
        old, new = self._facts(series, place)
        before, after = ({str(board["host"]) for board in facts.boards if board.get("host")} for facts in (old, new))
        return before != after if before and after else old.device != new.device

    def _changes(self, series: CaseSeries, place: int) -> _Changes:
        """Return the differences between the records before and at `place` that explain a step."""
        old, new = int(series.records[place - 1]), int(series.records[place])
        facts = self._facts(series, place)
        if (old, new) not in self._compared:
            self._compared[old, new] = _differences(*facts)
        changes = dict(self._compared[old, new])
        if changes.get("device") == CAUSES["device"] and (series.levels or self._on_one_board(series, place)):
            changes.pop("device")  # the factors of its boards are divided out, and `_of_boards` has the rest
        before, after = int(series.codes[place - 1]), int(series.codes[place])
        known = series.key.subject == "kernel" and self._unknown not in (before, after)
        build = None
        if known and before != after:
            builds = (BuildIdentity.read(self._builds[int(series.builds[run])]) for run in (place - 1, place))
            build = build_change(*builds)
        if build and build.kind == "compiler":
            changes["toolchain"] = build.words
        elif build or (
            known and before != after and not ("toolchain" in changes and self._most_codes_changed(old, new))
        ):
            changes.pop("toolchain", None)
            changes["code"] = build.words if build and build.kind == "both" else CAUSES["code"]
        elif known and before == after and len(changes) > 1 and not is_host_time(series.key.metric):
            changes.pop("toolchain", None)  # the machine code is the same: the other change is the likelier cause
        if is_exact(series.key.metric):  # no board, driver or way of measuring changes what the compiler made
            return {kind: changes[kind] for kind in _OF_CODE if kind in changes}
        software = facts[0].software, facts[1].software
        return changes | _changed("library", software, _libraries(series, software))

    def _on_one_board(self, series: CaseSeries, place: int) -> bool:
        """Return whether one board of both records measured both runs; other boards of merged records may change."""
        boards = {self._boards[int(series.boards[run])] for run in (place - 1, place)}
        return len(boards) == 1 and all(
            boards <= set(facts.device.split("+")) & (_uuids(facts) or boards) for facts in self._facts(series, place)
        )

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

    def _softer(self, series: CaseSeries, change: Change) -> _Changes:
        """Return changes that are slow, or in every run, and so explain a step only without other changes."""
        return _clock(series, change) | self._sources(series, change.place)

    def _sources(self, series: CaseSeries, place: int) -> _Changes:
        """Return new sources of a kernel with unknown machine code, or whose time the host's clock read."""
        old, new = self._facts(series, place)
        is_unknown = self._unknown in (int(series.codes[place - 1]), int(series.codes[place]))
        changed = (
            old.commit != new.commit
            and series.key.subject == "kernel"
            and (is_unknown or is_host_time(series.key.metric))
        )
        return {"sources": CAUSES["sources"]} if changed else {}


def _of_boards(series: CaseSeries, change: Change) -> str | None:
    """Return why a change of boards may explain the step, or None."""
    if series.levels is None:
        return None
    before = series.boards[change.start : change.place].tolist()
    after = series.boards[change.place : change.end].tolist()
    reach = series.levels.reach(before, after)
    return series.levels.words(before, after) if reach and abs(change.size) <= change.floor + reach else None


def _differences(old: Facts, new: Facts) -> _Changes:
    """Return the differences of two records that may move every series."""
    changes: _Changes = {}
    if all(getattr(old, name) == getattr(new, name) for name in ("protocol", "device", "boards", "software")):
        return changes
    before, after = value_settings(old.protocol), value_settings(new.protocol)
    changed = [name for name in sorted(before | after) if before.get(name) != after.get(name)]
    if changed:
        changes["protocol"] = f"{CAUSES['protocol']} ({', '.join(changed)})"
    earlier, later = _uuids(old), _uuids(new)
    moved = old.device != new.device or bool(earlier and later and earlier != later)
    settings = setting_changes(board_settings(old.boards), board_settings(new.boards))
    if moved or settings:
        changes["device"] = ", ".join([*([CAUSES["device"]] if moved else []), *settings])
    software = old.software, new.software
    return changes | _changed("toolchain", software, _TOOLCHAIN) | _changed("driver", software, _DRIVER)


def _uuids(facts: Facts) -> set[str]:
    """Return the boards that the record lists; empty for older records."""
    return {str(board["uuid"]) for board in facts.boards if board.get("uuid")}


def breakpoints(records: Iterable[Facts]) -> Iterator[Breakpoint]:
    """Yield every difference between successive records of one owner; `records` are oldest first.

    Records with a guessed time or machine are left out.
    """
    newest: dict[Owner, Facts] = {}
    for facts in records:
        if facts.guessed:
            continue
        machine, backend, environment = owner = facts.owner
        if owner in newest:
            for kind, text in _differences(newest[owner], facts).items():
                yield Breakpoint(machine, backend, facts.file, facts.created, kind, text, environment)
        newest[owner] = facts


def _changed(kind: CauseKind, software: _Software, names: Iterable[str]) -> _Changes:
    """Return `{"driver": "driver 570.1 -> 580.2"}`; empty if all versions are the same."""
    old, new = software
    changed = [name for name in names if old.get(name) != new.get(name)]
    versions = [f"{name} {old.get(name, 'absent')} -> {new.get(name, 'absent')}" for name in changed]
    return {kind: ", ".join(versions)} if versions else {}


def _libraries(series: CaseSeries, software: _Software) -> list[str]:
    """Return the packages whose versions matter: those of a peer, those on the CPU for a CPU's series, else CuPy's."""
    packages = sorted({*software[0], *software[1]})
    peer = series.key.subject.removeprefix("peer:")
    if peer != series.key.subject:
        return [name for name in packages if name == peer or name.startswith(f"{peer}-")]
    if series.key.backend == "cuda" and series.key.metric != "wall_time":
        return [name for name in packages if name.startswith("cupy")]
    return [name for name in packages if name not in (*_TOOLCHAIN, *_DRIVER)]


def _clock(series: CaseSeries, change: Change) -> _Changes:
    """Return a change of the SM clock that is as large as that of the level."""
    begin, place = max(change.start, change.place - _CLOCK_RUNS), change.place
    sides = series.clocks[begin:place], series.clocks[place : min(change.end, place + _CLOCK_RUNS)]
    before, after = (float(numpy.median(side)) for side in sides)
    if not before or not after or abs(after / before - 1) < _CLOCK_CHANGE:
        return {}
    if abs(change.size) > abs(log(after / before)) + change.floor:
        return {}  # a clock explains no more than its own change
    return {"clock": f"{CAUSES['clock']} ({before / 1e6:.0f} -> {after / 1e6:.0f} MHz)"}


def _named(changes: Mapping[CauseKind, str], first: Sequence[CauseKind] = (), last: Iterable[str] = ()) -> Cause:
    """Return the cause: kinds of `first` before the other changes, in the order of CAUSES; then `last`."""
    order: list[CauseKind] = [*first, *(kind for kind in CAUSES if kind not in first)]
    kinds: list[CauseKind] = [kind for kind in order if kind in changes] or [_UNEXPLAINED]
    also = (*(changes[kind] for kind in kinds[1:]), *last)
    return Cause(kinds[0], changes.get(kinds[0], CAUSES[kinds[0]]), also)


# Shifts: steps of one cause, which are reported once for all cases.

RECENT = 30  # records of a series for which a step to the worse counts; afterwards it is history
# After these changes times are measured in another way: no code has become slower.
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
        """The names of the cases that moved."""
        return tuple(dict.fromkeys(step.key.case for step in self.steps))

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that moved."""
        return tuple(dict.fromkeys(step.key.metric for step in self.steps))

    @property
    def largest(self) -> Step:
        """The step that moved most."""
        return max(self.steps, key=lambda step: max(step.ratio, 1 / step.ratio))

    @property
    def ratio(self) -> float:
        """The ratio of the largest step."""
        return self.largest.ratio

    def gravity(self, recent: int = RECENT) -> Gravity:
        """Return `bad` if a kernel has become and still is worse, by a cause in the code or around it."""
        is_worse = any(
            step.worse and not step.recovered and step.age <= recent and step.key.subject == "kernel"
            for step in self.steps
        )
        return "bad" if is_worse and self.first.cause.kind not in _NOT_THE_CODE else "note"

    def finding(self, recent: int = RECENT) -> Finding:
        """Return the finding of all its steps."""
        case, metric = (names[0] if len(names) == 1 else None for names in (self.cases, self.metrics))
        return Finding(self.gravity(recent), "step", case, self.message, metric, self.ratio)

    @property
    def message(self) -> str:
        """Cases, size, time and cause of the shift in one sentence."""
        step = self.first
        why = "; ".join((step.cause.words, *(f"also {change}" for change in step.cause.also)))
        recovered = ", meanwhile recovered" if step.worse and all(moved.recovered for moved in self.steps) else ""
        where = f" in {step.key.environment}" if step.key.environment else ""
        old, new = step.commits
        commits = f" [{old[:8]}..{new[:8]}]" if old and new and old != new else ""
        return (
            f"{self._cases_text} {self._size_text}{where} since {step.since} ({step.record}){recovered}: {why}{commits}"
        )

    @property
    def _cases_text(self) -> str:
        whose = {step.key.subject for step in self.steps} - {"kernel"}
        subject = f"{', '.join(sorted(whose)).replace(':', ' ')} " if whose else ""
        metrics = ", ".join(metric_words(metric) for metric in self.metrics)
        if len(self.cases) == 1:
            return f"{self.cases[0]}, {subject}{metrics}:"
        more = f" and {len(self.cases) - _NAMED} more" if len(self.cases) > _NAMED else ""
        return f"{count_text(len(self.cases), 'case')} ({', '.join(self.cases[:_NAMED])}{more}), {subject}{metrics}:"

    @property
    def _size_text(self) -> str:
        changes = sorted(abs(step.ratio - 1) for step in self.steps)
        direction = "worse by" if self.first.worse else "better by"
        text = _exact_share_text if is_exact(self.first.key.metric) else share_text
        if len(changes) > 1:
            least, usual, most = (text(share) for share in (changes[0], median(changes), changes[-1]))
            return (
                f"{direction} {least} each," if least == most else f"{direction} {least} to {most}, {usual} typically,"
            )
        before, after = (value_text(self.first.key.metric, value) for value in (self.first.before, self.first.after))
        return f"{direction} {text(changes[0])} ({before} -> {after})"


def _exact_share_text(share: float) -> str:
    """Return a share of which no digit is noise: `0.021 %`."""
    return f"{share * 100:.2g} %" if share < 0.1 else share_text(share)


def shifts(steps: Iterable[Step]) -> list[Shift]:
    """Return the shifts that the steps belong to, in the order of their first steps."""
    groups: dict[tuple[Owner, str, bool, str, str], list[Step]] = {}
    for step in steps:
        text = "" if step.cause.kind == "clock" else step.cause.words  # the clock's values differ between cases
        identity = step.key.owner, step.record, step.worse, step.cause.kind, text
        groups.setdefault(identity, []).append(step)
    return [Shift(tuple(group)) for group in groups.values()]


def findings(shifts: Sequence[Shift], recent: int = RECENT) -> list[Finding]:
    """Return the finding of each shift, grave findings first."""
    return sorted((shift.finding(recent) for shift in shifts), key=lambda finding: finding.gravity != "bad")
