"""The measuring step of a nightly run: a process for each GPU, and the records of the parts as one."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from prism_bench.errors import PrismBenchError
from prism_bench.extensions.ci.nightly.child import NightlyChild, started
from prism_bench.extensions.ci.nightly.plan import NightlyPlan
from prism_bench.io import interrupts
from prism_bench.record import store
from prism_bench.record.store.upkeep import add_record
from prism_bench.run import merge

_LOOK_SECONDS = 0.2
_LARGEST = 3  # exit codes above it, and those of signals, are not those of a run: they count as 2
_TAIL = 3  # lines of the log of a part that was lost


@dataclass(frozen=True)
class PartState:
    """How far a part is: its number of `count`, seconds since it began, its last line, and its exit code at the end."""

    number: int
    count: int
    seconds: float
    line: str
    code: int | None


@dataclass(frozen=True)
class NightlyMeasurement:
    """What was measured: the largest exit code of the parts, the record if there is one, and what was lost."""

    code: int
    record: Path | None
    interrupted: bool
    problems: tuple[str, ...] = ()


Report = Callable[[Sequence[PartState]], object]


def measured(plan: NightlyPlan, logs: Path, report: Report) -> NightlyMeasurement:
    """Measure the plan and return its record; `report` gets the state of the parts several times a second.

    A signal ends the parts in order, and what they measured so far is kept as a record that is marked incomplete.
    """
    parts = [
        started(plan.run_words(part, _record(logs, part)), logs / f"run-{part}", device)
        for part, device in enumerate(plan.devices[: plan.gpus] if plan.gpus > 1 else [None], 1)
    ]
    with interrupts.held():
        interrupted = watched(parts, report)
        codes = [part.end() for part in parts]
        found = _one_record(plan, logs, parts, interrupted=interrupted)
        return replace(found, code=max(found.code, worst_code(codes)))


def watched(parts: Sequence[NightlyChild], report: Report) -> bool:
    """Report until all parts have ended; return whether a signal came first. Any error ends the parts as well."""
    try:
        with interrupts.allowed():
            while any(part.code is None for part in parts):
                report(_states(parts))
                time.sleep(_LOOK_SECONDS)
    except KeyboardInterrupt:
        return True
    except BaseException:
        for part in parts:
            part.end()
        raise
    return False


def _states(parts: Sequence[NightlyChild]) -> list[PartState]:
    now = time.monotonic()
    return [
        PartState(number, len(parts), now - part.began, part.line, part.code) for number, part in enumerate(parts, 1)
    ]


def worst_code(codes: Iterable[int]) -> int:
    """Return the largest exit code of the parts, 0 without one; what is none of a run's counts as 2."""
    return max((code if 0 <= code <= _LARGEST else 2 for code in codes), default=0)


def _record(logs: Path, part: int) -> Path:
    return logs / f"{part}.json.gz"


def _one_record(
    plan: NightlyPlan, logs: Path, parts: Sequence[NightlyChild], *, interrupted: bool
) -> NightlyMeasurement:
    """Return the record of one part, or that of several merged; without one where a part is lost."""
    if plan.gpus == 1:
        path = _named(parts[0])
        lost = () if path else lost_parts(parts)
        return NightlyMeasurement(0, path, interrupted, lost)
    kept = [path for part in range(1, plan.gpus + 1) if (path := _record(logs, part)).is_file()]
    lost = lost_parts(part for i, part in enumerate(parts, 1) if not _record(logs, i).is_file())
    if not kept or (lost and not interrupted):
        return NightlyMeasurement(2, None, interrupted, lost)
    try:
        return NightlyMeasurement(0, _merged(plan, kept), interrupted, lost)
    except PrismBenchError as error:
        return NightlyMeasurement(error.exit_code, None, interrupted, (*lost, f"the parts cannot be merged: {error}"))


def _named(part: NightlyChild) -> Path | None:
    """Return the record that a part's output names."""
    lines = part.output.read_text(errors="replace").splitlines()
    return next((Path(line.removeprefix("record: ")) for line in lines if line.startswith("record: ")), None)


def _merged(plan: NightlyPlan, kept: Sequence[Path]) -> Path:
    """Write one record of the parts; of a single one that is left after an interrupt, marked incomplete."""
    records = [(str(path), store.read(path)) for path in kept]
    whole = merge(records) if len(records) > 1 else records[0][1]
    complete = whole.complete and len(records) == plan.gpus
    path = store.RecordPlace(plan.runs).save(replace(whole, complete=complete))
    add_record(path, plan.runs)
    return path


def lost_parts(parts: Iterable[NightlyChild]) -> tuple[str, ...]:
    """Return a sentence for each part without a record, with the end of its log."""
    return tuple(f"{part.log.stem} was not measured ({part.log}): {_tail(part.log)}" for part in parts)


def _tail(path: Path) -> str:
    lines = [line.strip() for line in path.read_text(errors="replace").splitlines() if line.strip()]
    return " | ".join(lines[-_TAIL:]) or "it printed nothing"
