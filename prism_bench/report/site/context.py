"""What the pages of one machine show: its newest run, every case's newest measurement, and its past."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path

import numpy
from numpy.typing import NDArray

from prism_bench.analysis.boards import KnownBoards
from prism_bench.analysis.bounds.bottleneck import is_timed
from prism_bench.analysis.compare.comparison import RecordComparison, compare
from prism_bench.analysis.compare.earlier_runs import earlier_runs
from prism_bench.analysis.compare.noise import Noise, stored_noise
from prism_bench.analysis.gate.budgets import Baseline
from prism_bench.analysis.gate.checks import (
    LAST_PART,
    Earlier,
    Gate,
    GatePart,
    baseline_part,
    earlier_records,
    gate,
    last_part,
    once,
    trend_part,
)
from prism_bench.analysis.run_analysis import Reading, read
from prism_bench.analysis.trend import Breakpoint, Key, Step, Trend, trend
from prism_bench.analysis.trend.causes import Shift, shifts
from prism_bench.analysis.trend.series import BoardCourse, kept_floors, window_courses
from prism_bench.catalogue import Catalogue
from prism_bench.errors import ResultsError
from prism_bench.io.files import path_part
from prism_bench.record import store
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.record.store import History
from prism_bench.record.store.points import Facts, utc
from prism_bench.record.store.records import in_order, is_present
from prism_bench.report.terminal.record import Line, lines

# The newest run compared with earlier ones: the run before, one of a week before, the baseline.

_WEEK = timedelta(days=7)


def against(
    record: RunRecord,
    earlier: Sequence[Facts],
    runs: Path,
    named: Collection[str],
    reading: tuple[Noise | None, Baseline | None, KnownBoards],
) -> Iterator[tuple[Facts, RecordComparison | str]]:
    """Yield each chosen earlier run with the comparison of `record` to it, or the reason why none exists.

    `named` are the commits that concerns of the gate compare with.
    """
    noise, baseline, boards = reading
    for facts in chosen(record, earlier, baseline, named):
        try:
            older = store.read(runs / facts.file, edges=False)
            yield facts, compare(older, record, noise, names=(name_of(facts), "this run"), boards=boards)
        except ResultsError as error:
            yield facts, str(error)


def name_of(facts: Facts) -> str:
    """`2026-11-20 fd4cb4b0`."""
    return f"{facts.when[:10]} {facts.commit[:8]}" if facts.commit else facts.when[:10]


def chosen(
    record: RunRecord, earlier: Sequence[Facts], baseline: Baseline | None, named: Collection[str]
) -> list[Facts]:
    """Return the run before, the newest one that is a week older, the baseline's and those of the commits `named`.

    Each of them once, the newest first.
    """
    before = (datetime.fromisoformat(utc(record.committed or record.created)) - _WEEK).isoformat() if earlier else ""
    weekly = [facts for facts in earlier if facts.when <= before]
    name = Path(baseline.record).name if baseline else None
    based = [facts for facts in earlier if Path(facts.file).name == name]
    compared = [[facts for facts in earlier if facts.commit == commit][-1:] for commit in named]
    wanted = [*earlier[-1:], *weekly[-1:], *based[-1:], *(facts for found in compared for facts in found)]
    return [facts for facts in reversed(earlier) if facts in wanted]


# Folders of what a site shows: the records, and what is kept next to them.


@dataclass(frozen=True)
class Places:
    """`runs` holds run records by machine; everything else is in folders next to it."""

    runs: Path

    @property
    def noise(self) -> Path:
        return self.runs.parent / "noise"

    @property
    def rounds(self) -> Path:
        """Records of the rounds in which kernels were made faster: true figures, but no runs of the trend."""
        return self.runs.parent / "rounds"

    @property
    def languages(self) -> Path:
        """Records of the catalogue's forms in all languages, by machine: true figures, but no runs of the trend."""
        return self.runs.parent / "languages"

    @property
    def tuning(self) -> Path:
        return self.runs.parent / "tuning"

    @property
    def memory(self) -> Path:
        """What `prism-bench memory --json` and `prism-bench pipeline --json` printed, and their records."""
        return self.runs.parent / "memory"

    @property
    def resources(self) -> Path:
        """The table of compiled resources."""
        return self.runs.parent / "compile" / "resources.csv"

    @property
    def items(self) -> Path:
        """Times of items that a persistent kernel served, by machine."""
        return self.runs.parent / "persistent"

    @property
    def profiles(self) -> Path:
        """Records of profilers, by machine."""
        return self.runs.parent / "profiles"


# Every case as the newest record that holds it shows it.

