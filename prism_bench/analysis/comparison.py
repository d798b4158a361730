"""Two records side by side, case by case: what became slower or faster, and whether the comparison can be trusted.

Cases whose machine code and launches are identical on both sides must come out the same. Their times are a control: by
what they differ beyond their errors, the machine changed between the sides, and every error is widened by it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from prism_bench.analysis.comparable import require_comparable
from prism_bench.analysis.control import Control, control_of, failed_control
from prism_bench.analysis.findings import Finding, exit_code, metric_words, value_text
from prism_bench.analysis.medians import cycles, medians
from prism_bench.analysis.noise import Noise
from prism_bench.analysis.rivals import clock_of
from prism_bench.analysis.verdict import CHANGED, RULES, Judgement, Pair, Rules, judged
from prism_bench.metric import ELSEWHERE, MEASURED
from prism_bench.run_record import CaseResult, RunRecord
from prism_bench.units import share_text

LAUNCHED = ("sass", "plan", "launches", "shared_bytes")  # what makes code and its launches the same


@dataclass(frozen=True)
class Compared:
    """One case on both sides. `judgement` is that of the times alone; `verdict` follows it unless the code is
    `identical`, and is `not compared` where a side has no valid times. `seconds` are the medians of A and B.
    """

    case: str
    metric: str
    verdict: str
    reason: str | None = None
    judgement: Judgement | None = None
    seconds: tuple[float | None, float | None] = (None, None)
    identical: bool = False
    gravity: str = "note"


@dataclass(frozen=True)
class Comparison:
    """Every case of both records, the control, and what is to be known about the two records (`notes`).

    `complete` is False where measuring them was cut short.
    """

    names: tuple[str, str]
    cases: tuple[Compared, ...]
    control: Control
    notes: tuple[str, ...] = ()
    complete: bool = True

    @property
    def answered(self) -> bool:
        """Whether any case could be judged at all."""
        return any(one.judgement for one in self.cases)

    @property
    def exit_code(self) -> int:
        """What a command ends with for it: that of its findings, 2 where nothing or not everything could be judged."""
        return exit_code(comparison_findings(self)) or (0 if self.answered and self.complete else 2)

    def counts(self) -> Mapping[str, int]:
        """How many cases have each verdict, the verdicts in the order in which they matter."""
        words = [one.verdict for one in self.cases]
        return {word: words.count(word) for word in ("slower", "faster", "same", "inconclusive", "not compared")}


def by_name(case: CaseResult) -> str:
    """What two records of the same catalogue are paired by."""
    return case.name


def by_workload(case: CaseResult) -> str:
    """What a kernel and its variant are paired by."""
    return f"{case.kernel}[{case.workload_text}]"


def compare(
    a: RunRecord,
    b: RunRecord,
    noise: Noise | None = None,
    rules: Rules = RULES,
    *,
    metric: str | None = None,
    key: Callable[[CaseResult], str] = by_name,
    names: tuple[str, str] = ("A", "B"),
) -> Comparison:
    """B against A in `metric` (cold time, or wall time where the cases ran on a CPU only), paired by `key`.

    ResultsError where backend, device or protocol differ: such times have nothing to say about each other.
    """
    notes = require_comparable(a, b, names)
    if noise and (reason := noise.misfit(b)):
        noise, notes = None, [*notes, reason]
    sides = [{key(case): case for case in record.cases if not case.is_edge} for record in (a, b)]
    notes += _alone(sides, names)
    shared = {name: (case, sides[1][name]) for name, case in sides[0].items() if name in sides[1]}
    rows = [_row(name, pair, metric, names) for name, pair in shared.items()]
    pairs = {row.case: _pair(row, both, noise) for row, both in rows if row.verdict != "not compared"}
    found, control = _judged(rows, pairs, rules)
    return Comparison(names, tuple(found), control, tuple(notes))


def _alone(sides, names):
    """For each side, which cases the other one has not."""
    for name, mine, theirs in zip(names, sides, sides[::-1], strict=True):
        alone = [case for case in mine if case not in theirs]
        if alone:
            few = ", ".join(alone[:3]) + (" ..." if len(alone) > 3 else "")
            yield f"only {name} has {len(alone)} case{'s' if len(alone) > 1 else ''}: {few}"


def _row(name, pair, metric, names):
    metric = metric or clock_of(next((case for case in pair if case.measurements), pair[0]))
    row = Compared(name, metric, "inconclusive")
    for case, side in zip(pair, names, strict=True):
        reason = missing(case, metric, side)
        if reason:
            broken = case is pair[1] and case.status not in ("ok", "skipped")
            return replace(row, verdict="not compared", reason=reason, gravity="bad" if broken else "note"), pair
    seconds = tuple(case.measurement(metric).median for case in pair)
    return replace(row, seconds=seconds, identical=_identical(metric, *pair)), pair


def missing(case: CaseResult, metric: str, side: str) -> str | None:
    """Why the case has no time on that side; None where it has one."""
    if case.status != "ok":
        return f"{case.status} in {side}: {case.reason or 'the record gives no reason'}"
    found = case.measurement(metric)
    if found is None or not found.samples:
        return f"{side} has no {metric_words(metric)}" + (f": {found.reason}" if found and found.reason else "")
    return None if found.valid else f"{side}'s {metric_words(metric)} is not to be trusted: {found.reason}"


def _identical(metric, a, b):
    """Whether both sides ran the same machine code in the same launches; only the device's own times follow from it.

    What one of the records does not tell, as an older one its launches, speaks against nothing.
    """
    told = [name for name in LAUNCHED if name in a.code and name in b.code]
    known = on_device(metric) and bool(a.code.get("sass")) and "sass" in told
    return known and all(a.code[name] == b.code[name] for name in told)


def on_device(metric: str) -> bool:
    """Whether the device's own clock read it."""
    return {**MEASURED, **ELSEWHERE}[metric].clock in ("events", "graph")


