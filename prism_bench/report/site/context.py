"""What the pages of one machine show: its newest run, every case's newest measurement, and its past."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path

import numpy
from numpy.typing import NDArray

from prism_bench.analysis.boards import KnownBoards
from prism_bench.analysis.bounds.bottleneck import is_timed
from prism_bench.analysis.compare.comparison import RecordComparison, compare
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
from prism_bench.io.documents import is_present
from prism_bench.io.files import path_part
from prism_bench.record import store
from prism_bench.record.identity import Owner
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.record.store import History
from prism_bench.record.store.points import Facts, utc
from prism_bench.record.store.records import in_order
from prism_bench.report.view import CaseView, Origin, case_views


@dataclass(frozen=True)
class Places:
    """`runs` holds run records by machine; everything else is in folders next to it."""

    runs: Path

    @property
    def noise(self) -> Path:
        """Noise floors, by machine."""
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
        """What tuning chose and measured, by machine."""
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


# The context of the pages of one machine, backend and environment: every page reads this.


@dataclass(frozen=True, eq=False)
class SiteContext:
    """`history` and `trend` are those of the machine, backend and environment, `own` the records, oldest commit first.

    `reading` is the newest run, at `path`; `gate` holds its checks, `cases` every case by name, `passed_by` are
    the machine's records that could not be read, with the reason; `timed` are records without edges that the gate
    read, by file.
    """

    places: Places
    catalogue: Catalogue | None
    history: History
    trend: Trend
    own: tuple[Facts, ...]
    path: Path
    reading: Reading
    gate: Gate
    cases: Mapping[str, CaseView]
    noise: Noise | None
    passed_by: tuple[str, ...] = ()
    timed: Mapping[str, RunRecord] = field(default_factory=dict[str, RunRecord])

    @property
    def record(self) -> RunRecord:
        """The newest run."""
        return self.reading.record

    @property
    def machine(self) -> str:
        """The machine's id."""
        return str(self.record.machine.get("id", "unnamed"))

    @cached_property
    def shifts(self) -> list[Shift]:
        """The shifts of this backend, the newest first."""
        all_shifts = shifts(self.trend.steps)
        return [shift for shift in reversed(all_shifts) if shift.first.key.backend == self.record.backend]

    @cached_property
    def steps(self) -> Mapping[str, list[Step]]:
        """The steps of each case, the newest first."""
        steps: dict[str, list[Step]] = {}
        for step in reversed(self.trend.steps):
            if step.key.backend == self.record.backend:
                steps.setdefault(step.key.case, []).append(step)
        return steps

    @cached_property
    def edges(self) -> Mapping[str, list[CaseResult]]:
        """The edge and golden cases of each kernel."""
        edges: dict[str, list[CaseResult]] = {}
        for case in self.reading.edges:
            edges.setdefault(case.kernel, []).append(case)
        return edges

    @property
    def breakpoints(self) -> list[Breakpoint]:
        """Changes that may move every series, the newest first."""
        return [point for point in reversed(self.trend.breakpoints) if point.backend == self.record.backend]

    @cached_property
    def past(self) -> "SeriesPast":
        """What is shown of the past of each series with a trusted time."""
        return SeriesPast(self.history, self.record.backend, [shift.largest for shift in self.shifts])

    @cached_property
    def run_numbers(self) -> Mapping[int, int]:
        """The number of each run, from 0, by its record's place in the history."""
        places = [place for place, facts in enumerate(self.history.records) if facts.backend == self.record.backend]
        return {place: number for number, place in enumerate(places)}

    def run_number(self, record: RunRecord) -> int | None:
        """Return the number of the run of a record; None where the history does not hold it."""
        return self._numbers_by_commit.get((utc(record.created), record.commit))

    @cached_property
    def _numbers_by_commit(self) -> Mapping[tuple[str, str | None], int]:
        """The first run made at a time and a commit."""
        return {(facts.created, facts.commit): number for number, facts in reversed([*enumerate(self.own)])}

    @cached_property
    def earlier(self) -> list[Facts]:
        """The records before the newest run; none where the history does not hold it."""
        return list(self.own[: self.run_number(self.record) or 0])

    @cached_property
    def comparisons(self) -> list[tuple[Facts, RecordComparison | str]]:
        """The newest run compared with earlier ones, or why they do not compare."""
        return list(_comparisons(self))

    def before(self, view: CaseView) -> tuple[Facts, CaseResult] | None:
        """Return the newest run before the case's own that timed it, and the case as that run has it, without times."""
        return self._before.get(view.case.name)

    @cached_property
    def _before(self) -> Mapping[str, tuple[Facts, CaseResult]]:
        return _earlier_cases(self)

    def timed_record(self, facts: Facts) -> RunRecord:
        """Return a record without edges; a ResultsError where it cannot be read."""
        return self.timed.get(facts.file) or store.read(self.places.runs / facts.file, edges=False)

    @cached_property
    def kernels(self) -> Mapping[str, list[CaseView]]:
        """Every kernel of the catalogue or of a record by name, with its cases: none if nothing was measured."""
        kernels: dict[str, list[CaseView]] = {name: [] for name in (self.catalogue.kernels if self.catalogue else ())}
        for view in self.cases.values():
            kernels.setdefault(view.case.kernel, []).append(view)
        return dict(sorted(kernels.items()))


