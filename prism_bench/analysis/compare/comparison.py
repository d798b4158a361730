"""Comparison of two records, case by case: the rows, the control, the findings, and the unmeasured cases.

Cases whose machine code and launches are identical on both sides are a control (`noise.Control`): what their times have
in common is the machine's shift, by which every case is divided, and the scatter beyond their errors widens every
error. A case of the control is the same unless it differs from the others; then its environment decides. With other
software (driver, toolkit) it is slower or faster, as any case; with the same software its times are doubtful, since its
code cannot have changed them.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from statistics import median
from typing import Literal, NamedTuple, get_args

from prism_bench import display
from prism_bench.analysis.boards import KnownBoards
from prism_bench.analysis.build_identity import BuildChange, code_change, new_compilers
from prism_bench.analysis.compare.comparable import (
    LAUNCHED,
    device_of,
    is_other_unit,
    other_host,
    require_comparable,
    software_changes,
)
from prism_bench.analysis.compare.earlier_runs import Known, with_spreads
from prism_bench.analysis.compare.estimate import larger
from prism_bench.analysis.compare.noise import Control, Noise, control_findings, crossed, shifts_of, with_changed
from prism_bench.analysis.compare.selection import SelectedCase, Selection, clock_shift, shortcut_doubts
from prism_bench.analysis.compare.verdict import CHANGED, RULES, Judgement, Pair, Verdict, VerdictRules, judged, pair_of
from prism_bench.analysis.peers import clock_of
from prism_bench.analysis.run_analysis import GRAVITY, Finding, Gravity, exit_code, metric_words
from prism_bench.measure.plausibility import valid
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.record.schema import JsonTable
from prism_bench.spec.metric import ELSEWHERE, MEASURED, is_measured, value_text
from prism_bench.units import change_range_text, change_text, count_text, share_text

ComparedVerdict = Literal["slower", "faster", "same", "inconclusive", "not compared", "same machine code"]
UNMEASURED: ComparedVerdict = "same machine code"


@dataclass(frozen=True, repr=False)
class ComparedCase:
    """One case on both sides.

    `judgement` judges only the times, divided by the machine's shift; `verdict` follows it unless the code is
    `identical`, is `not compared` if a side has no valid times, and `same machine code` if the case was not measured
    for that reason. `seconds` are the paired medians of A and B from which the ratio is computed: the geometric means
    of the processes' medians, as measured. `codes` holds what each record knows of its machine code and launches.
    """

    case: str
    metric: str
    verdict: ComparedVerdict
    reason: str | None = None
    judgement: Judgement | None = None
    seconds: tuple[float | None, float | None] = (None, None)
    identical: bool = False
    gravity: Gravity = "note"
    codes: tuple[JsonTable, JsonTable] = field(default_factory=lambda: ({}, {}))

    @property
    def build_change(self) -> BuildChange | None:
        """Why the machine code differs: another compiler or another source; None if it is equal or unknown."""
        return code_change(*self.codes)

    @property
    def machine(self) -> float | None:
        """Factor by which the machine was slower in B, not part of the ratio; None if it is 1.000."""
        ratio = self.judgement.shift.ratio if self.judgement else 1.0
        return ratio if f"{ratio:.3f}" != "1.000" else None

    @property
    def machine_words(self) -> str:
        """`the machine's -7.8 % divided out`; empty if the times have the judgement's ratio."""
        return f"the machine's {change_text(self.machine)} divided out" if self.machine else ""

    def __repr__(self) -> str:
        """Return one line: `<ComparedCase softmax[rows=32,cols=1000] slower: 5.00 us against 4.00 us, +25.0 %>`."""
        before, after = self.seconds
        times = (
            f": {value_text(self.metric, after)} against {value_text(self.metric, before)}" if before and after else ""
        )
        ratio = f", {change_text(self.judgement.estimate.ratio)}" if self.judgement else ""
        why = self.reason if not self.judgement else self.machine_words
        reason = f" ({why})" if why else ""
        return f"<ComparedCase {self.case} {self.verdict}{times}{ratio}{reason}>"

    def _repr_html_(self) -> str:
        """Return the line above the interval of the ratio; without an interval, the line with the reason."""
        heading = repr(self).removeprefix("<ComparedCase ").removesuffix(">")
        return display.view(heading, display.intervals(_ratio_intervals([self])))


