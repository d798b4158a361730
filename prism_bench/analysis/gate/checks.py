"""Gate: checks of the newest record against its budgets, the baseline, the last record and the history."""

import shlex
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from prism_bench.analysis.boards import KnownBoards
from prism_bench.analysis.compare.comparable import device_of, other_host, value_settings
from prism_bench.analysis.compare.comparison import ComparedCase, RecordComparison, compare, comparison_findings
from prism_bench.analysis.compare.earlier_runs import ENOUGH as ENOUGH_RUNS
from prism_bench.analysis.compare.earlier_runs import EarlierRuns, Known, earlier_runs
from prism_bench.analysis.compare.estimate import FEW
from prism_bench.analysis.compare.noise import Control, Noise
from prism_bench.analysis.compare.verdict import RULES
from prism_bench.analysis.gate.budgets import Baseline, BudgetVerdict, Slowdown
from prism_bench.analysis.run_analysis import GRAVITY, Finding, Reading, metric_words, value_text
from prism_bench.analysis.summary import implementation
from prism_bench.analysis.trend import Floors, Trend, trend
from prism_bench.analysis.trend.causes import RECENT, Shift, shifts
from prism_bench.analysis.trend.detection import CONFIRMED, SETTLED
from prism_bench.errors import ResultsError
from prism_bench.measure.plausibility import valid, valid_median
from prism_bench.record import store
from prism_bench.record.alert import Alert, Occasion
from prism_bench.record.run_record import STATUSES, TESTED, CaseResult, RunRecord
from prism_bench.record.store import History
from prism_bench.record.store.points import utc
from prism_bench.record.store.records import is_present
from prism_bench.spec.case import test_of
from prism_bench.spec.workload import LABELS
from prism_bench.units import count_text, ratio_text, share_text, time_text

# Gate: checks of the newest record (did each case run, is each promise kept), and whether it may pass.

CheckGravity = Literal["bad", "untrusted", "note", "well"]
WELL: Final = "well"
# Notes that answer a question; every other note is a remark without an answer.
_ANSWERS = ("step",)
_UNTIMED = "untimed"
_ELSEWHERE = (*STATUSES, "missed", "undecided", "expired", "degraded", "host")  # findings of another check


@dataclass(frozen=True)
class GateCheck:
    """One check on `metric` of `case` (None where it is about more) and its `answer`, a word.

    `gravity` is `well`, or that of a finding; `ratio` is the new value over the old one or over the promise.
    `cases` are those of a check about several, `identity` is what else sets it apart from another one,
    `against` the commit that the answer compares with, where it does. `state` is what an answer holds for, where that
    is not the present state of the case. `remark` marks what is well and still answers nothing.
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
        """Whether the check has an answer; a note that only remarks on something is none."""
        return not self.remark and (self.gravity != "note" or self.answer in _ANSWERS)

    @property
    def grave(self) -> bool:
        """Whether it keeps the gate shut."""
        return self.gravity in ("bad", "untrusted")

    @property
    def title(self) -> str:
        """`softmax[rows=32,cols=1000] cold time`, as far as it is about a case and a metric."""
        words = [self.case, metric_words(self.metric) if self.metric else None]
        return " ".join(word for word in words if word) or "the run"

    @property
    def order(self) -> tuple[int, float]:
        """The gravest first, among equals the farthest from what it should be; what is well comes last."""
        return (*GRAVITY, WELL).index(self.gravity), -(self.severity or 0)

    @property
    def severity(self) -> float | None:
        """How far the ratio is from 1, as a factor above 1; None without one."""
        return max(self.ratio, 1 / self.ratio) if self.ratio and self.ratio > 0 else None


def of_run(reading: Reading) -> list[GateCheck]:
    """Return a check of each case's status, and the other findings on the record itself."""
    cases = [_of_case(case) for case in reading.record.cases]
    others = [one for one in reading.findings if one.kind not in _ELSEWHERE]
    untimed = [GateCheck(None, None, _UNTIMED, "note", words) for words in _untimed(reading)]
    return cases + [_of_finding(one) for one in others] + untimed


