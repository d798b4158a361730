"""Gate: checks of the newest record against its budgets, the baseline, the last record and the history."""

import math
import shlex
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal

from prism_bench.analysis.boards import KnownBoards
from prism_bench.analysis.compare.comparable import device_of, other_host, value_settings
from prism_bench.analysis.compare.comparison import ComparedCase, RecordComparison, compare, comparison_findings
from prism_bench.analysis.compare.earlier_runs import ENOUGH as ENOUGH_RUNS
from prism_bench.analysis.compare.earlier_runs import EarlierRuns, earlier_runs
from prism_bench.analysis.compare.estimate import FEW
from prism_bench.analysis.compare.noise import Noise, stored_noise
from prism_bench.analysis.compare.verdict import RULES
from prism_bench.analysis.gate.budgets import Baseline
from prism_bench.analysis.run_analysis import GRAVITY, Finding, Reading, metric_words, read
from prism_bench.analysis.summary import implementation
from prism_bench.analysis.trend import Floors, Trend, trend
from prism_bench.analysis.trend.causes import RECENT, Shift, shifts
from prism_bench.analysis.trend.detection import CONFIRMED, SETTLED
from prism_bench.analysis.trend.series import kept_floors, timed
from prism_bench.catalogue import Catalogue
from prism_bench.errors import ResultsError
from prism_bench.io.documents import is_present
from prism_bench.measure.plausibility import valid, valid_median
from prism_bench.record import store
from prism_bench.record.alert import Alert, Occasion
from prism_bench.record.run_record import STATUSES, TESTED, CaseResult, RunRecord
from prism_bench.record.store import History
from prism_bench.record.store.points import utc
from prism_bench.spec.case import test_of
from prism_bench.spec.metric import value_text
from prism_bench.spec.workload import LABELS
from prism_bench.units import change_text, count_text, share_text, time_text

CheckGravity = Literal["bad", "untrusted", "note", "well"]
WELL: Final = "well"
# Notes that answer a question; every other note is a remark without an answer.
_ANSWERS = ("step",)
_UNTIMED = "untimed"
_ELSEWHERE = (*STATUSES, "missed", "undecided", "expired", "degraded", "host")  # kinds of findings in other checks


@dataclass(frozen=True)
class GateCheck:
    """One check on `metric` of `case` (None for several or all cases), with its one-word `answer`.

    `gravity` is `well`, or that of a finding; `ratio` is the new value over the old or the promised value. `cases` are
    those of a check on several cases, `identity` further distinguishes checks, and `against` is the compared commit.
    `state` is the state that the answer holds for, if that is not the present state of the case. A check with `remark`
    has no answer.
    """

    case: str | None
    metric: str | None
    answer: str
    gravity: CheckGravity = WELL
    message: str = ""
    ratio: float | None = None
    cases: tuple[str, ...] = ()
    identity: tuple[str, ...] = ()
    against: str | None = None
    state: str | None = None
    remark: bool = False

    @property
    def answered(self) -> bool:
        """Whether the check has an answer; most notes are only remarks."""
        return not self.remark and (self.gravity != "note" or self.answer in _ANSWERS)

    @property
    def grave(self) -> bool:
        """Whether the check fails the gate."""
        return self.gravity in ("bad", "untrusted")

    @property
    def title(self) -> str:
        """Case and metric, as far as the check has them: `softmax[rows=32,cols=1000] cold time`."""
        parts = [self.case, metric_words(self.metric) if self.metric else None]
        return " ".join(part for part in parts if part) or "the run"

    @property
    def order(self) -> tuple[int, float]:
        """Sort key: the gravest first, then what has no size, such as a wrong case, then the most severe."""
        return (*GRAVITY, WELL).index(self.gravity), -(self.severity or math.inf)

    @property
    def severity(self) -> float | None:
        """Distance of the ratio from 1, as a factor above 1; None without a ratio."""
        return max(self.ratio, 1 / self.ratio) if self.ratio and self.ratio > 0 else None