def _ratio_intervals(cases: Iterable[ComparedCase]) -> list[display.Interval]:
    estimates = [(case.case, case.judgement.estimate) for case in cases if case.judgement]
    return [
        display.Interval(name, about.ratio, *about.interval(), change_text(about.ratio)) for name, about in estimates
    ]


class CaseRatio(NamedTuple):
    """Verdict on a case, the ratio B over A with its interval, and the noise floor; None for what is not known."""

    verdict: str
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    floor: float | None = None


def _ratio_of(case: ComparedCase) -> CaseRatio:
    if case.judgement is None:
        return CaseRatio(case.verdict)
    estimate = case.judgement.estimate
    return CaseRatio(case.verdict, estimate.ratio, *estimate.interval(), case.judgement.floor)


def change_sentence(name: str, cases: Iterable[CaseRatio]) -> str:
    """Return one sentence on all cases: how much slower and faster, in how many of them, and how many are open.

    `B is 4.1 % slower (3.8 % to 4.4 %) in 1 of 853 cases; 113 undecided, with a noise floor of 6.0 %.` Of several
    changed cases the smallest and the largest change are given, of undecided ones the median noise floor; cases that
    could not be compared are counted last.
    """
    by_verdict: dict[str, list[CaseRatio]] = {}
    for case in cases:
        by_verdict.setdefault(case.verdict, []).append(case)
    total = sum(len(by_verdict.get(verdict, ())) for verdict in get_args(Verdict))
    if not total:
        if same_code := by_verdict.get(UNMEASURED):
            return f"Nothing was measured: {count_text(len(same_code), 'case')} have the same machine code."
        return "No case could be compared."
    changes = [
        f"{_sizes(by_verdict[verdict])} in {len(by_verdict[verdict])} of {count_text(total, 'case')}"
        for verdict in CHANGED
        if verdict in by_verdict
    ]
    sentence = f"{name} is {' and '.join(changes)}"
    if not changes:
        sentence = f"{name} is as fast in {len(by_verdict.get('same', ()))} of {count_text(total, 'case')}"
    if undecided := by_verdict.get("inconclusive"):
        sentence += f"; {len(undecided)} undecided"
        floors = [case.floor for case in undecided if case.floor is not None and isfinite(case.floor)]
        sentence += f", with a noise floor of {share_text(median(floors))}" if floors else ""
    if left := by_verdict.get("not compared"):
        sentence += f"; {len(left)} not compared"
    return f"{sentence}."


def _sizes(cases: Sequence[CaseRatio]) -> str:
    """Return the change of one case with its interval, or the smallest and the largest change of several."""
    ends = sorted(abs(case.ratio - 1) for case in cases if case.ratio is not None and isfinite(case.ratio))
    word, first = cases[0].verdict, cases[0]
    if not ends:
        return word
    if len(cases) > 1:
        return f"{' to '.join(dict.fromkeys(map(share_text, (ends[0], ends[-1]))))} {word}"
    interval = ""
    if first.low is not None and first.high is not None and isfinite(first.high):
        low, high = map(share_text, sorted((abs(first.low - 1), abs(first.high - 1))))
        interval = f" ({low} to {high})" if low != high else ""
    return f"{share_text(ends[0])} {word}{interval}"


_SHOWN_ORDER: tuple[ComparedVerdict, ...] = ("slower", "faster", "inconclusive", "same", "not compared", UNMEASURED)


