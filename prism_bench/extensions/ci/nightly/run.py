"""A nightly run from its lock to its pages: fetch the history, measure, judge, publish."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from rich.live import Live
from rich.table import Table

from prism_bench.analysis.gate.checks import LAST_PART, Gate, judged
from prism_bench.catalogue import Catalogue
from prism_bench.cli import options
from prism_bench.cli.measuring import line_seconds
from prism_bench.errors import PrismBenchError, ResultsError
from prism_bench.extensions.ci.asv_runs import hand_over, project_at
from prism_bench.extensions.ci.keeping import checkout_of, fetch, history_target, keep
from prism_bench.extensions.ci.nightly import (
    NightlyMeasurement,
    NightlyPlan,
    PartState,
    locked,
    measured,
    measured_again,
    new_logs,
)
from prism_bench.report import gate as delivery
from prism_bench.report.gate import write_files
from prism_bench.report.site import build_site
from prism_bench.units import count_text, duration_text

_FAILED = 2  # no measurement or judgement, or the pages or the history could not be written


@dataclass(frozen=True)
class NightlyOutput:
    """Output of a nightly run: sentences, the progress of its parts, and the gate's findings."""

    tell: Callable[[str], None]
    progress: Callable[[], AbstractContextManager[Callable[[Sequence[PartState]], object]]]
    gate: Callable[[Gate], object]


@dataclass(frozen=True)
class NightlyResult:
    """Exit code of a nightly run and the paths of its results; None for results that were not made."""

    exit_code: int
    logs: Path
    record: Path | None = None
    gate: Gate | None = None
    page: Path | None = None
    asv: Path | None = None
    interrupted: bool = False

    def with_problem(self) -> "NightlyResult":
        """Return the result after a step failed: a non-zero exit code stays, 0 becomes 2."""
        return replace(self, exit_code=self.exit_code or _FAILED)


def nightly(plan: NightlyPlan, catalogue: Catalogue, output: NightlyOutput) -> NightlyResult:
    """Carry out the plan under the lock of this machine and repository.

    Cases that the check could not decide are measured again first. The exit code is that of the gate, else the largest
    of the runs, else `_FAILED` if a later step failed. Raise UsageError if another nightly run holds the lock,
    ResultsError if there is no record; the latter is sent as an alert. After a signal the record is kept and the other
    steps are skipped.
    """
    with locked(plan.root):
        logs = new_logs(plan.root)
        output.tell(f"nightly: logs in {plan.shown(logs)}")
        with delivery.failures(plan.alert_state, output.tell):
            measurement = _measured(plan, logs, catalogue, output)
        result = NightlyResult(measurement.code, logs, measurement.record, interrupted=measurement.interrupted)
        if measurement.record is None or measurement.interrupted:
            return replace(result, exit_code=_FAILED)
        result = _judged(result, measurement.record, plan, catalogue, output)
        result = _published(result, measurement.record, plan, catalogue, output)
        return _kept(result, plan, output) if plan.history else result


def _measured(plan: NightlyPlan, logs: Path, catalogue: Catalogue, output: NightlyOutput) -> NightlyMeasurement:
    if plan.history:
        target = history_target(plan.history)
        fetched = fetch(target, checkout_of(target, plan.runs))
        output.tell(
            f"nightly: {len(fetched.written)} of {count_text(fetched.files, 'file')} fetched from {target.address}"
        )
    with output.progress() as progress:
        measurement = measured(plan, logs, progress)
    with output.progress() as progress:
        measurement = measured_again(
            plan,
            measurement,
            logs,
            lambda record: _undecided(record, plan, catalogue),
            progress,
            lambda sentence: output.tell(f"nightly: {sentence}"),
        )
    for problem in measurement.problems:
        output.tell(f"nightly: {problem}")
    if measurement.record is None and not measurement.interrupted:
        raise ResultsError("nightly: no record was written")
    return measurement