def _untimed(reading: Reading) -> Iterator[str]:
    """Yield why the record has no time, where it should have some: it was cut short, or no kernel of it was timed.

    A complete record of edges has no times by choice.
    """
    kernels = [case for case in reading.cases if case.ceiling is None]
    if any(one.samples for case in kernels for one in case.measurements) or (reading.record.complete and not kernels):
        return
    count = sum(case.status == "ok" for case in reading.record.cases if case.ceiling is None)
    if count:
        cut = "" if reading.record.complete else "the run was cut short, "
        yield f"{cut}{count_text(count, 'case')} only verified"


def _of_case(case: CaseResult) -> GateCheck:
    gravity: CheckGravity = WELL if case.status == "ok" else "note" if case.status == "skipped" else "bad"
    message = "" if case.status == "ok" else case.reason or "the record gives no reason"
    remark = gravity == WELL and case.ceiling is not None  # every run has them: they answer for no kernel
    return GateCheck(case.name, None, case.status, gravity, message, remark=remark)


def _of_finding(finding: Finding) -> GateCheck:
    """Return the check that a finding answers."""
    return GateCheck(finding.case, finding.metric, finding.kind, finding.gravity, finding.message, finding.ratio)


def of_budgets(reading: Reading) -> list[GateCheck]:
    """Return a check of each promise on each case: missed, undecided, expired, met, or unmeasured without a run."""
    decided = [
        _of_finding(finding) for finding in reading.findings if finding.kind in ("missed", "undecided", "expired")
    ]
    others = [one for one in reading.every_budget if one.verdict in ("met", "unmeasured")]
    return decided + [_of_verdict(verdict) for verdict in others]


def _of_verdict(verdict: BudgetVerdict) -> GateCheck:
    metric = verdict.budget.metric
    if verdict.verdict == "unmeasured":
        message = f"{metric_words(metric)} was not measured: the budget is neither met nor missed"
        return GateCheck(verdict.case, metric, "unmeasured", "note", message)
    return GateCheck(
        verdict.case, metric, "met", WELL, f"{metric_words(metric)} is {value_text(metric, verdict.value)}"
    )


def checks_states(record: RunRecord) -> dict[str | None, str]:
    """Return the state in which each case was found, under None that of the run.

    The machine code's hash where there is one, else the commit; driver and toolkit. What is found again in the same
    state is nothing new.
    """
    world = [f"{name} {record.software[name]}" for name in ("driver", "runtime", "nvrtc") if name in record.software]
    commit = f"commit {(record.commit or 'unknown')[:8]}"
    of = {case.name: f"code {case.code['sass']}" if case.code.get("sass") else commit for case in record.cases}
    return {name: ", ".join([code, *world]) for name, code in {**of, None: commit}.items()}


@dataclass(frozen=True)
class GatePart:
    """One kind of check: its `checks`, and where there are none, `silent` is the reason."""

    name: str
    checks: tuple[GateCheck, ...] = ()
    silent: str | None = None

    @property
    def answered(self) -> bool:
        """Whether any of its checks has an answer; a part without one promises nothing."""
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
        """What keeps the gate shut, the gravest first."""
        return sorted((check for check in self.checks if check.grave), key=lambda check: check.order)

    @property
    def exit_code(self) -> int:
        """3 where something cannot be trusted, 1 where something is bad, else 2 without an answer or without times.

        0 in all other cases.
        """
        gravities = {check.gravity for check in self.concerns}
        if gravities:
            return 3 if "untrusted" in gravities else 1
        return 0 if any(part.answered for part in self.parts) and self.untimed is None else 2

    @property
    def untimed(self) -> str | None:
        """Why the record has no time of a kernel, where it should have one: the gate cannot report what is slower."""
        return next((check.message for check in self.checks if check.answer == _UNTIMED), None)