def of_run(reading: Reading) -> list[GateCheck]:
    """Return a check of each case's status, and the other findings on the record."""
    checks: list[GateCheck] = []
    for case in reading.record.cases:
        gravity: CheckGravity = WELL if case.status == "ok" else "note" if case.status == "skipped" else "bad"
        message = "" if case.status == "ok" else case.reason or "the record gives no reason"
        remark = gravity == WELL and case.ceiling is not None  # every run has ceilings: they answer for no kernel
        checks.append(GateCheck(case.name, None, case.status, gravity, message, remark=remark))
    checks += [_of_finding(finding) for finding in reading.findings if finding.kind not in _ELSEWHERE]
    if reason := _untimed(reading):
        checks.append(GateCheck(None, None, _UNTIMED, "note", reason))
    return checks


def _untimed(reading: Reading) -> str | None:
    """Return why the record lacks times, or None: it was cut short, or no kernel was timed.

    A complete record of edges has no times by choice.
    """
    kernels = [case for case in reading.cases if case.ceiling is None]
    is_timed = any(measurement.samples for case in kernels for measurement in case.measurements)
    if is_timed or (reading.record.complete and not kernels):
        return None
    count = sum(case.status == "ok" for case in reading.record.cases if case.ceiling is None)
    cut = "" if reading.record.complete else "the run was cut short, "
    return f"{cut}{count_text(count, 'case')} only verified" if count else None


def _of_finding(finding: Finding) -> GateCheck:
    return GateCheck(finding.case, finding.metric, finding.kind, finding.gravity, finding.message, finding.ratio)


def of_budgets(reading: Reading) -> list[GateCheck]:
    """Return a check of each promise on each case: missed, undecided, expired, met, or unmeasured."""
    checks = [
        _of_finding(finding) for finding in reading.findings if finding.kind in ("missed", "undecided", "expired")
    ]
    for budget in reading.every_budget:
        metric = budget.budget.metric
        if budget.verdict == "unmeasured":
            message = f"{metric_words(metric)} was not measured: the budget is neither met nor missed"
            checks.append(GateCheck(budget.case, metric, "unmeasured", "note", message))
        elif budget.verdict == "met":
            message = f"{metric_words(metric)} is {value_text(metric, budget.value)}"
            checks.append(GateCheck(budget.case, metric, "met", WELL, message))
    return checks


@dataclass(frozen=True)
class GatePart:
    """One kind of check: its `checks`, or in `silent` the reason for having no checks."""

    name: str
    checks: tuple[GateCheck, ...] = ()
    silent: str | None = None

    @property
    def answered(self) -> bool:
        """Whether any of the checks has an answer."""
        return any(check.answered for check in self.checks)


@dataclass(frozen=True)
class Gate:
    """Parts of the gate on the `record` at `path`."""

    record: RunRecord
    path: Path
    parts: tuple[GatePart, ...]

    @property
    def machine(self) -> str:
        """The machine's name in the store."""
        return str(self.record.machine.get("id", "unnamed"))

    @property
    def checks(self) -> tuple[GateCheck, ...]:
        return tuple(check for part in self.parts for check in part.checks)

    @property
    def concerns(self) -> list[GateCheck]:
        """The checks that fail the gate, the gravest first."""
        return sorted((check for check in self.checks if check.grave), key=lambda check: check.order)

    @property
    def exit_code(self) -> int:
        """3 if a check cannot be trusted, 1 if a check is bad, else 2 without an answer or without times, else 0."""
        gravities = {check.gravity for check in self.concerns}
        if gravities:
            return 3 if "untrusted" in gravities else 1
        return 0 if any(part.answered for part in self.parts) and self.untimed is None else 2

    @property
    def untimed(self) -> str | None:
        """Why the record lacks times of kernels, so that the gate cannot report slower kernels; None with times."""
        return next((check.message for check in self.checks if check.answer == _UNTIMED), None)


def about(gate: Gate, names: Collection[str]) -> Gate:
    """Return the gate with only the checks of these cases, and those of no case that fail it."""
    parts = (
        replace(part, checks=tuple(check for check in part.checks if _is_about(check, names))) for part in gate.parts
    )
    return replace(gate, parts=tuple(parts))