@dataclass(frozen=True, repr=False)
class RecordComparison:
    """Every case of both records, the control, and `notes` about the two records.

    `complete` is False if the measurement was cut short. `software` names the versions of driver and toolkit that
    differ. `backend` and `device` measured both records, at `commits` of the sources. `selection` has the role of every
    case if two builds were measured, and `doubts` are reasons why the unmeasured cases may still take another time.
    """

    names: tuple[str, str]
    cases: tuple[ComparedCase, ...]
    control: Control
    notes: tuple[str, ...] = ()
    complete: bool = True
    software: str | None = None
    backend: str = ""
    device: str = ""
    commits: tuple[str | None, str | None] = (None, None)
    selection: Selection | None = None
    doubts: tuple[str, ...] = ()

    @property
    def answered(self) -> bool:
        """Whether any case could be judged, by its times or its machine code."""
        return any(case.judgement or case.verdict == UNMEASURED for case in self.cases)

    @property
    def exit_code(self) -> int:
        """Exit code of a command: that of its findings, else 2 if not everything could be judged."""
        return exit_code(comparison_findings(self)) or (0 if self.answered and self.complete else 2)

    def counts(self) -> Mapping[ComparedVerdict, int]:
        """Return the number of cases by verdict, the most important verdict first."""
        verdicts = [case.verdict for case in self.cases]
        counts = {verdict: verdicts.count(verdict) for verdict in get_args(ComparedVerdict)}
        return {verdict: count for verdict, count in counts.items() if count or self.selection or verdict != UNMEASURED}

    def sentence(self, name: str | None = None) -> str:
        """Return what changed in B, called `name`, as one sentence; see `change_sentence`."""
        return change_sentence(name or self.names[1], map(_ratio_of, self.cases))

    def _summary(self) -> str:
        counts = ", ".join(f"{count} {verdict}" for verdict, count in self.counts().items() if count)
        return f"{self.names[1]} against {self.names[0]}: {counts or 'no cases'}"

    def __repr__(self) -> str:
        """Return one line: `<RecordComparison B against A: 2 slower, 1 faster, 276 same>`."""
        return f"<RecordComparison {self._summary()}>"

    def _repr_html_(self) -> str:
        """Return the number of cases by verdict, with intervals and a table of the changed cases.

        If no case changed, all cases are shown, inconclusive ones first.
        """

        def rank(case: ComparedCase) -> tuple[int, float]:
            return _SHOWN_ORDER.index(case.verdict), -abs(case.judgement.estimate.log if case.judgement else 0.0)

        cases = sorted(self.cases, key=rank)
        shown = [case for case in cases if case.verdict in CHANGED] or cases
        rows = [
            [
                case.case,
                case.verdict,
                *(value_text(case.metric, value) for value in case.seconds),
                "; ".join(filter(None, (case.machine_words, case.reason))),
            ]
            for case in shown
        ]
        table = display.table(["case", "verdict", *self.names, "reason"], rows)
        return display.view(self._summary(), display.intervals(_ratio_intervals(shown)), table)


def by_name(case: CaseResult) -> str:
    """Return the key that pairs two records of the same catalogue."""
    return case.name


def by_workload(case: CaseResult) -> str:
    """Return the key that pairs a kernel with its variant."""
    return f"{case.kernel}[{case.workload_text}]"