def _undecided(record: Path, plan: NightlyPlan, catalogue: Catalogue) -> set[str]:
    """Return the cases that the comparison with the last record could not decide, an empty set if the gate fails."""
    try:
        gate = judged(record, catalogue, plan.runs, plan.noise)
    except PrismBenchError:
        return set()  # the check reports why
    last = [check for part in gate.parts if part.name == LAST_PART for check in part.checks]
    return {check.case for check in last if check.case and check.answer == "inconclusive"}


def _judged(
    result: NightlyResult, record: Path, plan: NightlyPlan, catalogue: Catalogue, output: NightlyOutput
) -> NightlyResult:
    """Check the record and send alerts; the run's exit code counts if the gate finds nothing."""
    files = plan.site / "check.md", plan.site / "check.xml"
    for path in files:
        path.unlink(missing_ok=True)  # of the run before
    try:
        with delivery.failures(plan.alert_state, output.tell):
            gate = judged(record, catalogue, plan.runs, plan.noise)
            output.gate(gate)
            write_files(gate, *files)
    except PrismBenchError as error:
        output.tell(f"nightly: {error}")
        return replace(result, exit_code=error.exit_code)
    delivery.send(gate, plan.alert_state, output.tell)
    if gate.exit_code == 0 and result.exit_code:
        output.tell(f"nightly: the run ended with {result.exit_code}")
    return replace(result, gate=gate, exit_code=gate.exit_code or result.exit_code)


def _published(
    result: NightlyResult, record: Path, plan: NightlyPlan, catalogue: Catalogue, output: NightlyOutput
) -> NightlyResult:
    """Write the site, and asv's pages in a project that uses asv with our suites."""
    try:
        result = replace(result, page=build_site(plan.runs, plan.site, catalogue, record).page)
        project = project_at(plan.root, plan.runs.parent, plan.site) if plan.asv else None
        if project:
            result = replace(result, asv=hand_over(project, record, result.logs / "asv.log"))
    except (PrismBenchError, OSError) as error:
        output.tell(f"nightly: the pages were not made: {error}; logs in {plan.shown(result.logs)}")
        return result.with_problem()
    return result


def _kept(result: NightlyResult, plan: NightlyPlan, output: NightlyOutput) -> NightlyResult:
    target = history_target(plan.history)
    try:
        kept = keep(target, checkout_of(target, plan.runs))
    except PrismBenchError as error:
        output.tell(f"nightly: the history was not kept: {error}")
        return result.with_problem()
    output.tell(f"nightly: {count_text(len(kept.written), 'file')} kept at {target.address}")
    return result


# Progress on standard error: a line for each part, live on a terminal, at intervals elsewhere.

FIRST_SECONDS = (2.0, 10.0, 30.0)  # soon at first, so that the user sees that it works


@contextmanager
def parts_progress() -> Iterator[Callable[[Sequence[PartState]], None]]:
    """Yield a function that shows the states of the parts of a nightly run."""
    console = options.err()
    if not console.is_terminal:
        yield _lines()
        return
    with Live(console=console, transient=True, auto_refresh=False) as live:
        yield lambda states: live.update(_table(states), refresh=True)


def _table(states: Sequence[PartState]) -> Table:
    grid = Table.grid(padding=(0, 1), expand=True)
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(no_wrap=True, overflow="ellipsis", ratio=1)  # cut first: which part it is and since when stay
    for state in states:
        grid.add_row(f"part {state.number} of {state.count}", duration_text(state.seconds), _status(state))
    return grid


def _lines() -> Callable[[Sequence[PartState]], None]:
    """Return a function that prints every part after FIRST_SECONDS, then once in `line_seconds()`."""
    interval = line_seconds()
    due = iter([*(seconds for seconds in FIRST_SECONDS if seconds < interval), interval])
    following = next(due)

    def show(states: Sequence[PartState]) -> None:
        nonlocal following
        now = max(state.seconds for state in states)
        if now < following:
            return
        following = next(due, following + interval)
        for state in states:
            options.remark(f"nightly: {now:.0f} s: part {state.number} of {state.count}: {_status(state)}")

    return show


def _status(state: PartState) -> str:
    if state.code is not None:
        return f"ended with {state.code}"
    return state.line or "starting"
