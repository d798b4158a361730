"""Comparison of two records, case by case: what became slower or faster, and what nobody can say."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from prism_bench import display
from prism_bench.analysis.boards import KnownBoards
from prism_bench.analysis.build_identity import BuildChange, code_change, new_compilers
from prism_bench.analysis.compare.comparable import (
    LAUNCHED,
    Surroundings,
    device_of,
    is_other_unit,
    other_host,
    require_comparable,
    software_changes,
)
from prism_bench.analysis.compare.earlier_runs import Known
from prism_bench.analysis.compare.estimate import larger
from prism_bench.analysis.compare.noise import Control, Noise, control_findings, crossed, shifts_of, with_changed
from prism_bench.analysis.compare.selection import SelectedCase, Selection, clock_shift, shortcut_doubts
from prism_bench.analysis.compare.verdict import CHANGED, RULES, Judgement, Pair, VerdictRules, judged, pair_of
from prism_bench.analysis.peers import clock_of
from prism_bench.analysis.run_analysis import GRAVITY, Finding, Gravity, exit_code, metric_words, value_text
from prism_bench.measure.plausibility import valid
from prism_bench.record.measurement import Measurement
from prism_bench.record.run_record import CaseResult, JsonTable, RunRecord
from prism_bench.spec.metric import ELSEWHERE, MEASURED
from prism_bench.units import count_text, ratio_text, share_text, time_text

# One case of a comparison: what was measured on both sides, and the verdict on it.

ComparedVerdict = Literal["slower", "faster", "same", "inconclusive", "not compared", "same machine code"]
UNMEASURED: ComparedVerdict = "same machine code"


@dataclass(frozen=True, repr=False)
class ComparedCase:
    """One case on both sides.

    `judgement` is that of the times alone, divided by the machine's shift; `verdict` follows it unless the code is
    `identical`, and is `not compared` where a side has no valid times, and `same machine code` where the case was not
    measured for that reason. `seconds` are the paired medians of A and B, of which the ratio is made: the geometric
    means of the processes' medians, as they were measured. `codes` is what each record knows of its machine code and
    launches.
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
        """Why the machine code differs: another compiler, another source; None where it does not, or is not known."""
        return code_change(*self.codes)

    @property
    def machine(self) -> float | None:
        """By how much the machine took longer in B: the times differ by the ratio times it; None where it is 1.000."""
        ratio = self.judgement.shift.ratio if self.judgement else 1.0
        return ratio if f"{ratio:.3f}" != "1.000" else None

    @property
    def machine_words(self) -> str:
        """`the machine's 0.922x divided out`; empty where the times have the judgement's ratio."""
        return f"the machine's {self.machine:.3f}x divided out" if self.machine else ""

    def __repr__(self) -> str:
        """Return one line: `<ComparedCase softmax[rows=32,cols=1000] slower: 5.00 us against 4.00 us, 1.25x>`."""
        before, after = self.seconds
        times = f": {time_text(after)} against {time_text(before)}" if before and after else ""
        ratio = f", {ratio_text(self.judgement.estimate.ratio)}" if self.judgement else ""
        why = self.reason if not self.judgement else self.machine_words
        reason = f" ({why})" if why else ""
        return f"<ComparedCase {self.case} {self.verdict}{times}{ratio}{reason}>"

    def _repr_html_(self) -> str:
        """Return the line over the interval of the ratio; where there is none, with the reason."""
        heading = repr(self).removeprefix("<ComparedCase ").removesuffix(">")
        return display.view(heading, display.intervals(_ratio_intervals([self])))


def _ratio_intervals(cases: Iterable[ComparedCase]) -> list[display.Interval]:
    """Return the ratio of each judged case with its interval, for a picture."""
    estimates = [(case.case, case.judgement.estimate) for case in cases if case.judgement]
    return [
        display.Interval(name, about.ratio, *about.interval(), ratio_text(about.ratio)) for name, about in estimates
    ]


# Comparison of two records, case by case: what became slower or faster, and whether that can be trusted.
#
# Cases whose machine code and launches are identical on both sides are a control (`control`): what they have in common
# is the machine's shift, by which every case is divided, and by what they differ beyond their errors every error is
# widened. A case of the control is the same unless it differs from the others; then its environment decides. Under
# other software (driver, toolkit) it is slower or faster, as any case; under the same one its times are doubtful, since
# its code cannot have changed them.

_Cases = tuple[CaseResult, CaseResult]
_Row = tuple[ComparedCase, _Cases]
_SHOWN_ORDER: tuple[ComparedVerdict, ...] = ("slower", "faster", "inconclusive", "same", "not compared", UNMEASURED)


