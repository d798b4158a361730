"""Gate check against all records of the machine: cases that left their level and are not back."""

from prism_bench.analysis.gate.checks import WELL, GateCheck, GatePart, of_finding
from prism_bench.analysis.trend import Floors, Trend, trend
from prism_bench.analysis.trend.detection import CONFIRMED, SETTLED
from prism_bench.analysis.trend.shifts import RECENT, Shift, shifts
from prism_bench.record.run_record import RunRecord
from prism_bench.record.store import History
from prism_bench.record.store.points import utc
from prism_bench.units import count_text

NAME = "trend"
_IN_THE_SOURCES = ("code", "unexplained")  # causes that two commits, compared today, may show again
ENOUGH = SETTLED + CONFIRMED  # records before and after a step


def trend_part(
    history: History, record: RunRecord, floors: Floors | None = None, known: Trend | None = None
) -> GatePart:
    """Return the part of the gate on the newest record of a machine: one check for each shift of RECENT records.

    `known` is the trend of its machine, backend and environment, where the caller has it. With fewer than ENOUGH
    records nothing can have left its level: the part has a reason and no check.
    """
    problems = tuple(GateCheck(None, None, "left out", "note", problem.reason) for problem in history.problems)
    own = history.of(record.owner)
    if len(own.records) < ENOUGH:
        count = count_text(len(own.records), "record")
        return GatePart(NAME, problems, f"{count} of this machine and backend: a step needs {ENOUGH}")
    found = known or trend(own, floors)
    ours = [one for one in shifts(found.steps) if one.first.key.owner == record.owner and _recent(one)]
    measured = _measured(own, record)
    silent = None if measured else "this record is not in the history"
    if measured is not None and not measured:
        silent = "this record has no time that can be trusted"
    return GatePart(NAME, (*map(_check, ours), *_level(measured or set(), found.series, ours), *problems), silent)


def _measured(history: History, record: RunRecord) -> set[tuple[str, ...]] | None:
    """Return case, metric and subject of every trusted point of the record; None where the history does not hold it."""
    run = utc(record.created), record.commit
    places = [place for place, facts in enumerate(history.records) if (facts.created, facts.commit) == run]
    if not places:
        return None
    points = history.part(places[-1:]).table
    trusted = points.chosen(points.rows_with({"doubt": {""}}))
    return set(zip(*(trusted.texts(word) for word in ("case", "metric", "subject")), strict=True))


def _recent(shift: Shift) -> bool:
    return min(step.age for step in shift.steps) <= RECENT


def _check(shift: Shift) -> GateCheck:
    """Return the check of a shift; it is the same one as long as its cause is, whatever is measured meanwhile."""
    step, check = shift.first, of_finding(shift.finding())
    direction = "worse" if step.worse else "better"
    old, new = step.commits
    return GateCheck(
        check.case, check.metric, check.answer, check.gravity, check.message, check.ratio, shift.cases,
        identity=(direction, step.cause.kind, step.cause.words),
        against=old if old != new and step.cause.kind in _IN_THE_SOURCES else None,
        state=step.cause.words,
    )  # fmt: skip


def _level(measured: set[tuple[str, ...]], series: int, found: list[Shift]) -> list[GateCheck]:
    """Return the check of the series of this record that kept their level; of others it is only a remark."""
    moved = {(step.key.case, step.key.metric, step.key.subject) for shift in found for step in shift.steps}
    count, left = (len(measured), len(moved & measured)) if measured else (series, len(moved))
    if not count:
        return []
    message = f"{count - left} of {count} series keep their level"
    return [GateCheck(None, None, "level", WELL, message, remark=not measured)]