# From the newest record of each machine, backend and environment to its context.


@dataclass(frozen=True)
class NewestRecord:
    """The newest readable `record` of one owner, at `path`, and the newer files that were passed by."""

    machine: str
    record: RunRecord
    path: Path
    passed_by: tuple[str, ...] = ()


def newest_of_each(
    history: History, places: Places, chosen: RunRecord | None = None, path: Path | None = None
) -> Iterator[NewestRecord]:
    """Yield that of the newest commit of each machine, backend and environment, the newest first.

    The `chosen` record comes before them. A ResultsError where no record can be read.
    """
    problems = [f"{problem.file}: {problem.reason}" for problem in history.problems]

    def newest(machine: str, record: RunRecord, path: Path) -> NewestRecord:
        in_folder = tuple(problem for problem in problems if problem.startswith(f"{machine}/"))
        return NewestRecord(machine, record, path, in_folder)

    if chosen and path:
        yield newest(str(chosen.machine["id"]), chosen, path)
    of_each = newest_facts(history, places)
    for facts in of_each:
        if chosen is None or facts.owner != chosen.owner:
            yield newest(facts.machine, store.read(places.runs / facts.file), places.runs / facts.file)
    if not of_each and chosen is None:
        store.newest(places.runs)
        raise ResultsError(history.problems[0].reason)


def newest_facts(history: History, places: Places) -> list[Facts]:
    """Return the facts of the newest record of each owner that is still there, the newest first."""
    of_owner: dict[Owner, Facts] = {}
    for facts in reversed(history.records):
        if facts.owner not in of_owner and is_present(places.runs / facts.file):
            of_owner[facts.owner] = facts
    return list(of_owner.values())


def contexts(
    newest: Iterable[NewestRecord], history: History, places: Places, catalogue: Catalogue | None
) -> Iterator[SiteContext]:
    """Yield the context of each newest run."""
    for run in newest:
        yield _context_of(run, history.of(run.record.owner), places, catalogue)


def _context_of(run: NewestRecord, history: History, places: Places, catalogue: Catalogue | None) -> SiteContext:
    """Return the context of a newest run; `history` is only that of its owner."""
    record, path = run.record, run.path
    reading, refusal = _read_or_refusal(record, catalogue)
    floors, noise = kept_floors(history, places.noise), stored_noise(str(record.machine.get("id")), places.noise)
    moved = trend(history, floors)
    earlier = earlier_records(record, history, places.runs)
    baseline = _baseline(reading, path, places, noise, history, earlier)
    last = once(last_part(reading, history, places.runs, noise, earlier), [baseline])
    parts = [baseline, last, trend_part(history, record, floors, moved)]
    checked = gate(reading, path, parts + ([GatePart("budgets of the device", silent=refusal)] if refusal else []))
    own = tuple(facts for facts in history.records if facts.backend == record.backend)
    cases = _newest_cases(reading, own, history, places, catalogue)
    timed = {run.file: run.record for run in earlier}
    return SiteContext(
        places, catalogue, history, moved, own, path, reading, checked, cases, noise, run.passed_by, timed
    )


def _baseline(
    reading: Reading, path: Path, places: Places, noise: Noise | None, history: History, earlier: Sequence[Earlier]
) -> GatePart:
    """Return the gate's checks against the baseline; a gap with its reason where the two do not compare."""
    try:
        return baseline_part(reading, path, places.runs, noise, _boards(reading, history), earlier)
    except ResultsError as error:
        return GatePart("baseline", silent=str(error))


