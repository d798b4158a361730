"""Gate: checks of the newest record (did each case run, is each promise kept), and whether it may pass."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from prism_bench.analysis.findings import GRAVITY, Finding, metric_words, value_text
from prism_bench.analysis.gate.budgets import BudgetVerdict
from prism_bench.analysis.reading import Reading
from prism_bench.record.run_record import STATUSES, CaseResult, RunRecord
from prism_bench.units import count_text

CheckGravity = Literal["bad", "untrusted", "note", "well"]
WELL: Final = "well"
# Notes that answer a question; every other note is a remark without an answer.
_ANSWERS = ("step",)
UNTIMED = "untimed"
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
    untimed = [GateCheck(None, None, UNTIMED, "note", words) for words in _untimed(reading)]
    return cases + [of_finding(one) for one in others] + untimed


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


def of_finding(finding: Finding) -> GateCheck:
    """Return the check that a finding answers."""
    return GateCheck(finding.case, finding.metric, finding.kind, finding.gravity, finding.message, finding.ratio)


def of_budgets(reading: Reading) -> list[GateCheck]:
    """Return a check of each promise on each case: missed, undecided, expired, met, or unmeasured without a run."""
    decided = [
        of_finding(finding) for finding in reading.findings if finding.kind in ("missed", "undecided", "expired")
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


def states(record: RunRecord) -> dict[str | None, str]:
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
        return next((check.message for check in self.checks if check.answer == UNTIMED), None)


def gate(reading: Reading, path: Path, more: Sequence[GatePart] = ()) -> Gate:
    """Return the gate on a reading: the run itself, its budgets, and the parts that need more than one record."""
    budgets = of_budgets(reading)
    silent = None if budgets else "no budget applies to a case of this record"
    run = GatePart("run", tuple(of_run(reading)))
    if not run.answered:
        run = replace(run, silent="no kernel was verified or timed, except the machine's own")
    return Gate(reading.record, path, (run, GatePart("budgets", tuple(budgets), silent), *more))