def _pair(row, both, noise):
    sides = [case.measurement(row.metric) for case in both]
    clocked = tuple(cycles(side) for side in sides)
    known = noise.spread(row.case, row.metric) if noise else None
    times = [medians(side.processes) for side in sides]
    return Pair(*times, clocked if all(clocked) else None, known)


def _judged(rows, pairs, rules):
    """Every row with its verdict, and the control that the rows of identical code make."""
    first = dict(zip(pairs, judged(list(pairs.values()), rules), strict=True))
    identical = [row.case for row, _ in rows if row.identical and rules.control]
    control = control_of({case: first[case] for case in identical})
    final = first
    if control.widening > 1:
        final = dict(zip(pairs, judged(list(pairs.values()), rules, control.widening), strict=True))
    return [_decided(row, final.get(row.case), row.case in identical) for row, _ in rows], control


def _decided(row, judgement, control):
    if judgement is None:
        return row
    verdict, reason = judgement.verdict, judgement.reason
    if control:
        reason = f"identical machine code; its times alone say {verdict}" if verdict != "same" else None
        verdict = "same"
    gravity = "bad" if verdict == "slower" else "note"
    return replace(row, verdict=verdict, reason=reason, judgement=judgement, identical=control, gravity=gravity)


def comparison_findings(comparison: Comparison) -> list[Finding]:
    """What the comparison has to say, the gravest first: broken and slower cases, a failed control, faster cases."""
    found = [_finding(one, comparison.names) for one in comparison.cases if one.verdict in CHANGED]
    found += [Finding(one.gravity, "not compared", one.case, one.reason, one.metric)
              for one in comparison.cases if one.verdict == "not compared"]  # fmt: skip
    if comparison.control.excess:
        found.append(failed_control(comparison.control))
    found += [Finding("note", "records", None, note) for note in comparison.notes]
    return sorted(found, key=lambda one: ("bad", "untrusted", "note").index(one.gravity))


def _finding(one, names):
    low, high = one.judgement.estimate.interval()
    was, now = (value_text(one.metric, seconds) for seconds in one.seconds)
    ratio = one.judgement.estimate.ratio
    message = (
        f"{metric_words(one.metric)} {now} in {names[1]}, {was} in {names[0]}: {ratio:.3f}x ({low:.3f} to {high:.3f}), "
        f"floor {share_text(one.judgement.floor)}"
    )
    return Finding(one.gravity, one.verdict, one.case, message, one.metric, ratio)