def _boards(reading: Reading, history: History) -> KnownBoards:
    return KnownBoards(lambda: history, str(reading.record.machine.get("id")), reading.record.backend)


def _read_or_refusal(record: RunRecord, catalogue: Catalogue | None) -> tuple[Reading, str | None]:
    """Return the reading of a record; one without budgets, and why, where those of the device do not apply to it."""
    try:
        return read(record, catalogue), None
    except ResultsError as error:
        return read(record), str(error)


# The newest run compared with earlier ones: the run before, one of a week before, the baseline.

_WEEK = timedelta(days=7)


def name_of(facts: Facts) -> str:
    """Return `2026-11-20 fd4cb4b0`."""
    return f"{facts.when[:10]} {facts.commit[:8]}" if facts.commit else facts.when[:10]


def _comparisons(context: SiteContext) -> Iterator[tuple[Facts, RecordComparison | str]]:
    """Yield each chosen earlier run with the comparison of the newest run to it, or the reason why none exists."""
    baseline = context.reading.promises.baseline
    boards = _boards(context.reading, context.history)
    checks = (check for part in context.gate.parts if part.name == LAST_PART for check in part.checks)
    commits = dict.fromkeys(check.against for check in checks if check.grave and check.against)
    for facts in _compared_runs(context.record, context.earlier, baseline, commits):
        try:
            names = name_of(facts), "this run"
            yield facts, compare(context.timed_record(facts), context.record, context.noise, names=names, boards=boards)
        except ResultsError as error:
            yield facts, str(error)


def _compared_runs(
    record: RunRecord, earlier: Sequence[Facts], baseline: Baseline | None, commits: Collection[str]
) -> list[Facts]:
    """Return the run before, the newest one that is a week older, the baseline's and those of the `commits`.

    Each of them once, the newest first. The commits are those that concerns of the gate compare with.
    """
    before = (datetime.fromisoformat(utc(record.committed or record.created)) - _WEEK).isoformat() if earlier else ""
    weekly = [facts for facts in earlier if facts.when <= before]
    name = Path(baseline.record).name if baseline else None
    baselines = [facts for facts in earlier if Path(facts.file).name == name]
    of_commits = [[facts for facts in earlier if facts.commit == commit][-1:] for commit in commits]
    wanted = [*earlier[-1:], *weekly[-1:], *baselines[-1:], *(facts for last in of_commits for facts in last)]
    return [facts for facts in reversed(earlier) if facts in wanted]


# Every case as the newest record that holds it shows it.

_AT_ONCE = 64  # records that are searched together for the newest times of cases

# What records other than the newest run are called, by origin.
ORIGINS = {"older": "an older record", "round": "a round", "languages": "a record of languages"}


def _newest_cases(
    reading: Reading, own: Sequence[Facts], history: History, places: Places, catalogue: Catalogue | None
) -> dict[str, CaseView]:
    """Return by name the newest run's cases, then those of the catalogue that something older timed last.

    That is an older run, else a round of making kernels faster or a record of languages.
    """
    cases = {view.case.name: view for view in case_views(reading)}
    known = {case.name for case in catalogue.cases()} if catalogue else set()

    def add(older: Reading, origin: Origin, wanted: Collection[str]) -> None:
        cases.update((view.case.name, view) for view in case_views(older, origin) if view.case.name in wanted)

    for facts, names in _newest_with(history, own, known - set(cases)):
        if is_present(places.runs / facts.file):
            add(_read_or_refusal(store.read(places.runs / facts.file), catalogue)[0], "older", names)
    for path, origin in _other_records(places, str(reading.record.machine["id"])):
        missing = known - set(cases)
        if missing and is_present(path):
            other, _ = _read_or_refusal(store.read(path), catalogue)
            if other.record.backend == reading.record.backend:
                add(other, origin, missing)
    return cases


def _other_records(places: Places, machine: str) -> list[tuple[Path, Origin]]:
    """Return the records of the machine that are no runs of the trend, with their origin, the newest first."""
    folders: tuple[tuple[Path, Origin], ...] = ((places.rounds, "round"), (places.languages, "languages"))
    records: list[tuple[Path, Origin]] = [
        (path, origin)
        for folder, origin in folders
        for path in store.records_in(folder)
        if path.parent.name == path_part(machine)
    ]
    return sorted(records, key=lambda record: in_order(record[0]), reverse=True)