_AT_ONCE = 64  # records that are searched together for the newest times of cases


# What records other than the newest run are called, by origin.
ORIGINS = {"older": "an older record", "round": "a round", "languages": "a record of languages"}


@dataclass(frozen=True, eq=False)
class ShownCase:
    """A case with its row of the summary, its line of the table, and the reading that they are of.

    `origin` is `newest` for the newest run, `older` for a run before that left fewer cases out. Where no run has timed
    it, it is `round` for a round of making kernels faster, in one process, or `languages` for a record of languages.
    """

    case: CaseResult
    row: Mapping[str, object]
    line: Line
    reading: Reading
    origin: str

    @property
    def created(self) -> str:
        return self.reading.record.created

    @property
    def elsewhere(self) -> dict[str, str | None] | None:
        """The record that it is of, as a page's JSON names it; None where that is the newest run."""
        if self.origin == "newest":
            return None
        return {"origin": self.origin, "created": self.created, "commit": self.reading.record.commit}

    @property
    def implementation(self) -> str:
        return str(self.row["implementation"])


def _cases_of(reading: Reading, origin: str, wanted: Collection[str] | None = None) -> Iterator[ShownCase]:
    """Yield the cases of a reading, only the `wanted` ones if there are any named."""
    for row, line in zip(reading.rows, lines(reading), strict=True):
        if wanted is None or line.case.name in wanted:
            yield ShownCase(line.case, row, line, reading, origin)


def _newest_cases(
    reading: Reading, own: Sequence[Facts], history: History, places: Places, catalogue: Catalogue | None
) -> dict[str, ShownCase]:
    """Return by name the newest run's cases, then those of the catalogue that something older timed last.

    That is an older run, else a round of making kernels faster or a record of languages.
    """
    found = {one.case.name: one for one in _cases_of(reading, "newest")}
    known = {case.name for case in catalogue.cases()} if catalogue else set()
    for facts, names in _newest_with(history, own, known - set(found)):
        older = _read(places.runs / facts.file, catalogue)
        found |= {one.case.name: one for one in _cases_of(older, "older", names)} if older else {}
    for path, origin in _beside_runs(places, str(reading.record.machine["id"])):
        missing = known - set(found)
        made = _read(path, catalogue) if missing else None
        if made and made.record.backend == reading.record.backend:
            found |= {one.case.name: one for one in _cases_of(made, origin, missing)}
    return found


def _beside_runs(places: Places, machine: str) -> list[tuple[Path, str]]:
    """Return the records of the machine that are no runs of the trend, with their origin, the newest first."""
    folders = ((places.rounds, "round"), (places.languages, "languages"))
    found = [
        (path, origin)
        for folder, origin in folders
        for path in store.records_in(folder)
        if path.parent.name == path_part(machine)
    ]
    return sorted(found, key=lambda one: in_order(one[0]), reverse=True)


def _newest_with(history: History, own: Sequence[Facts], wanted: Collection[str]) -> Iterator[tuple[Facts, list[str]]]:
    """Yield each record that holds the newest time of wanted cases, with the names of these cases.

    Only the records `own` are searched.
    """
    mine = {facts.file for facts in own}
    places = [place for place, facts in enumerate(history.records) if facts.file in mine][::-1]
    left, cases = set(wanted), dict[int, list[str]]()
    words = {id(one): one for one in (history.stored[place].words["case"] for place in places)}
    names = {number: set(one) for number, one in words.items()}
    for first in range(0, len(places), _AT_ONCE):
        batch = places[first : first + _AT_ONCE]
        known = [place for place in batch if not left.isdisjoint(names[id(history.stored[place].words["case"])])]
        if not known:
            continue
        points = history.part(known).table
        points = points.chosen(points.rows_with({"case": left}))
        newest: dict[str, int] = {}
        for case, number in zip(points.texts("case"), points.columns["record"].tolist(), strict=True):
            newest.setdefault(case, number)  # a table begins with the record at the first place
        for case, number in newest.items():
            cases.setdefault(known[number], []).append(case)
        left -= set(newest)
    for place in sorted(cases):
        yield history.records[place], cases[place]


def _read(path: Path, catalogue: Catalogue | None) -> Reading | None:
    """Return the reading of an older record; None where it is gone."""
    return judged(store.read(path), catalogue)[0] if is_present(path) else None


def judged(record: RunRecord, catalogue: Catalogue | None) -> tuple[Reading, str | None]:
    """Return the reading of a record; one without budgets, and why, where those of the device do not apply to it."""
    try:
        return read(record, catalogue), None
    except ResultsError as error:
        return read(record), str(error)