def compare(
    a: RunRecord,
    b: RunRecord,
    noise: Noise | None = None,
    rules: VerdictRules = RULES,
    *,
    metric: str | None = None,
    key: Callable[[CaseResult], str] = by_name,
    names: tuple[str, str] = ("A", "B"),
    changed: Collection[str] = (),
    boards: KnownBoards | None = None,
    earlier: Known | None = None,
) -> RecordComparison:
    """Return B against A in `metric` (cold time, or wall time if the cases ran only on a CPU), paired by `key`.

    The code of the cases `changed` is known to differ, even if the records show no difference. `boards` are the factors
    of cases whose sides two boards measured (see `noise.Crossings`), `earlier` the spreads of runs before B.
    Raise a ResultsError if backend, device or protocol differ: such times cannot be compared.
    """
    notes = require_comparable(a, b, names)
    if noise and (reason := noise.misfit(b)):
        noise, notes = None, [*notes, reason]
    sides = [{key(case): case for case in record.cases if not case.is_edge} for record in (a, b)]
    notes += _only_in_one(names, sides)
    both = {name: (case, sides[1][name]) for name, case in sides[0].items() if name in sides[1]}
    shared = {name: results for name, results in both.items() if is_measured(metric, results[0].ceiling)}
    rows: dict[str, ComparedCase] = {}
    pairs: dict[str, Pair] = {}
    for name, results in shared.items():
        row = _unjudged(name, results, metric, names, (a, b), changed)
        if row.verdict != "not compared":
            pairs[name] = pair = _pair(row, results, noise, earlier or {})
            row = replace(row, seconds=(pair.a.typical, pair.b.typical))
        rows[name] = row
    pairs |= with_spreads({name: pairs[name] for name in pairs if any(case.control for case in shared[name])})
    software = software_changes(a, b)
    identical = [name for name, row in rows.items() if row.identical and rules.control]
    metrics = {name: row.metric for name, row in rows.items()}
    control, widening, shifts, crossings = shifts_of(pairs, identical, crossed(shared, a, b), boards, metrics)
    verdicts = judged([*pairs.values()], rules, widening, [shifts[name] for name in pairs])
    judgements = dict(zip(pairs, verdicts, strict=True))
    for name, judgement in judgements.items():
        row = _decided(rows[name], judgement, name in identical)
        if name in identical:
            row = _of_identical(row, judgement, control, software, is_other_unit(a, b, shared[name][1].kernel))
        rows[name] = replace(row, reason=crossings.reason(name, judgement) or row.reason)
    if control.used:
        control = with_changed(control, tuple(name for name in identical if judgements[name].verdict in CHANGED))
    notes += [*crossings.notes(), *new_compilers(row.build_change for row in rows.values())]
    return RecordComparison(
        names,
        tuple(rows.values()),
        control,
        tuple(notes),
        software=software,
        backend=b.backend,
        device=device_of(b),
        commits=(a.commit, b.commit),
    )


def _only_in_one(names: tuple[str, str], sides: Sequence[Mapping[str, CaseResult]]) -> Iterator[str]:
    """Yield a note for each side with cases that the other lacks."""
    for name, cases, others in zip(names, sides, sides[::-1], strict=True):
        if only := [case for case in cases if case not in others]:
            few = ", ".join(only[:3]) + (" ..." if len(only) > 3 else "")
            yield f"only {name} has {count_text(len(only), 'case')}: {few}"


def _unjudged(
    name: str,
    results: tuple[CaseResult, CaseResult],
    metric: str | None,
    names: tuple[str, str],
    records: tuple[RunRecord, RunRecord],
    changed: Collection[str],
) -> ComparedCase:
    """Return the row of a case before its times are judged, `not compared` if they cannot be."""
    metric = metric or clock_of(next((case for case in results if case.measurements), results[0]))
    row = ComparedCase(name, metric, "inconclusive", codes=(results[0].code, results[1].code))
    for case, side in zip(results, names, strict=True):
        reason = missing(case, metric, side)
        if reason:
            broken = case is results[1] and case.status not in ("ok", "skipped")
            measured = case.measurement(metric) if case.status == "ok" else None
            gravity: Gravity = "untrusted" if measured and measured.distrusted else "bad" if broken else "note"
            return replace(row, verdict="not compared", reason=reason, gravity=gravity)
    hosts = records[0].host_of(results[0]), records[1].host_of(results[1])
    if reason := other_host(metric, hosts, names):
        return replace(row, verdict="not compared", reason=reason)
    return replace(row, identical=name not in changed and _identical(metric, *results))