def gate(reading: Reading, path: Path, more: Sequence[GatePart] = ()) -> Gate:
    """Return the gate on a reading: the run itself, its budgets, and the parts that need more than one record."""
    budgets = of_budgets(reading)
    silent = None if budgets else "no budget applies to a case of this record"
    run = GatePart("run", tuple(of_run(reading)))
    if not run.answered:
        run = replace(run, silent="no kernel was verified or timed, except the machine's own")
    return Gate(reading.record, path, (run, GatePart("budgets", tuple(budgets), silent), *more))


# Gate checks against the baseline: what is slower, by statistics and by a plain factor.

NAME = "baseline"
_AGAINST_BASELINE_ANSWERS = {"not compared": "unmeasured"}


def baseline_part(
    reading: Reading,
    path: Path,
    runs: Path,
    noise: Noise | None = None,
    boards: KnownBoards | None = None,
    earlier: Known | None = None,
) -> GatePart:
    """Return the part of the gate on the record at `path`; without a baseline it has no checks and a reason.

    The baseline's own record, where it is still kept, is compared with this one; a ResultsError where the two do not
    compare. Where it is gone, only the plain factor is checked. `earlier` are the spreads that earlier runs showed.
    """
    baseline = reading.promises.baseline
    if baseline is None:
        return GatePart(NAME, silent=f"no baseline for {device_of(reading.record)}: 'prism-bench baseline' makes one")
    if Path(baseline.record).name == path.name:
        return GatePart(NAME, silent="this record is the baseline itself")
    kept, reason = _record_of(baseline, runs, reading.record.machine.get("id"))
    compared = _compared(kept, reading.record, noise, boards, earlier) if kept else []
    hosts = [_of_finding(one) for one in reading.findings if one.kind == "host"]
    checks = [*compared, *_degraded(reading, baseline, compared), *hosts]
    return GatePart(NAME, tuple(replace(check, against=baseline.commit or None) for check in checks), reason)


def _compared(
    kept: RunRecord, record: RunRecord, noise: Noise | None, boards: KnownBoards | None, earlier: Known | None
) -> list[GateCheck]:
    names = "the baseline", "this record"
    rules = replace(RULES, looks=int(record.protocol.get("looks", 1)))
    return _compared_checks(compare(kept, record, noise, rules, names=names, boards=boards, earlier=earlier))


def _record_of(baseline: Baseline, runs: Path, machine: object) -> tuple[RunRecord | None, str | None]:
    """Return the baseline's record, from its path or from the machine's records; where it is gone, the reason."""
    name = Path(baseline.record).name
    for place in (Path(baseline.record), runs / str(machine) / name):
        if is_present(place):
            try:
                return store.read(place, edges=False), None
            except ResultsError as error:
                return None, f"the baseline's record cannot be read ({error}); only its medians were compared"
    return None, f"the baseline's record {name} is not kept here; only its medians were compared"


def _compared_checks(comparison: RecordComparison) -> list[GateCheck]:
    """Return a check for each case of the comparison, and the notes on the two records."""
    findings = comparison_findings(comparison)
    messages = {(one.case, one.metric): one.message for one in findings if one.case}
    checks = [_check(one, messages.get((one.case, one.metric), "")) for one in comparison.cases]
    return checks + [_of_finding(one) for one in findings if not one.case]


def _check(one: ComparedCase, message: str) -> GateCheck:
    """Return the check of a case; without a time on one side it is unmeasured here, and a finding of the run."""
    judgement = one.judgement
    if one.verdict == "same":
        message = one.reason or ""
    if one.verdict == "inconclusive":
        floor = share_text(judgement.floor) if judgement else "the noise floor"
        message = one.reason or f"a change below {floor} cannot be distinguished from none"
    gravity: CheckGravity = "bad" if one.verdict == "slower" else WELL if one.verdict in ("faster", "same") else "note"
    ratio = judgement.estimate.ratio if judgement else None
    return GateCheck(
        one.case, one.metric, _AGAINST_BASELINE_ANSWERS.get(one.verdict, one.verdict), gravity, message, ratio
    )