def _is_about(check: GateCheck, names: Collection[str]) -> bool:
    return check.grave if check.case is None and not check.cases else bool({check.case, *check.cases} & set(names))


def gate(reading: Reading, path: Path, more: Sequence[GatePart] = ()) -> Gate:
    """Return the gate on a reading: the run, its budgets, and the parts that need more than one record."""
    budgets = of_budgets(reading)
    silent = None if budgets else "no budget applies to a case of this record"
    run = GatePart("run", tuple(of_run(reading)))
    if not run.answered:
        run = replace(run, silent="no kernel was verified or timed, except the machine's own")
    return Gate(reading.record, path, (run, GatePart("budgets", tuple(budgets), silent), *more))


# Checks against the baseline: slower cases, by statistics and by a plain factor.

_BASELINE_PART = "baseline"


@dataclass(frozen=True)
class Earlier:
    """Comparable earlier `record` without edges, its name in messages, and its file below the folder of runs."""

    record: RunRecord
    name: str
    file: str


def baseline_part(
    reading: Reading,
    path: Path,
    runs: Path,
    noise: Noise | None = None,
    boards: KnownBoards | None = None,
    earlier: Sequence[Earlier] = (),
) -> GatePart:
    """Return the part of the gate on the record at `path`; without a baseline it has no checks and a reason.

    The baseline's record, if it is still kept, is compared with this record; raise a ResultsError if the two cannot be
    compared. If it is gone, only the plain factor is checked. `earlier` are the records that `earlier_records` read.
    """
    record, baseline = reading.record, reading.promises.baseline
    if baseline is None:
        silent = f"no baseline for {device_of(record)}: 'prism-bench check --accept' makes one"
        return GatePart(_BASELINE_PART, silent=silent)
    if Path(baseline.record).name == path.name:
        return GatePart(_BASELINE_PART, silent="this record is the baseline itself")
    kept, reason = _record_of(baseline, runs, record.machine.get("id"), earlier)
    spreads = earlier_runs([run.record for run in earlier]).known_apart if kept and earlier else None
    compared: list[GateCheck] = []
    if kept:
        names = "the baseline", "this record"
        rules = replace(RULES, looks=int(record.protocol.get("looks", 1)))
        comparison = compare(kept, record, noise, rules, names=names, boards=boards, earlier=spreads)
        compared = _compared_checks(comparison)
    hosts = [_of_finding(finding) for finding in reading.findings if finding.kind == "host"]
    checks = [*compared, *_degraded(reading, baseline, compared), *hosts]
    return GatePart(_BASELINE_PART, tuple(replace(check, against=baseline.commit or None) for check in checks), reason)


def _record_of(
    baseline: Baseline, runs: Path, machine: object, earlier: Sequence[Earlier]
) -> tuple[RunRecord | None, str | None]:
    """Return the baseline's record, from its path or from the machine's records, or the reason for its absence."""
    name = Path(baseline.record).name
    known = {runs / run.file: run.record for run in earlier}
    for path in (Path(baseline.record), runs / str(machine) / name):
        if is_present(path):
            try:
                return known.get(path) or store.read(path, edges=False), None
            except ResultsError as error:
                return None, f"the baseline's record cannot be read ({error}); only its medians were compared"
    return None, f"the baseline's record {name} is not kept here; only its medians were compared"


def _compared_checks(comparison: RecordComparison) -> list[GateCheck]:
    """Return a check for each case of the comparison, and the notes on the two records."""
    findings = comparison_findings(comparison)
    messages = {(finding.case, finding.metric): finding.message for finding in findings if finding.case}
    checks = [_compared_check(row, messages.get((row.case, row.metric), "")) for row in comparison.cases]
    return checks + [_of_finding(finding) for finding in findings if not finding.case]