def missing(case: CaseResult, metric: str, side: str) -> str | None:
    """Return why the case has no valid time on that side, or None."""
    if case.status != "ok":
        return f"{case.status} in {side}: {case.reason or 'the record gives no reason'}"
    measured = case.measurement(metric)
    if measured is None or not measured.samples:
        return f"{side} has no {metric_words(metric)}" + (
            f": {measured.reason}" if measured and measured.reason else ""
        )
    return None if measured.valid else f"{side}'s {metric_words(metric)} is not to be trusted: {measured.reason}"


def _identical(metric: str, a: CaseResult, b: CaseResult) -> bool:
    """Return whether both sides ran the same machine code in the same launches, and the device's clock read `metric`.

    A field that one of the records lacks, such as the launches of an older record, is no difference.
    """
    shared = [name for name in LAUNCHED if name in a.code and name in b.code]
    known = on_device(metric) and bool(a.code.get("sass")) and "sass" in shared
    return known and all(a.code[name] == b.code[name] for name in shared)


def on_device(metric: str) -> bool:
    """Return whether the device's clock read the metric."""
    return {**MEASURED, **ELSEWHERE}[metric].clock in ("events", "graph")


def _pair(row: ComparedCase, results: tuple[CaseResult, CaseResult], noise: Noise | None, earlier: Known) -> Pair:
    a, b = (valid(case, row.metric) for case in results)
    assert a and b, "only cases with times on both sides are judged"
    key = row.case, row.metric
    stored = (noise.spread(*key), noise.spread_in_cycles(*key)) if noise else (None, None)
    learned = earlier.get(key, (None, None))
    return pair_of(a, b, *(larger(*known) for known in zip(stored, learned, strict=True)))


def _decided(row: ComparedCase, judgement: Judgement, identical: bool) -> ComparedCase:
    return replace(
        row,
        verdict=judgement.verdict,
        reason=judgement.reason,
        judgement=judgement,
        identical=identical,
        gravity="bad" if judgement.verdict == "slower" else "note",
    )


STANDS_OUT = "identical machine code, and by its times alone"


def _of_identical(
    row: ComparedCase, judgement: Judgement, control: Control, software: str | None, is_elsewhere: bool
) -> ComparedCase:
    """Return the row of a case of identical code: with a large control, a change is the machine's, not the kernel's."""
    verdict, around = judgement.verdict, software or ("another unit of the device" if is_elsewhere else None)
    if verdict in CHANGED and control.used and not software:
        where = around or "the machine changed, not the kernel"
        return replace(row, verdict="inconclusive", gravity="note", reason=f"{STANDS_OUT} {verdict}: {where}")
    if verdict in CHANGED:
        return replace(row, reason=f"identical machine code: {around or 'the machine or its environment changed'}")
    if control.used and not software and verdict != "same":
        return replace(row, verdict="same", reason=f"identical machine code; by its times alone {verdict}")
    return row