# Every case as the newest run before its own has it: what its machine code is compared with.


def _earlier_cases(
    history: History, own: Sequence[Facts], runs: Path, cases: Iterable[ShownCase]
) -> dict[str, tuple[Facts, CaseResult]]:
    """Return by name the newest run before a case's own that timed it, and the case as it has it, without times.

    Only cases with machine code are compared. Each record is read once, and of it no more than these cases are kept.
    """
    wanted: dict[str, set[str]] = {}
    for one in cases:
        if one.case.code:
            wanted.setdefault(utc(one.created), set()).add(one.case.name)
    places: dict[str, tuple[Facts, set[str]]] = {}
    for created, names in wanted.items():
        place = next((place for place, one in enumerate(own) if one.created == created), None)
        before = [one for one in own if one.created < created] if place is None else own[:place]
        for facts, held in _newest_with(history, before, names):
            places.setdefault(facts.file, (facts, set()))[1].update(held)
    return {case.name: (facts, case) for facts, names in places.values() for case in _cases(runs / facts.file, names)}


def _cases(path: Path, names: set[str]) -> list[CaseResult]:
    if not is_present(path):
        return []
    cases = store.read(path, edges=False).cases
    return [replace(one, measurements=()) for one in cases if one.name in names and one.code and is_timed(one)]


# The newest run of each machine, backend and environment; a record that cannot be read is skipped and named.


@dataclass(frozen=True)
class NewestRecord:
    """The newest readable `record` of one owner, at `path`, and the newer files that were passed by."""

    machine: str
    record: RunRecord
    path: Path
    passed_by: tuple[str, ...] = ()


def newest_of_each(
    history: History, places: Places, given: RunRecord | None = None, path: Path | None = None
) -> list[NewestRecord]:
    """Return that of the newest commit of each machine, backend and environment; first the `given` one, or the newest.

    A ResultsError where no record can be read.
    """
    found = [] if given is None or path is None else [_given(given, path, history)]
    known = {one.record.owner for one in found}
    problems = tuple(f"{one.file}: {one.reason}" for one in history.problems)
    for facts in reversed(history.records):
        if facts.owner not in known and is_present(places.runs / facts.file):
            known.add(facts.owner)
            record = store.read(places.runs / facts.file)
            found.append(NewestRecord(facts.machine, record, places.runs / facts.file, _of(facts.machine, problems)))
    if not found:
        store.newest(places.runs)
        raise ResultsError(history.problems[0].reason)
    return found


def _given(record: RunRecord, path: Path, history: History) -> NewestRecord:
    problems = tuple(f"{one.file}: {one.reason}" for one in history.problems)
    machine = str(record.machine["id"])
    return NewestRecord(machine, record, path, _of(machine, problems))


def _of(machine: str, problems: Sequence[str]) -> tuple[str, ...]:
    """Return the problems of files in the machine's folder."""
    return tuple(problem for problem in problems if problem.startswith(f"{machine}/"))


# What pages show of the past of every series, of which no more than a window of runs is in memory.
#
# A history of years is read once, window by window: its values go to the script files that pages load (`series_data`),
# and what tables and pictures show of them stays here.

RUNS = 60  # the newest runs of a series that stay: a line in a table shows no more
AROUND = 45  # runs on each side of a step that stay, for its picture