def _newest_with(history: History, own: Sequence[Facts], wanted: Collection[str]) -> Iterator[tuple[Facts, list[str]]]:
    """Yield each record that holds the newest time of wanted cases, with the names of these cases.

    Only the records `own` are searched.
    """
    files = {facts.file for facts in own}
    places = [place for place, facts in enumerate(history.records) if facts.file in files][::-1]
    left, cases = set(wanted), dict[int, list[str]]()
    # Records share their lists of names: one set for each list.
    lists = {id(names): names for names in (history.stored[place].names["case"] for place in places)}
    names = {number: set(shared) for number, shared in lists.items()}
    for start in range(0, len(places), _AT_ONCE):
        batch = places[start : start + _AT_ONCE]
        known = [place for place in batch if not left.isdisjoint(names[id(history.stored[place].names["case"])])]
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


def _earlier_cases(context: SiteContext) -> dict[str, tuple[Facts, CaseResult]]:
    """Return by name the newest run before a case's own that timed it, and the case as it has it, without times.

    A case's machine code is compared with it, so only cases with machine code are there. Each record is read once, and
    of it no more than these cases are kept.
    """
    runs = context.own
    wanted: dict[str, set[str]] = {}
    for view in context.cases.values():
        if view.case.code:
            wanted.setdefault(utc(view.created), set()).add(view.case.name)
    files: dict[str, tuple[Facts, set[str]]] = {}
    for created, names in wanted.items():
        place = next((place for place, facts in enumerate(runs) if facts.created == created), None)
        before = [facts for facts in runs if facts.created < created] if place is None else runs[:place]
        for facts, held in _newest_with(context.history, before, names):
            files.setdefault(facts.file, (facts, set()))[1].update(held)
    return {
        case.name: (facts, replace(case, measurements=()))
        for facts, names in files.values()
        if is_present(context.places.runs / facts.file)
        for case in context.timed_record(facts).cases
        if case.name in names and case.code and is_timed(case)
    }


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

    def windows(self) -> Iterator[list[BoardCourse]]:
        """Yield the courses of each window, oldest first, in the order in which their series first came."""
        self._forget()
        for window in window_courses(self._history, self._backend):
            for course in window:
                self._remember(course)
            order = {key: number for number, key in enumerate(self._newest)}
            window.sort(key=lambda course: order[course.key])
            for case, courses in _by_case(window).items():
                self._remember_boards(case, courses)
            yield window
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

    def _forget(self) -> None:
        self._newest: dict[Key, BoardCourse] = {}
        self._around: dict[Key, BoardCourse] = {}
        self._board: dict[str, int] = {}
        self._moved: dict[str, list[int]] = {}

    def _remember(self, course: BoardCourse) -> None:
        """Keep the newest runs of a series, and those around the steps that are drawn."""
        key = course.key
        self._newest[key] = _part(_joined(self._newest.get(key), course), slice(-RUNS, None))
        if key in self._drawn:
            known = _joined(self._around.get(key), course)
            near = numpy.zeros(len(known.records), bool)
            near[-AROUND:] = True  # where the next step may be
            for place in numpy.searchsorted(known.records, sorted(self._drawn[key])).tolist():
                near[max(0, place - AROUND) : place + AROUND] = True
            self._around[key] = _part(known, near)

    def _remember_boards(self, case: str, courses: Sequence[BoardCourse]) -> None:
        """Keep the runs of a window from which on another GPU measured the case."""
        ends = {board for course in courses for board in (int(course.boards.min()), int(course.boards.max()))}
        if self._board.get(case) in ends and len(ends) == 1:
            return
        boards: dict[int, int] = {}
        for course in courses:
            boards.update(zip(course.records.tolist(), course.boards.tolist(), strict=True))
        known = self._board.get(case)
        for place in sorted(boards):
            if known not in (None, boards[place]):
                self._moved.setdefault(case, []).append(place)
            known = self._board[case] = boards[place]


def _by_case(courses: Iterable[BoardCourse]) -> dict[str, list[BoardCourse]]:
    cases: dict[str, list[BoardCourse]] = {}
    for course in courses:
        cases.setdefault(course.key.case, []).append(course)
    return cases


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