def _compared_check(row: ComparedCase, message: str) -> GateCheck:
    """Return the check of a case; without a time on one side it is unmeasured here, and a finding of the run."""
    judgement = row.judgement
    if row.verdict == "same":
        message = row.reason or ""
    if row.verdict == "inconclusive":
        floor = share_text(judgement.floor) if judgement else "the noise floor"
        message = row.reason or f"a change below {floor} cannot be distinguished from none"
    gravity: CheckGravity = "bad" if row.verdict == "slower" else WELL if row.verdict in ("faster", "same") else "note"
    ratio = judgement.estimate.ratio if judgement else None
    answer = "unmeasured" if row.verdict == "not compared" else row.verdict
    return GateCheck(row.case, row.metric, answer, gravity, message, ratio)


def _degraded(reading: Reading, baseline: Baseline, compared: Sequence[GateCheck]) -> list[GateCheck]:
    """Return a check of each case by the plain factor, without those that `compared` shows to be slower."""
    slower = {(check.case, check.metric) for check in compared if check.answer == "slower"}
    degraded = {
        (finding.case, finding.metric): _of_finding(finding)
        for finding in reading.findings
        if finding.kind == "degraded"
    }
    checks: list[GateCheck] = []
    for slowdown in reading.slowdowns:
        key = case, metric = slowdown.case, slowdown.metric
        if key in slower:
            continue
        if key in degraded:
            checks.append(degraded[key])
        elif slowdown.kept is None:
            why = "is in the baseline and was not measured" if key in baseline.seconds else "has no baseline"
            checks.append(GateCheck(case, metric, "unmeasured", "note", f"{metric_words(metric)} {why}"))
        else:
            checks.append(GateCheck(case, metric, "steady", ratio=slowdown.ratio))
    known = {case.name for case in reading.record.cases} | {check.case for check in compared}
    gone = dict.fromkeys(case for case, _ in baseline.seconds if case not in known)
    message = "in the baseline, not in this record"
    return checks + [GateCheck(case, None, "unmeasured", "note", message) for case in gone]


# Check against all records of the machine: cases that left their level and did not return.

_TREND_PART = "trend"
_IN_THE_SOURCES = ("code", "unexplained")  # causes that a comparison of two commits today may show again
ENOUGH = SETTLED + CONFIRMED  # records before and after a step


def trend_part(
    history: History, record: RunRecord, floors: Floors | None = None, known: Trend | None = None
) -> GatePart:
    """Return the part of the gate on the newest record of a machine: one check for each shift of RECENT records.

    `known` is the trend of its machine, backend and environment, if the caller has it. With fewer than ENOUGH records
    no case can have left its level: the part has a reason and no check.
    """
    problems = tuple(GateCheck(None, None, "left out", "note", problem.reason) for problem in history.problems)
    history = history.of(record.owner)
    if len(history.records) < ENOUGH:
        count = count_text(len(history.records), "record")
        return GatePart(_TREND_PART, problems, f"{count} of this machine and backend: a step needs {ENOUGH}")
    known = known or trend(history, floors)
    recent = [
        shift
        for shift in shifts(known.steps)
        if shift.first.key.owner == record.owner and min(step.age for step in shift.steps) <= RECENT
    ]
    measured = _measured(history, record)
    silent = None if measured else "this record is not in the history"
    if measured is not None and not measured:
        silent = "this record has no time that can be trusted"
    moved = {(step.key.case, step.key.metric, step.key.subject) for shift in recent for step in shift.steps}
    checks = [_shift_check(shift) for shift in recent]
    # Without times of this record, the level of the other series is only a remark.
    count, left = (len(measured), len(moved & measured)) if measured else (known.series, len(moved))
    if count:
        message = f"{count - left} of {count} series keep their level"
        checks.append(GateCheck(None, None, "level", WELL, message, remark=not measured))
    return GatePart(_TREND_PART, (*checks, *problems), silent)