class SeriesPast:
    """The past of the series of one backend. The runs around the steps `drawn` stay; it is read when first needed."""

    def __init__(self, history: History, backend: str, drawn: Iterable[Step]) -> None:
        self._history, self._backend = history, backend
        places = {facts.file: place for place, facts in enumerate(history.records)}
        self._drawn: dict[Key, list[int]] = {}
        for step in drawn:
            self._drawn.setdefault(step.key, []).append(places[step.record])
        self._is_read = False
        self._forget()

    def _forget(self) -> None:
        self._newest: dict[Key, BoardCourse] = {}
        self._around: dict[Key, BoardCourse] = {}
        self._board: dict[str, int] = {}
        self._moved: dict[str, list[int]] = {}

    def windows(self) -> Iterator[list[BoardCourse]]:
        """Yield the courses of each window, oldest first, in the order in which their series first came."""
        self._forget()
        for found in window_courses(self._history, self._backend):
            for one in found:
                self._remember(one)
            order = {key: number for number, key in enumerate(self._newest)}
            found.sort(key=lambda one: order[one.key])
            for case, own in _by_case(found).items():
                self._remember_boards(case, own)
            yield found
        self._is_read = True

    def newest(self, case: str) -> list[BoardCourse]:
        """Return the newest RUNS runs of each series of the case."""
        return self._cases.get(case, [])

    def around(self, step: Step) -> tuple[BoardCourse, int]:
        """Return the runs around a step that is drawn, AROUND on each side at most, and the place of its first one."""
        self._read()
        course = self._around[step.key]
        record = next(place for place in self._drawn[step.key] if self._history.records[place].file == step.record)
        place = int(numpy.searchsorted(course.records, record))
        start = max(0, place - AROUND)
        return _part(course, slice(start, place + AROUND)), place - start

    def other_boards(self, case: str) -> list[int]:
        """Return the records from which on another GPU measured the case."""
        self._read()
        return self._moved.get(case, [])

    @cached_property
    def _cases(self) -> Mapping[str, list[BoardCourse]]:
        self._read()
        return _by_case(self._newest.values())

    def _read(self) -> None:
        if not self._is_read:
            for _ in self.windows():
                pass

    def _remember(self, course: BoardCourse) -> None:
        key = course.key
        self._newest[key] = _part(_joined(self._newest.get(key), course), slice(-RUNS, None))
        if key in self._drawn:
            known = _joined(self._around.get(key), course)
            self._around[key] = _part(known, _near(known, self._drawn[key]))

    def _remember_boards(self, case: str, own: Sequence[BoardCourse]) -> None:
        """Keep the runs of a window from which on another GPU measured the case."""
        only = {board for one in own for board in (int(one.boards.min()), int(one.boards.max()))}
        if self._board.get(case) in only and len(only) == 1:
            return
        boards: dict[int, int] = {}
        for one in own:
            boards.update(zip(one.records.tolist(), one.boards.tolist(), strict=True))
        known = self._board.get(case)
        for place in sorted(boards):
            if known not in (None, boards[place]):
                self._moved.setdefault(case, []).append(place)
            known = self._board[case] = boards[place]


def _by_case(courses: Iterable[BoardCourse]) -> dict[str, list[BoardCourse]]:
    found: dict[str, list[BoardCourse]] = {}
    for one in courses:
        found.setdefault(one.key.case, []).append(one)
    return found


def _joined(earlier: BoardCourse | None, later: BoardCourse) -> BoardCourse:
    if earlier is None:
        return later
    columns = ("records", "values", "boards")
    return replace(
        later, **{name: numpy.concatenate([getattr(earlier, name), getattr(later, name)]) for name in columns}
    )


def _part(course: BoardCourse, runs: slice | NDArray[numpy.bool_]) -> BoardCourse:
    """Return some runs of a course, as arrays that hold no others."""
    return BoardCourse(course.key, course.records[runs].copy(), course.values[runs].copy(), course.boards[runs].copy())


def _near(course: BoardCourse, records: Iterable[int]) -> NDArray[numpy.bool_]:
    """Return which runs are AROUND of one of the records, or near the end, where the next one may be."""
    near = numpy.zeros(len(course.records), bool)
    near[-AROUND:] = True
    for place in numpy.searchsorted(course.records, sorted(records)).tolist():
        near[max(0, place - AROUND) : place + AROUND] = True
    return near


# What the pages of one machine, backend and environment show: the newest run and its past. Every page reads this.