@dataclass(frozen=True, repr=False)
class RecordComparison:
    """Every case of both records, the control, and `notes` about the two records.

    `complete` is False where measuring them was cut short. `software` are the versions of driver and
    toolkit that differ. `backend` and `device` measured both, at `commits` of the sources. `selection` has the role of
    every case where two builds were measured, and `doubts` are why those that were not measured may take another time
    all the same.
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
        """Whether any case could be judged at all, by its times or its machine code."""
        return any(one.judgement or one.verdict == UNMEASURED for one in self.cases)

    @property
    def exit_code(self) -> int:
        """Exit code of a command: that of its findings, 2 where nothing or not everything could be judged."""
        return exit_code(comparison_findings(self)) or (0 if self.answered and self.complete else 2)

    def counts(self) -> Mapping[ComparedVerdict, int]:
        """Return how many cases have each verdict, the verdicts in the order in which they matter."""
        words = [one.verdict for one in self.cases]
        counted = {word: words.count(word) for word in get_args(ComparedVerdict)}
        return {word: count for word, count in counted.items() if count or self.selection or word != UNMEASURED}

    def _summary(self) -> str:
        counts = ", ".join(f"{count} {verdict}" for verdict, count in self.counts().items() if count)
        return f"{self.names[1]} against {self.names[0]}: {counts or 'no cases'}"

    def __repr__(self) -> str:
        """Return one line: `<RecordComparison B against A: 2 slower, 1 faster, 276 same>`."""
        return f"<RecordComparison {self._summary()}>"

    def _repr_html_(self) -> str:
        """Return how many cases have each verdict, the intervals of those that moved, and a table of them.

        Where none moved, those that are inconclusive are shown, then the rest.
        """

        def place(case: ComparedCase) -> tuple[int, float]:
            return _SHOWN_ORDER.index(case.verdict), -abs(case.judgement.estimate.log if case.judgement else 0.0)

        cases = sorted(self.cases, key=place)
        shown = [case for case in cases if case.verdict in CHANGED] or cases
        rows = [
            [
                case.case,
                case.verdict,
                *map(time_text, case.seconds),
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
    """Return B against A in `metric` (cold time, or wall time where the cases ran on a CPU only), paired by `key`.

    The cases `changed` are known to differ in their code, whatever the records know of it. `boards` are the factors of
    cases whose sides two boards measured (see `across`), `earlier` the spreads that runs before B showed.
    Raise a ResultsError where backend, device or protocol differ: such times cannot be compared.
    """
    notes = require_comparable(a, b, names)
    if noise and (reason := noise.misfit(b)):
        noise, notes = None, [*notes, reason]
    sides = [{key(case): case for case in record.cases if not case.is_edge} for record in (a, b)]
    notes += _alone(sides, names)
    shared = {name: (case, sides[1][name]) for name, case in sides[0].items() if name in sides[1]}
    rows = [_row(name, pair, metric, names, records=(a, b)) for name, pair in shared.items()]
    rows = [(replace(row, identical=row.identical and row.case not in changed), pair) for row, pair in rows]
    pairs = {row.case: _pair(row, both, noise, earlier or {}) for row, both in rows if row.verdict != "not compared"}
    rows = [
        (replace(row, seconds=(own.a.typical, own.b.typical)) if (own := pairs.get(row.case)) else row, both)
        for row, both in rows
    ]
    surrounded = Surroundings(a, b, software_changes(a, b))
    found, control, on_boards = _judged(rows, pairs, rules, surrounded, boards)
    notes += on_boards
    notes += new_compilers(one.build_change for one in found)
    return RecordComparison(
        names,
        tuple(found),
        control,
        tuple(notes),
        software=surrounded.software,
        backend=b.backend,
        device=device_of(b),
        commits=(a.commit, b.commit),
    )


def _alone(sides: Sequence[Mapping[str, CaseResult]], names: tuple[str, str]) -> Iterator[str]:
    """Yield for each side which cases the other one does not have."""
    for name, mine, theirs in zip(names, sides, sides[::-1], strict=True):
        alone = [case for case in mine if case not in theirs]
        if alone:
            few = ", ".join(alone[:3]) + (" ..." if len(alone) > 3 else "")
            yield f"only {name} has {len(alone)} case{'s' if len(alone) > 1 else ''}: {few}"


def _row(
    name: str, pair: _Cases, metric: str | None, names: tuple[str, str], *, records: tuple[RunRecord, RunRecord]
) -> _Row:
    metric = metric or clock_of(next((case for case in pair if case.measurements), pair[0]))
    row = ComparedCase(name, metric, "inconclusive", codes=(pair[0].code, pair[1].code))
    for case, side in zip(pair, names, strict=True):
        reason = missing(case, metric, side)
        if reason:
            broken = case is pair[1] and case.status not in ("ok", "skipped")
            doubtful = case.status == "ok" and (found := case.measurement(metric)) is not None and found.distrusted
            gravity: Gravity = "untrusted" if doubtful else "bad" if broken else "note"
            return replace(row, verdict="not compared", reason=reason, gravity=gravity), pair
    hosts = records[0].host_of(pair[0]), records[1].host_of(pair[1])
    if reason := other_host(metric, hosts, names):
        return replace(row, verdict="not compared", reason=reason), pair
    return replace(row, identical=_identical(metric, *pair)), pair


def missing(case: CaseResult, metric: str, side: str) -> str | None:
    """Return why the case has no time on that side; None where it has one."""
    if case.status != "ok":
        return f"{case.status} in {side}: {case.reason or 'the record gives no reason'}"
    found = case.measurement(metric)
    if found is None or not found.samples:
        return f"{side} has no {metric_words(metric)}" + (f": {found.reason}" if found and found.reason else "")
    return None if found.valid else f"{side}'s {metric_words(metric)} is not to be trusted: {found.reason}"


def _identical(metric: str, a: CaseResult, b: CaseResult) -> bool:
    """Return whether both sides ran the same machine code in the same launches, and the device's clock read `metric`.

    What one of the records does not know, as an older one its launches, is no difference.
    """
    shared = [name for name in LAUNCHED if name in a.code and name in b.code]
    known = on_device(metric) and bool(a.code.get("sass")) and "sass" in shared
    return known and all(a.code[name] == b.code[name] for name in shared)


def on_device(metric: str) -> bool:
    """Return whether the device's own clock read it."""
    return {**MEASURED, **ELSEWHERE}[metric].clock in ("events", "graph")