def _measured(history: History, record: RunRecord) -> set[tuple[str, ...]] | None:
    """Return case, metric and subject of every trusted point of the record; None if the history lacks the record."""
    run = utc(record.created), record.commit
    positions = [position for position, facts in enumerate(history.records) if (facts.created, facts.commit) == run]
    if not positions:
        return None
    points = timed(history.part(positions[-1:])).table
    trusted = points.chosen(points.rows_with({"doubt": {""}}))
    return set(zip(*(trusted.texts(column) for column in ("case", "metric", "subject")), strict=True))


def _shift_check(shift: Shift) -> GateCheck:
    """Return the check of a shift; its identity is stable as long as its cause is."""
    step, check = shift.first, _of_finding(shift.finding())
    direction = "worse" if step.worse else "better"
    old, new = step.commits
    return GateCheck(
        check.case,
        check.metric,
        check.answer,
        check.gravity,
        check.message,
        check.ratio,
        shift.cases,
        identity=(direction, step.cause.kind, step.cause.words),
        against=old if old != new and step.cause.kind in _IN_THE_SOURCES else None,
        state=step.cause.words,
    )


# Checks against the last comparable record: cases that became slower since then.
#
# Every case is compared with the newest earlier record of the machine, backend and environment, in the order of their
# commits, that has a time of it and meets the rule of `comparable`. Earlier runs of the same code are added to that
# record, and show the spread of processes and the scatter of runs. A slow decline in small steps is left to the
# baseline and the trend.

LAST_PART = "last"
# Only times of the kernel; copies to and from the host took 1.5 times as long on the same day, with the same code.
METRICS = ("cold_time", "hot_time", "wall_time")
MOST = 10  # earlier records that are read, if the last records lack cases


def last_part(
    reading: Reading, history: History, runs: Path, noise: Noise | None = None, earlier: Sequence[Earlier] | None = None
) -> GatePart:
    """Return the part of the gate that compares with the last comparable record below `runs`, case by case.

    `earlier` are the records that `earlier_records` read, if the caller has them.
    """
    record, factor = reading.record, reading.promises.degraded
    timed = replace(record, cases=tuple(case for case in reading.cases if _times(case)))
    left = {case.name for case in timed.cases}
    if not left:
        return GatePart(LAST_PART, silent="no case of this record has a time to compare")
    checks: list[GateCheck] = []
    boards = KnownBoards(lambda: history, str(record.machine.get("id")), record.backend)
    earlier = earlier_records(record, history, runs) if earlier is None else earlier
    for position in range(len(earlier)):
        # All shared cases are compared, also those that a newer record has: with fewer the control is too small.
        compared = _against(earlier[position:], timed, noise, factor, boards)
        new = [check for check in compared if check.case is None or check.case in left]
        if any(check.case for check in new):
            checks += new
            left -= {check.case for check in new}
        if not left:
            break
    if not checks:
        return GatePart(LAST_PART, silent="no earlier record of this machine, backend and protocol")
    checks += [
        GateCheck(case.name, None, "unmeasured", "note", "no earlier record that compares has a time of it")
        for case in timed.cases
        if case.name in left
    ]
    return GatePart(LAST_PART, tuple(checks))


def earlier_records(record: RunRecord, history: History, runs: Path) -> list[Earlier]:
    """Return the comparable records before this one, the newest first, until enough of them have each of its cases.

    At most MOST are read.
    """
    earlier: list[Earlier] = []
    counts = Counter[str]()
    timed = {case.name for case in record.cases if _times(case)}
    settings = value_settings(record.protocol)
    for facts in reversed(history.before(record)):
        if len(earlier) >= MOST or (earlier and all(counts[name] >= ENOUGH_RUNS for name in timed)):
            break
        if value_settings(facts.protocol) != settings or not is_present(runs / facts.file):
            continue
        try:
            older = _read_timed(runs / facts.file, (runs / facts.file).stat().st_mtime_ns)
        except ResultsError:
            continue  # the history reports it as left out
        if device_of(older) == device_of(record):
            earlier.append(Earlier(older, f"{facts.when[:10]} {(facts.commit or '')[:8]}".strip(), facts.file))
            counts.update(case.name for case in older.cases if _times(case))
    return earlier