@dataclass(frozen=True, eq=False)
class SiteContext:
    """`history` and `trend` are those of the machine, backend and environment, `own` the records, oldest commit first.

    `reading` is the newest run, at `path`; `gate` holds its checks, `cases` every case by name, `passed_by` are
    the machine's records that could not be read, with the reason.
    """

    places: Places
    catalogue: Catalogue | None
    history: History
    trend: Trend
    own: tuple[Facts, ...]
    path: Path
    reading: Reading
    gate: Gate
    cases: Mapping[str, ShownCase]
    noise: Noise | None
    passed_by: tuple[str, ...] = ()

    @property
    def record(self) -> RunRecord:
        return self.reading.record

    @property
    def machine(self) -> str:
        return str(self.record.machine.get("id", "unnamed"))

    @cached_property
    def shifts(self) -> list[Shift]:
        """The shifts of this backend, the newest first."""
        found = [one for one in shifts(self.trend.steps) if one.first.key.backend == self.record.backend]
        return found[::-1]

    @cached_property
    def steps(self) -> Mapping[str, list[Step]]:
        """The steps of each case, the newest first."""
        found: dict[str, list[Step]] = {}
        for step in reversed(self.trend.steps):
            if step.key.backend == self.record.backend:
                found.setdefault(step.key.case, []).append(step)
        return found

    @property
    def breakpoints(self) -> list[Breakpoint]:
        """Where something changed that may move every series, the newest first."""
        return [one for one in reversed(self.trend.breakpoints) if one.backend == self.record.backend]

    @cached_property
    def past(self) -> SeriesPast:
        """What is shown of the past of each series with a trusted time."""
        return SeriesPast(self.history, self.record.backend, [one.largest for one in self.shifts])

    @cached_property
    def nights(self) -> Mapping[int, int]:
        """Return the number of a run, from 0, by its record's place in the history."""
        places = [place for place, facts in enumerate(self.history.records) if facts.backend == self.record.backend]
        return {place: night for night, place in enumerate(places)}

    @cached_property
    def comparisons(self) -> list[tuple[Facts, RecordComparison | str]]:
        """Compare the newest run with earlier ones, or return why they do not compare."""
        known = self.noise, self.reading.promises.baseline, _boards(self.reading, self.history)
        checks = (check for part in self.gate.parts if part.name == LAST_PART for check in part.checks)
        named = dict.fromkeys(check.against for check in checks if check.grave and check.against)
        return list(against(self.record, self.earlier, self.places.runs, named, known))

    @cached_property
    def earlier(self) -> list[Facts]:
        """The records before the newest run; none where the history does not hold it."""
        return list(self.own[: self.night_of(self.record) or 0])

    def night_of(self, record: RunRecord) -> int | None:
        """Return the number of the run of a record; None where the history does not hold it."""
        return self._night_of.get((utc(record.created), record.commit))

    @cached_property
    def _night_of(self) -> Mapping[tuple[str, str | None], int]:
        """The first run made at a time and a commit."""
        return {(facts.created, facts.commit): night for night, facts in reversed([*enumerate(self.own)])}

    def before(self, shown: ShownCase) -> tuple[Facts, CaseResult] | None:
        """Return the newest run before the case's own that timed it, and the case as that run has it, without times."""
        return self._before.get(shown.case.name)

    @cached_property
    def _before(self) -> Mapping[str, tuple[Facts, CaseResult]]:
        return _earlier_cases(self.history, self.own, self.places.runs, self.cases.values())

    def kernels(self) -> Iterator[tuple[str, list[ShownCase]]]:
        """Yield every kernel of the catalogue or of a record by name, with its cases: none if nothing was measured."""
        found: dict[str, list[ShownCase]] = {name: [] for name in (self.catalogue.kernels if self.catalogue else ())}
        for one in self.cases.values():
            found.setdefault(one.case.kernel, []).append(one)
        yield from sorted(found.items())


def _context_of(
    history: History,
    record: RunRecord,
    path: Path,
    places: Places,
    catalogue: Catalogue | None,
    *,
    passed_by: Sequence[str] = (),
) -> SiteContext:
    """Return the context whose newest run is `record`; `history` is that of its owner alone."""
    reading, refusal = judged(record, catalogue)
    floors, noise = kept_floors(history, places.noise), stored_noise(str(record.machine.get("id")), places.noise)
    found = trend(history, floors)
    earlier = earlier_records(record, history, places.runs)
    baseline = _baseline(reading, path, places, noise, history, earlier)
    last = once(last_part(reading, history, places.runs, noise, earlier), [baseline])
    parts = [baseline, last, trend_part(history, record, floors, found)]
    passed = gate(reading, path, parts + ([GatePart("budgets of the device", silent=refusal)] if refusal else []))
    own = tuple(facts for facts in history.records if facts.backend == record.backend)
    cases = _newest_cases(reading, own, history, places, catalogue)
    return SiteContext(places, catalogue, history, found, own, path, reading, passed, cases, noise, tuple(passed_by))


def contexts(
    nights: Sequence[NewestRecord], history: History, places: Places, catalogue: Catalogue | None
) -> Iterator[SiteContext]:
    """Yield the context of each newest run."""
    for one in nights:
        yield _context_of(
            history.of(one.record.owner), one.record, one.path, places, catalogue, passed_by=one.passed_by
        )


def _baseline(
    reading: Reading, path: Path, places: Places, noise: Noise | None, history: History, earlier: Sequence[Earlier]
) -> GatePart:
    """Return the gate's checks against the baseline; a gap with its reason where the two do not compare."""
    try:
        known = earlier_runs([one.record for one in earlier]).known_apart if earlier else {}
        return baseline_part(reading, path, places.runs, noise, _boards(reading, history), known)
    except ResultsError as error:
        return GatePart("baseline", silent=str(error))


def _boards(reading: Reading, history: History) -> KnownBoards:
    return KnownBoards(lambda: history, str(reading.record.machine.get("id")), reading.record.backend)