def _pair(row: ComparedCase, both: _Cases, noise: Noise | None, earlier: Known) -> Pair:
    a, b = (valid(case, row.metric) for case in both)
    assert a and b, "only cases with times on both sides are judged"
    key = row.case, row.metric
    stored = (noise.spread(*key), noise.spread_in_cycles(*key)) if noise else (None, None)
    learned = earlier.get(key, (None, None))
    return pair_of(a, b, *(larger(*known) for known in zip(stored, learned, strict=True)))


def _judged(
    rows: Sequence[_Row],
    pairs: Mapping[str, Pair],
    rules: VerdictRules,
    surrounded: Surroundings,
    known: KnownBoards | None,
) -> tuple[list[ComparedCase], Control, list[str]]:
    """Return every row with its verdict, the control that the rows of identical code make, and notes on boards."""
    identical = [row.case for row, _ in rows if row.identical and rules.control]
    metrics = {row.case: row.metric for row, _ in rows}
    boards = crossed({row.case: pair for row, pair in rows}, surrounded.a, surrounded.b)
    control, widening, shifts, crossings = shifts_of(pairs, identical, boards, (known, metrics))
    final = dict(
        zip(pairs, judged(list(pairs.values()), rules, widening, [shifts[case] for case in pairs]), strict=True)
    )
    changed = tuple(case for case in identical if final[case].verdict in CHANGED)
    decided = [
        _of_identical(row, final[row.case], control, surrounded, around=surrounded.of(pair[1].kernel))
        if row.case in identical
        else _decided(row, final.get(row.case))
        for row, pair in rows
    ]
    withheld = [
        replace(row, reason=crossings.reason(row.case, row.judgement) or row.reason) if row.judgement else row
        for row in decided
    ]
    return withheld, with_changed(control, changed) if control.used else control, crossings.notes()


def _decided(row: ComparedCase, judgement: Judgement | None, identical: bool = False) -> ComparedCase:
    if judgement is None:
        return row
    return replace(
        row,
        verdict=judgement.verdict,
        reason=judgement.reason,
        judgement=judgement,
        identical=identical,
        gravity="bad" if judgement.verdict == "slower" else "note",
    )


def _of_identical(
    row: ComparedCase, judgement: Judgement, control: Control, surrounded: Surroundings, *, around: str | None
) -> ComparedCase:
    """Return a case of identical code: evidence about the machine where a large control shows no difference."""
    found = _decided(row, judgement, identical=True)
    word = judgement.verdict
    if word in CHANGED and control.used and not surrounded.software:
        where = around or "the machine changed, not the kernel"
        return replace(found, verdict="inconclusive", gravity="note", reason=f"{STANDS_OUT} {word}: {where}")
    if word in CHANGED:
        return replace(found, reason=f"identical machine code: {around or 'the machine or its environment changed'}")
    if control.used and not surrounded.software and word != "same":
        return replace(found, verdict="same", reason=f"identical machine code; by its times alone {word}")
    return found


STANDS_OUT = "identical machine code, and by its times alone"