@lru_cache(MOST)
def _read_timed(path: Path, changed: int) -> RunRecord:
    """Return the record at `path`, which changed last at that moment; a nightly run judges several times."""
    return store.read(path, edges=False)


def _against(
    earlier: Sequence[Earlier], record: RunRecord, noise: Noise | None, factor: float, boards: KnownBoards
) -> list[GateCheck]:
    """Return the checks of the cases that are in both `record` and the first earlier record.

    They include the cases that are slower by the factor, and a note on cases that need more processes.
    """
    names = {case.name for case in record.cases}
    records = [
        replace(older.record, cases=tuple(case for case in older.record.cases if case.name in names))
        for older in earlier
    ]
    known = earlier_runs(records)
    rules = replace(RULES, looks=int(record.protocol.get("looks", 1)))
    comparison = compare(
        known.newest, record, noise, rules, names=(earlier[0].name, "this record"), boards=boards, earlier=known.known
    )
    compared = [check for check in _compared_checks(comparison) if check.answer != "unmeasured"]
    slower = {(check.case, check.metric) for check in compared if check.grave}
    # The host's delay of every launch, in seconds, as cases of identical machine code show it.
    control = comparison.control
    metric = next((row.metric for row in comparison.cases if row.identical), None)
    later = {metric: max(control.fit.offset, 0.0) if control.used else 0.0}
    degraded = [
        check
        for case in record.cases
        for check in _degraded_since(case, record, records[0], factor, later)
        if (check.case, check.metric) not in slower
    ]
    replaced = {(check.case, check.metric) for check in degraded}
    checks = [check for check in compared if (check.case, check.metric) not in replaced] + degraded
    checks += _undersampled(comparison, (records[0], record), known, noise)
    return [replace(check, against=earlier[0].record.commit) for check in checks]


def _undersampled(
    comparison: RecordComparison, records: tuple[RunRecord, RunRecord], known: EarlierRuns, noise: Noise | None
) -> Iterator[GateCheck]:
    """Yield a note on undecided cases of few processes with an unknown spread, and how to learn it."""
    floors = noise if noise and not noise.misfit(records[1]) else None
    tables = [{case.name: case for case in record.cases} for record in records]

    def is_few(case: str, metric: str) -> bool:
        sides = [side for table in tables if (side := valid(table[case], metric))]
        return min((len(side.processes) for side in sides), default=FEW) < FEW

    unknown = [
        row.case
        for row in comparison.cases
        if row.verdict == "inconclusive"
        and (row.case, row.metric) not in known.known
        and not (floors and floors.spread(row.case, row.metric))
        and is_few(row.case, row.metric)
    ]
    if unknown:
        message = (
            f"{count_text(len(unknown), 'undecided case')} in fewer than {FEW} processes, without a noise floor and "
            f"without {ENOUGH_RUNS} earlier runs of the same code: measure with --processes {FEW}, or run again; after "
            f"{ENOUGH_RUNS} runs their own history shows what they differ by"
        )
        yield GateCheck(None, None, "undersampled", "note", message, cases=tuple(unknown))


def _degraded_since(
    case: CaseResult, record: RunRecord, older: RunRecord, factor: float, later: Mapping[str | None, float]
) -> Iterator[GateCheck]:
    """Yield a check of each time of the kernel that exceeds the factor from which a case is degraded.

    Such a difference is no chance, whatever its error bar. The delay of every launch (`later`, by metric) is not the
    kernel's and is subtracted. A common factor is not, since a device that lost half its rate has one.
    """
    before = older.case(case.name)
    times = _times(before) if before else {}
    for metric, seconds in _times(case).items():
        if before and other_host(metric, (older.host_of(before), record.host_of(case)), ("both", "records")):
            continue
        ratio = (seconds - later.get(metric, 0.0)) / times[metric] if times.get(metric) else 0.0
        if ratio > factor:
            was, now = value_text(metric, times[metric]), value_text(metric, seconds)
            less = f" less {time_text(later[metric])} that every launch takes longer" if later.get(metric) else ""
            message = f"{metric_words(metric)} {now}{less}, {was} before; the rule is at most {change_text(factor)}"
            yield GateCheck(case.name, metric, "degraded", "bad", message, ratio)