def undecided(
    comparison: RecordComparison, records: tuple[RunRecord, RunRecord], key: Callable[[CaseResult], str]
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names, in either record, of the cases that more processes may decide."""
    left = {row.case for row in comparison.cases if row.verdict == "inconclusive"}
    names_a, names_b = (frozenset(case.name for case in record.cases if key(case) in left) for record in records)
    return names_a, names_b


def comparison_findings(comparison: RecordComparison) -> list[Finding]:
    """Return the findings of the comparison, the gravest first.

    Broken and slower cases, a failed control, faster cases; then cases of identical code that differ from the control,
    and the machine's shift.
    """
    rows = comparison.cases
    findings = [
        _finding(row, row.judgement, comparison.names) for row in rows if row.verdict in CHANGED and row.judgement
    ]
    findings += [
        Finding(row.gravity, "not compared", row.case, row.reason or "", row.metric)
        for row in rows
        if row.verdict == "not compared"
    ]
    outside = [row for row in rows if row.identical and (row.reason or "").startswith(STANDS_OUT)]
    findings += [Finding("note", "control", row.case, row.reason or "", row.metric) for row in outside]
    findings += control_findings(comparison.control, comparison.software)
    findings += [Finding("untrusted", "selection", None, doubt) for doubt in comparison.doubts]
    findings += [Finding("note", "records", None, note) for note in comparison.notes]
    return sorted(findings, key=lambda finding: GRAVITY.index(finding.gravity))


def _finding(row: ComparedCase, judgement: Judgement, names: tuple[str, str]) -> Finding:
    low, high = judgement.estimate.interval()
    was, now = (value_text(row.metric, seconds) for seconds in row.seconds)
    ratio = judgement.estimate.ratio
    message = (
        f"{metric_words(row.metric)} {now} in {names[1]}, {was} in {names[0]}: {change_text(ratio)} "
        f"({change_range_text(low, high)}), noise floor {share_text(judgement.floor)}"
    )
    reasons = (row.machine_words, row.reason, _code_words(row))
    message += "".join(f"; {reason}" for reason in reasons if reason)
    return Finding(row.gravity, row.verdict, row.case, message, row.metric, ratio)


def _code_words(row: ComparedCase) -> str | None:
    """Return that the machine code changed, and why if the records have that; None where that is not known."""
    before, after = (codes.get("sass") for codes in row.codes)
    if row.build_change:
        return row.build_change.words
    return "its machine code changed" if before and after and before != after else None


# Cases that were not measured: those of the same machine code, and those that do not build.

_USUAL = "cold_time"


def with_selection(
    comparison: RecordComparison, selection: Selection, records: tuple[RunRecord, RunRecord]
) -> RecordComparison:
    """Return the comparison of the measured cases, with all other cases and with the doubts about them."""
    measured = {row.case for row in comparison.cases}
    metric = comparison.cases[0].metric if comparison.cases else _USUAL
    rest = [case for case in selection.cases if case.case not in measured]
    cases = (*comparison.cases, *_unmeasured_rows(rest, comparison.names, metric))
    count = sum(row.verdict == UNMEASURED for row in cases)
    doubts = tuple(
        f"{doubt}: {count_text(count, 'case')} without a measurement may take another time, too; --all measures all"
        for doubt in (_doubts(comparison, records) if count else ())
    )
    return replace(comparison, cases=cases, selection=selection, doubts=doubts)


def unmeasured(names: tuple[str, str], selection: Selection, notes: tuple[str, ...]) -> RecordComparison:
    """Return the comparison of two builds without a measured case, because no case has changed."""
    rows = _unmeasured_rows(selection.cases, names, _USUAL)
    return RecordComparison(names, tuple(rows), Control(), notes, selection=selection)


def _unmeasured_rows(cases: Iterable[SelectedCase], names: tuple[str, str], metric: str) -> Iterator[ComparedCase]:
    """Yield the rows of cases without times; a case that was to be measured and has no result has no row."""
    for case in cases:
        if case.role == "does not build":
            reason = f"{names[case.broken == 'b']} does not build: {case.problem}"
            gravity = "bad" if case.broken == "b" else "note"
            yield ComparedCase(case.case, metric, "not compared", reason, gravity=gravity)
        elif case.role in ("same machine code", "control"):
            yield ComparedCase(case.case, metric, UNMEASURED)


def _doubts(comparison: RecordComparison, records: tuple[RunRecord, RunRecord]) -> list[str]:
    around = [changes for changes in [software_changes(*records)] if changes]
    kernels = {case.kernel for case in records[1].cases}
    if any(is_other_unit(*records, kernel) for kernel in kernels):
        around.append("another unit of the device")
    control = [
        [valid(case, row.metric) for record in records if (case := record.case(row.case))]
        for row in comparison.cases
        if row.identical
    ]
    pairs = [(pair[0], pair[1]) for pair in control if len(pair) == 2 and pair[0] and pair[1]]
    return shortcut_doubts(clock_shift(pairs), around)
