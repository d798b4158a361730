"""What the pages of one machine, backend and environment show: the newest run and its past. Every page reads this."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from prism_bench.analysis.boards.known import KnownBoards
from prism_bench.analysis.compare.comparison import RecordComparison
from prism_bench.analysis.compare.earlier_runs import earlier_runs
from prism_bench.analysis.compare.noise import Noise, stored_noise
from prism_bench.analysis.gate.against_baseline import baseline_part
from prism_bench.analysis.gate.against_history import trend_part
from prism_bench.analysis.gate.against_last import NAME as LAST
from prism_bench.analysis.gate.against_last import Earlier, earlier_records, last_part, once
from prism_bench.analysis.gate.checks import Gate, GatePart, gate
from prism_bench.analysis.reading import Reading
from prism_bench.analysis.trend import Breakpoint, Step, Trend, trend
from prism_bench.analysis.trend.choice import kept_floors
from prism_bench.analysis.trend.shifts import Shift, shifts
from prism_bench.catalogue import Catalogue
from prism_bench.errors import ResultsError
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.record.store import History
from prism_bench.record.store.points import Facts, utc
from prism_bench.report.site.against import against
from prism_bench.report.site.earlier import earlier_cases
from prism_bench.report.site.newest import NewestRecord
from prism_bench.report.site.past import SeriesPast
from prism_bench.report.site.places import Places
from prism_bench.report.site.shown import ShownCase, judged, newest_cases


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
        checks = (check for part in self.gate.parts if part.name == LAST for check in part.checks)
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
        return earlier_cases(self.history, self.own, self.places.runs, self.cases.values())

    def kernels(self) -> Iterator[tuple[str, list[ShownCase]]]:
        """Yield every kernel of the catalogue or of a record by name, with its cases: none if nothing was measured."""
        found: dict[str, list[ShownCase]] = {name: [] for name in (self.catalogue.kernels if self.catalogue else ())}
        for one in self.cases.values():
            found.setdefault(one.case.kernel, []).append(one)
        yield from sorted(found.items())


def context_of(
    history: History, record: RunRecord, path: Path, places: Places, catalogue: Catalogue | None, *,
    passed_by: Sequence[str] = (),
) -> SiteContext:  # fmt: skip
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
    cases = newest_cases(reading, own, history, places, catalogue)
    return SiteContext(places, catalogue, history, found, own, path, reading, passed, cases, noise, tuple(passed_by))


def contexts(
    nights: Sequence[NewestRecord], history: History, places: Places, catalogue: Catalogue | None
) -> Iterator[SiteContext]:
    """Yield the context of each newest run."""
    for one in nights:
        yield context_of(history.of(one.record.owner), one.record, one.path, places, catalogue, passed_by=one.passed_by)


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