def _degraded(reading: Reading, baseline: Baseline, compared: Sequence[GateCheck]) -> list[GateCheck]:
    """Return what takes longer than the factor allows; what was found slower already is not reported twice."""
    slower = {(check.case, check.metric) for check in compared if check.answer == "slower"}
    others = [one for one in reading.slowdowns if (one.case, one.metric) not in slower]
    broken = {(one.case, one.metric): _of_finding(one) for one in reading.findings if one.kind == "degraded"}
    here = [broken.get((one.case, one.metric)) or _steady(one, baseline) for one in others]
    known = {case.name for case in reading.record.cases} | {check.case for check in compared}
    gone = dict.fromkeys(case for case, _ in baseline.seconds if case not in known)
    return here + [GateCheck(case, None, "unmeasured", "note", "in the baseline, not in this record") for case in gone]


def _steady(verdict: Slowdown, baseline: Baseline) -> GateCheck:
    if verdict.kept is None:
        kept = (verdict.case, verdict.metric) in baseline.seconds
        message = (
            f"{metric_words(verdict.metric)} {'is in the baseline and was not measured' if kept else 'has no baseline'}"
        )
        return GateCheck(verdict.case, verdict.metric, "unmeasured", "note", message)
    return GateCheck(verdict.case, verdict.metric, "steady", ratio=verdict.ratio)


# Gate check against all records of the machine: cases that left their level and are not back.

_AGAINST_HISTORY_NAME = "trend"
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
        return GatePart(_AGAINST_HISTORY_NAME, problems, f"{count} of this machine and backend: a step needs {ENOUGH}")
    found = known or trend(own, floors)
    ours = [one for one in shifts(found.steps) if one.first.key.owner == record.owner and _recent(one)]
    measured = _measured(own, record)
    silent = None if measured else "this record is not in the history"
    if measured is not None and not measured:
        silent = "this record has no time that can be trusted"
    return GatePart(
        _AGAINST_HISTORY_NAME,
        (*map(_against_history_check, ours), *_level(measured or set(), found.series, ours), *problems),
        silent,
    )


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


def _against_history_check(shift: Shift) -> GateCheck:
    """Return the check of a shift; it is the same one as long as its cause is, whatever is measured meanwhile."""
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


def _level(measured: set[tuple[str, ...]], series: int, found: list[Shift]) -> list[GateCheck]:
    """Return the check of the series of this record that kept their level; of others it is only a remark."""
    moved = {(step.key.case, step.key.metric, step.key.subject) for shift in found for step in shift.steps}
    count, left = (len(measured), len(moved & measured)) if measured else (series, len(moved))
    if not count:
        return []
    message = f"{count - left} of {count} series keep their level"
    return [GateCheck(None, None, "level", WELL, message, remark=not measured)]


# Gate checks against the last comparable record: what became slower since then.
#
# Every case is compared with the newest earlier record of the machine, backend and environment, in the order of their
# commits, that has a time of it and shares what `comparable` requires. Runs before that one, of the same code, are put
# together with it, and show what processes and runs of the case differ by. A slow decline, in steps that no two records
# show, is left to the baseline and the trend.

AGAINST_LAST_NAME = "last"
# Times of the kernel alone; copies to and from the host took 1.5 times as long on the same day, with the same code.
METRICS = ("cold_time", "hot_time", "wall_time")
MOST = 10  # earlier records that are read, where the last ones lack cases


@dataclass(frozen=True)
class Earlier:
    """Earlier `record` that compares, and its name in messages."""

    record: RunRecord
    name: str