def undecided(
    comparison: RecordComparison, records: tuple[RunRecord, RunRecord], key: Callable[[CaseResult], str]
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names, in either record, of the cases that more processes may decide."""
    left = {one.case for one in comparison.cases if one.verdict == "inconclusive"}
    first, second = (frozenset(case.name for case in record.cases if key(case) in left) for record in records)
    return first, second


def comparison_findings(comparison: RecordComparison) -> list[Finding]:
    """Return the findings of the comparison, the gravest first.

    Broken and slower cases, a failed control, faster cases; then cases of identical code that differ from the control,
    and what the machine did to all of them.
    """
    changed = [(one, one.judgement) for one in comparison.cases if one.verdict in CHANGED]
    found = [_finding(one, judgement, comparison.names) for one, judgement in changed if judgement]
    found += [
        Finding(one.gravity, "not compared", one.case, one.reason or "", one.metric)
        for one in comparison.cases
        if one.verdict == "not compared"
    ]
    outside = [one for one in comparison.cases if one.identical and (one.reason or "").startswith(STANDS_OUT)]
    found += [Finding("note", "control", one.case, one.reason or "", one.metric) for one in outside]
    found += control_findings(comparison.control, comparison.software)
    found += [Finding("untrusted", "selection", None, doubt) for doubt in comparison.doubts]
    found += [Finding("note", "records", None, note) for note in comparison.notes]
    return sorted(found, key=lambda one: GRAVITY.index(one.gravity))


def _finding(one: ComparedCase, judgement: Judgement, names: tuple[str, str]) -> Finding:
    low, high = judgement.estimate.interval()
    was, now = (value_text(one.metric, seconds) for seconds in one.seconds)
    ratio = judgement.estimate.ratio
    message = (
        f"{metric_words(one.metric)} {now} in {names[1]}, {was} in {names[0]}: {ratio:.3f}x ({low:.3f} to {high:.3f}), "
        f"noise floor {share_text(judgement.floor)}"
    )
    known = (one.machine_words, one.reason, one.build_change and one.build_change.words)
    message += "".join(f"; {words}" for words in known if words)
    return Finding(one.gravity, one.verdict, one.case, message, one.metric, ratio)


# A comparison with the cases that were not measured: those of the same machine code, and those that do not build.

Records = tuple[RunRecord, RunRecord]
_USUAL = "cold_time"


def with_selection(comparison: RecordComparison, selection: Selection, records: Records) -> RecordComparison:
    """Return the comparison of what was measured, with all other cases and with the doubts about them."""
    judged = {one.case for one in comparison.cases}
    rows = _Rows(comparison.names, comparison.cases[0].metric if comparison.cases else _USUAL)
    rest = [row for one in selection.cases if one.case not in judged for row in rows.of(one)]
    cases = (*comparison.cases, *rest)
    unmeasured = sum(one.verdict == UNMEASURED for one in cases)
    doubts = tuple(
        f"{doubt}: {count_text(unmeasured, 'case')} without a measurement may "
        "take another time, too; --all-cases measures all"
        for doubt in (_doubts(comparison, records) if unmeasured else ())
    )
    return replace(comparison, cases=cases, selection=selection, doubts=doubts)


def unmeasured(names: tuple[str, str], selection: Selection, notes: tuple[str, ...]) -> RecordComparison:
    """Return the comparison of two builds of which no case was measured, because none has changed."""
    rows = [row for one in selection.cases for row in _Rows(names, _USUAL).of(one)]
    return RecordComparison(names, tuple(rows), Control(), notes, selection=selection)


@dataclass(frozen=True)
class _Rows:
    """Makes the rows of cases without times: the names of the sides, and the metric of the other rows."""

    names: tuple[str, str]
    metric: str

    def of(self, one: SelectedCase) -> Iterator[ComparedCase]:
        """Yield the row of a case; none of one that was to be measured and has no result."""
        if one.role == "does not build":
            reason = f"{self.names[one.broken == 'b']} does not build: {one.problem}"
            gravity = "bad" if one.broken == "b" else "note"
            yield ComparedCase(one.case, self.metric, "not compared", reason, gravity=gravity)
        elif one.role in ("same machine code", "control"):
            yield ComparedCase(one.case, self.metric, UNMEASURED)


def _doubts(comparison: RecordComparison, records: Records) -> list[str]:
    around = [changes for changes in [software_changes(*records)] if changes]
    kernels = {case.kernel for case in records[1].cases}
    if any(is_other_unit(*records, kernel) for kernel in kernels):
        around.append("another unit of the device")
    return shortcut_doubts(clock_shift(_control(comparison, records)), around)


def _control(comparison: RecordComparison, records: Records) -> Iterator[tuple[Measurement, Measurement]]:
    """Yield the measurements of the cases of identical machine code."""
    for one in comparison.cases:
        sides = [record.case(one.case) for record in records] if one.identical else []
        pair = [found for case in sides if case and (found := valid(case, one.metric))]
        if len(pair) == 2:
            yield pair[0], pair[1]