def _times(case: CaseResult) -> dict[str, float]:
    """Return the trusted medians of the kernel by metric."""
    metrics = METRICS if case.status == "ok" else ()
    return {metric: median for metric in metrics if (median := valid_median(case, metric))}


def once(part: GatePart, others: Sequence[GatePart]) -> GatePart:
    """Return the part with only a remark on each concern that another part reports already."""
    known = {(check.case, check.metric) for other in others for check in other.checks if check.grave and check.case}
    checks = (
        replace(check, gravity="note", remark=True) if check.grave and (check.case, check.metric) in known else check
        for check in part.checks
    )
    return replace(part, checks=tuple(checks))


# The gate's findings in a record, compared with the baseline, earlier records and noise floors next to it.


def judged(source: Path | None, catalogue: Catalogue, runs: Path, noise: Path) -> Gate:
    """Return what the gate finds in the record at `source`, with the records below `runs` and noise floors in `noise`.

    Without a `source`, judge the record below `runs` that was measured last; of another tool's records, that of the
    newest commit, since other tools measure commits in any order. Raise ResultsError if there is no record, and for a
    record, a baseline or a budget that cannot be read or does not fit.
    """
    path = source or store.newest(runs)
    record = store.read(path)
    if source is None and record.imported and (newest := store.newest_commit(runs)) != path:
        path, record = newest, store.read(newest)
    return judged_reading(read(record, catalogue), path, runs, noise)


def judged_reading(reading: Reading, path: Path, runs: Path, noise: Path) -> Gate:
    """Return what the gate finds in a record that was read from `path` or is to be written there."""
    history = store.read_history(runs)
    floors = stored_noise(str(reading.record.machine.get("id")), noise)
    boards = KnownBoards(lambda: history, str(reading.record.machine.get("id")), reading.record.backend)
    earlier = earlier_records(reading.record, history, runs)
    baseline = baseline_part(reading, path, runs, floors, boards, earlier)
    last = once(last_part(reading, history, runs, floors, earlier), [baseline])
    return gate(reading, path, [baseline, last, trend_part(history, reading.record, kept_floors(history, noise))])


# Alerts of the gate: one for each concern, or for a gate that failed.

_SOURCE = "check"
MANY = 8  # concerns of one part, answer and metric; in the part "run" also of one kernel
_NAMED = 3  # cases that a common alert names
# Answers that verification shows; all other answers need a measurement.
_VERIFIED = ("wrong", "crashed", "timed out", "failed")
_SHORT = 12  # digits of a commit
_MOST_FILTERS = 8


def alerts(gate: Gate) -> list[Alert]:
    """Return one alert for each concern, with its state and the command that shows it again.

    More than MANY similar concerns are one alert: they have one cause, and nobody reads sixty messages.
    """
    states = checks_states(gate.record)
    similar: defaultdict[tuple[str, str, str | None, str], list[GateCheck]] = defaultdict(list)
    for part in gate.parts:
        for check in part.checks:
            if check.grave:
                name = check.case.partition("[")[0].partition(":")[0] if part.name == "run" and check.case else ""
                similar[part.name, check.answer, check.metric, name].append(check)
    sent: list[Alert] = []
    for (part, _, _, kernel), concerns in similar.items():
        checks = [_together(concerns, states, kernel)] if len(concerns) > MANY else concerns
        sent += [_alert(gate, part, check, states) for check in checks]
    return sent


def checks_states(record: RunRecord) -> dict[str | None, str]:
    """Return the state of each case, and of the run under None; a finding in the same state is not new.

    It consists of the machine code's hash or else the commit, driver and toolkit.
    """
    software = [f"{name} {record.software[name]}" for name in ("driver", "runtime", "nvrtc") if name in record.software]
    commit = f"commit {(record.commit or 'unknown')[:8]}"
    codes = {case.name: f"code {case.code['sass']}" if case.code.get("sass") else commit for case in record.cases}
    return {name: ", ".join([code, *software]) for name, code in {**codes, None: commit}.items()}