def last_part(
    reading: Reading, history: History, runs: Path, noise: Noise | None = None, earlier: Sequence[Earlier] | None = None
) -> GatePart:
    """Return the part of the gate that compares with the last comparable record below `runs`, case by case.

    `earlier` are the records that `earlier_records` read, where the caller has them.
    """
    record, factor = reading.record, reading.promises.degraded
    timed = replace(record, cases=tuple(case for case in reading.cases if _times(case)))
    left = {case.name for case in timed.cases}
    if not left:
        return GatePart(AGAINST_LAST_NAME, silent="no case of this record has a time to compare")
    found: list[GateCheck] = []
    boards = KnownBoards(lambda: history, str(record.machine.get("id")), record.backend)
    earlier = earlier_records(record, history, runs) if earlier is None else earlier
    for place in range(len(earlier)):
        checks = _of_left(_against(earlier[place:], timed, noise, factor, boards), left)
        found += checks
        left -= {check.case for check in checks}
        if not left:
            break
    if not found:
        return GatePart(AGAINST_LAST_NAME, silent="no earlier record of this machine, backend and protocol")
    gone = [
        GateCheck(name, None, "unmeasured", "note", "no earlier record that compares has a time of it")
        for name in (case.name for case in timed.cases)
        if name in left
    ]
    return GatePart(AGAINST_LAST_NAME, (*found, *gone))


def _of_left(checks: Sequence[GateCheck], left: Collection[str]) -> list[GateCheck]:
    """Return the checks of the cases that no newer record has, with those on both records; none without such a case.

    The control is that of all cases that both records share: without the others it has too few to show a machine that
    changed.
    """
    own = [check for check in checks if check.case is None or check.case in left]
    return own if any(check.case for check in own) else []


def earlier_records(record: RunRecord, history: History, runs: Path) -> list[Earlier]:
    """Return the records before this one that compare with it, the newest first, until ENOUGH have each of its cases.

    At most MOST are read.
    """
    found: list[Earlier] = []
    seen = Counter[str]()
    timed = {case.name for case in record.cases if _times(case)}
    settings = value_settings(record.protocol)
    for facts in reversed(history.before(record)):
        if len(found) >= MOST or (found and all(seen[name] >= ENOUGH_RUNS for name in timed)):
            break
        if value_settings(facts.protocol) != settings or not is_present(runs / facts.file):
            continue
        try:
            older = store.read(runs / facts.file, edges=False)
        except ResultsError:
            continue  # the history reports it as left out
        if device_of(older) == device_of(record):
            found.append(Earlier(older, f"{facts.when[:10]} {(facts.commit or '')[:8]}".strip()))
            seen.update(case.name for case in older.cases if _times(case))
    return found


def _against(
    earlier: Sequence[Earlier], record: RunRecord, noise: Noise | None, factor: float, boards: KnownBoards
) -> list[GateCheck]:
    """Return what the comparison with the first of the records finds for the cases that both have.

    That is also what is slower by the factor all the same, and which cases want more processes.
    """
    names = {case.name for case in record.cases}
    known = earlier_runs([_only(one.record, names) for one in earlier])
    older, name = _only(earlier[0].record, names), earlier[0].name
    rules = replace(RULES, looks=int(record.protocol.get("looks", 1)))
    comparison = compare(
        known.newest, record, noise, rules, names=(name, "this record"), boards=boards, earlier=known.known
    )
    compared = [check for check in _compared_checks(comparison) if check.answer != "unmeasured"]
    slower = {(check.case, check.metric) for check in compared if check.grave}
    metric, later = next((one.metric for one in comparison.cases if one.identical), None), _later(comparison.control)
    far = [
        check
        for case in record.cases
        for check in _degraded_since(case, record, older, factor, {metric: later})
        if not _in(check, slower)
    ]
    replaced = {(check.case, check.metric) for check in far}
    checks = [check for check in compared if not _in(check, replaced)] + far
    checks += _wanting(comparison, (older, record), known, noise)
    return [replace(check, against=earlier[0].record.commit) for check in checks]


def _only(record: RunRecord, names: Collection[str]) -> RunRecord:
    return replace(record, cases=tuple(case for case in record.cases if case.name in names))


def _wanting(
    comparison: RecordComparison, records: tuple[RunRecord, RunRecord], known: EarlierRuns, noise: Noise | None
) -> Iterator[GateCheck]:
    """Yield one note on the undecided cases of few processes whose spread nothing shows: what would show it."""
    floors = noise if noise and not noise.misfit(records[1]) else None
    tables = [{case.name: case for case in record.cases} for record in records]

    def is_few(case: str, metric: str) -> bool:
        sides = [found for table in tables if (found := valid(table[case], metric))]
        return min((len(side.processes) for side in sides), default=FEW) < FEW

    unknown = [
        one.case
        for one in comparison.cases
        if one.verdict == "inconclusive"
        and (one.case, one.metric) not in known.known
        and not (floors and floors.spread(one.case, one.metric))
        and is_few(one.case, one.metric)
    ]
    if unknown:
        message = (
            f"{count_text(len(unknown), 'undecided case')} in fewer than {FEW} processes, without a noise floor and "
            f"without {ENOUGH_RUNS} earlier runs of the same code: measure with --processes {FEW}, or run again; after "
            f"{ENOUGH_RUNS} runs their own history shows what they differ by"
        )
        yield GateCheck(None, None, "undersampled", "note", message, cases=tuple(unknown))


def _later(control: Control) -> float:
    """Return the seconds by which cases of identical machine code show that every launch takes longer: the host's."""
    return max(control.fit.offset, 0.0) if control.used else 0.0


def _degraded_since(
    case: CaseResult, record: RunRecord, older: RunRecord, factor: float, later: Mapping[str | None, float]
) -> Iterator[GateCheck]:
    """Yield the kernel's own times that are longer by more than the factor from which a case is degraded.

    No error bar or number of processes makes such a difference a matter of chance. What every launch takes `later` by
    metric is no kernel's: it is taken off. A common factor is not, since a device that lost half its rate has one.
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
            message = f"{metric_words(metric)} {now}{less}, {was} before; the rule is at most {ratio_text(factor)}"
            yield GateCheck(case.name, metric, "degraded", "bad", message, ratio)


def _times(case: CaseResult) -> dict[str, float]:
    """Return the trusted medians of the kernel's own times by metric."""
    metrics = METRICS if case.status == "ok" else ()
    return {metric: median for metric in metrics if (median := valid_median(case, metric))}


def _in(check: GateCheck, known: Collection[tuple[str | None, str | None]]) -> bool:
    return (check.case, check.metric) in known


def once(part: GatePart, others: Sequence[GatePart]) -> GatePart:
    """Return the part, in which what another part found slower already is only a remark."""
    slower = {(one.case, one.metric) for other in others for one in other.checks if one.grave and one.case}
    checks = (
        replace(one, gravity="note", remark=True) if one.grave and _in(one, slower) else one for one in part.checks
    )
    return replace(part, checks=tuple(checks))


# Alerts of the gate: one for each concern, or that it could not do its work.
#
# Command that reproduces a finding, for a shell in a clean checkout on the machine of the record.

# Answers that verification alone shows; everything else needs a measurement.
_VERIFIED = ("wrong", "crashed", "timed out", "failed")
_SHORT = 12  # digits of a commit
_MOST = 8


def command(record: RunRecord, check: GateCheck) -> str:
    """Return the command: compare with the check's other commit, else check out its own and run or verify its cases."""
    verb = "verify" if check.answer in _VERIFIED else "run"
    commit = (record.commit or "")[:_SHORT]
    checkout = f"git checkout {commit} && " if commit else ""
    if tests := _tests(record, check):
        return checkout + shlex.join(["pytest", *tests])
    if check.against and commit:
        return shlex.join(["prism-bench", "compare", check.against[:_SHORT], commit, *_choice(record, check)])
    return checkout + shlex.join(["prism-bench", verb, *_choice(record, check)])


def _tests(record: RunRecord, check: GateCheck) -> list[str]:
    """Return the tests that timed the check's cases; empty where another command did."""
    found = [record.case(name) for name in check.cases or ((check.case,) if check.case else ())]
    return list(dict.fromkeys(test_of(case.name) for case in found if case and case.family == TESTED))