def command(record: RunRecord, check: GateCheck) -> str:
    """Return the command that reproduces a finding, for a shell in a clean checkout on the machine of the record.

    Compare with the check's other commit, else check out the record's commit and run or verify the cases.
    """
    verb = "verify" if check.answer in _VERIFIED else "run"
    commit = (record.commit or "")[:_SHORT]
    checkout = f"git checkout {commit} && " if commit else ""
    names = check.cases or ((check.case,) if check.case else ())
    cases = [case for name in names if (case := record.case(name))]
    if tests := dict.fromkeys(test_of(case.name) for case in cases if case.family == TESTED):
        return checkout + shlex.join(["pytest", *tests])
    options = [("--backend", record.backend)]
    options += [("--catalogue", record.catalogue)] if record.catalogue != "built-in" else []
    options += [("--label", label) for label in sorted({case.label for case in cases} & set(LABELS))]
    options += [("--filter", name) for name in _filters(cases)]
    arguments = [argument for option in options for argument in option]
    if check.against and commit:
        return shlex.join(["prism-bench", "compare", check.against[:_SHORT], commit, *arguments])
    return checkout + shlex.join(["prism-bench", verb, *arguments])


def _filters(cases: Sequence[CaseResult]) -> list[str]:
    """Return the names of the cases, if there are too many those of their kernels, else no filter.

    No filter knows edges by name: their kernels are named.
    """
    kernels = [implementation(case) for case in cases]
    names = [case.name if case.label in LABELS else implementation(case) for case in cases]
    for filters in (dict.fromkeys(names), dict.fromkeys(kernels)):
        if len(filters) <= _MOST_FILTERS:
            return list(filters)
    return []


def _together(concerns: Sequence[GateCheck], states: Mapping[str | None, str], kernel: str) -> GateCheck:
    """Return one check for all concerns; it is new with more concerns, another driver or toolkit, not other cases."""
    worst = min(concerns, key=lambda check: check.order)
    cases = tuple(dict.fromkeys(check.case for check in concerns if check.case))
    more = f" and {len(cases) - _NAMED} more" if len(cases) > _NAMED else ""
    return replace(
        worst,
        case=None,
        cases=cases,
        ratio=float(len(concerns)),
        identity=("many", kernel),
        state=states[None].partition(", ")[2] or "unknown",  # driver and toolkit, without the commit
        message=f"{count_text(len(cases), 'case')} ({', '.join(cases[:_NAMED])}{more}); "
        f"the farthest, {worst.case}: {worst.message}",
    )


def _alert(gate: Gate, part: str, check: GateCheck, states: Mapping[str | None, str]) -> Alert:
    record = gate.record
    return Alert(
        source=_SOURCE,
        machine=gate.machine,
        kind=check.answer,
        subject=check.case,
        gravity=check.gravity,
        message=check.message,
        identity=(part, check.metric or "", *check.identity),
        state=check.state or states.get(check.case, states[None]),
        severity=check.severity,
        reproduce=command(record, check),
        facts={
            "record": gate.path.name,
            "commit": record.commit,
            "created": record.created,
            "backend": record.backend,
            "metric": check.metric,
            "cases": list(check.cases),
        },
    )


def occasion(gate: Gate, sentence: str) -> Occasion:
    """Return the heading of the alerts, with the gate's sentence, and the state of all checked cases."""
    return Occasion(_SOURCE, f"prism-bench check on {gate.machine}: {sentence}", checks_states(gate.record))


def failure(host: str, reason: str) -> Alert:
    """Return the alert for a gate that failed: a run without a message would look like a good run."""
    return Alert(_SOURCE, host, "failed", None, "bad", reason, state=reason)


def failing(host: str, state: str) -> Occasion:
    """Return the heading of a failure, and the gate's `state`: the failure's reason, or another state to end it."""
    return Occasion(_SOURCE, f"prism-bench check on {host} could not do its work", {None: state})