def _choice(record: RunRecord, check: GateCheck) -> list[str]:
    """Return the options that choose backend, catalogue and cases."""
    names = check.cases or ((check.case,) if check.case else ())
    found = [case for name in names if (case := record.case(name))]
    options = [("--backend", record.backend)]
    options += [("--catalogue", record.catalogue)] if record.catalogue != "built-in" else []
    options += [("--label", label) for label in sorted({case.label for case in found} & set(LABELS))]
    options += [("--filter", name) for name in _filters(found)]
    return [word for option in options for word in option]


def _filters(cases: Sequence[CaseResult]) -> list[str]:
    """Return the cases; where they are too many their kernels, and nothing (all) where even these are."""
    for name in (_filter, implementation):
        names = dict.fromkeys(map(name, cases))
        if len(names) <= _MOST:
            return list(names)
    return []


def _filter(case: CaseResult) -> str:
    """Return the case's name; that of its kernel for edges, which no filter knows by name."""
    return case.name if case.label in LABELS else implementation(case)


_SOURCE = "check"
MANY = 8  # concerns of one part, answer and metric, those of the run of one kernel
_NAMED = 3


def alerts(gate: Gate) -> list[Alert]:
    """Return one alert for each concern, with the state it was found in and the command that shows it again.

    More than MANY alike are one alert: so many have one cause, and nobody reads sixty messages.
    """
    states = checks_states(gate.record)
    alike: defaultdict[tuple[str, str, str | None, str], list[GateCheck]] = defaultdict(list)
    for part in gate.parts:
        for check in part.checks:
            if check.grave:
                alike[part.name, check.answer, check.metric, _kernel(part, check)].append(check)
    found: list[Alert] = []
    for (part, _, _, kernel), concerns in alike.items():
        shown = [_together(concerns, states, kernel)] if len(concerns) > MANY else concerns
        found += [_alert(gate, part, check, states) for check in shown]
    return found


def _kernel(part: GatePart, check: GateCheck) -> str:
    """Return what else groups concerns: the kernel of what went wrong; nothing for what is slow or over its budget."""
    return check.case.partition("[")[0].partition(":")[0] if part.name == "run" and check.case else ""


def _together(concerns: Sequence[GateCheck], states: Mapping[str | None, str], kernel: str) -> GateCheck:
    """Return one check for all: more of them, or another driver or toolkit, is news; which cases they are is not."""
    worst = min(concerns, key=lambda check: check.order)
    cases = tuple(dict.fromkeys(check.case for check in concerns if check.case))
    more = f" and {len(cases) - _NAMED} more" if len(cases) > _NAMED else ""
    return replace(
        worst,
        case=None,
        cases=cases,
        ratio=float(len(concerns)),
        identity=("many", kernel),
        state=_world(states),
        message=f"{count_text(len(cases), 'case')} ({', '.join(cases[:_NAMED])}{more}); "
        f"the farthest, {worst.case}: {worst.message}",
    )


def _world(states: Mapping[str | None, str]) -> str:
    """Return driver and toolkit: the state of the run without its commit."""
    return states[None].partition(", ")[2] or "unknown"


def occasion(gate: Gate) -> Occasion:
    """Return the heading of the alerts, and the state of everything that was checked."""
    count = len(gate.concerns)
    heading = f"prism-bench check on {gate.machine}: {count} finding{'' if count == 1 else 's'}"
    return Occasion(_SOURCE, heading, checks_states(gate.record))


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


def failure(host: str, reason: str) -> Alert:
    """Return the alert that the gate could not do its work: a run without any message would be taken for a good one."""
    return Alert(_SOURCE, host, "failed", None, "bad", reason, state=reason)


def failing(host: str, state: str) -> Occasion:
    """Return the heading of a failure, and the gate's `state`: the failure's reason, or another one to end it."""
    return Occasion(_SOURCE, f"prism-bench check on {host} could not do its work", {None: state})
