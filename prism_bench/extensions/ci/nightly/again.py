"""The second measuring step of a nightly run: more processes for the cases that the gate could not decide.

A round measures them again on the GPU that measured them before, and the record gets the processes of both. The rounds
are a sequential design: the record has in its protocol how often it may be judged (`looks`), so that whatever judges it
later asks for as much evidence as the nightly run did.
"""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from prism_bench.analysis.compare.comparable import LAUNCHED
from prism_bench.analysis.compare.verdict import nightly_looks
from prism_bench.extensions.ci.nightly.child import NightlyChild, started
from prism_bench.extensions.ci.nightly.measuring import NightlyMeasurement, Report, lost_parts, watched, worst_code
from prism_bench.extensions.ci.nightly.plan import NightlyPlan
from prism_bench.io import interrupts
from prism_bench.record import store
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.record.store.upkeep import add_record
from prism_bench.run.record_builder import combined
from prism_bench.units import count_text

MOST_SECONDS = 1800.0  # after which no further round begins

Undecided = Callable[[Path], Collection[str]]  # names of the cases of a record that more processes may decide


def measured_again(
    plan: NightlyPlan, found: NightlyMeasurement, logs: Path, undecided: Undecided, report: Report,
    tell: Callable[[str], object],
) -> NightlyMeasurement:  # fmt: skip
    """Measure the undecided cases of the record in more processes until they are decided; return what came of it.

    The record is replaced, round by round. No round begins after MOST_SECONDS. A part that cannot measure is a problem
    and ends the rounds; a signal does as well, and what was measured before it is kept.
    """
    path, began = found.record, time.monotonic()
    if path is None or found.interrupted:
        return found
    looks = nightly_looks(plan.processes)
    record = store.read(path)
    _keep(replace(record, protocol={**record.protocol, "looks": len(looks)}), path, plan)
    for number, (before, processes) in enumerate(zip(looks, looks[1:], strict=False), 1):
        cases = sorted(undecided(path))
        if not cases or time.monotonic() - began > MOST_SECONDS:
            break
        more = processes - before
        tell(
            f"{count_text(len(cases), 'undecided case')}: measured again in {count_text(more, 'process', 'processes')}"
        )
        with interrupts.held():
            round_ = _round(plan, path, logs / f"again-{number}", cases, more, report)
        found = replace(
            found, code=max(found.code, round_.code), interrupted=round_.interrupted,
            problems=(*found.problems, *round_.problems),
        )  # fmt: skip
        if round_.interrupted or round_.problems:
            break
    return found


def _round(
    plan: NightlyPlan, path: Path, stem: Path, cases: Sequence[str], processes: int, report: Report
) -> NightlyMeasurement:
    """Measure the cases in that many more processes, and put these into the record at `path`."""
    record = store.read(path)
    parts = [_started(plan, stem, part, own, processes) for part, own in _shares(plan, record, cases)]
    interrupted = watched(parts, report)
    code = worst_code(part.end() for part in parts)
    outputs = [part.log.with_suffix(".json.gz") for part in parts]
    measured = [store.read(output) for output in outputs if output.is_file()]
    lost = lost_parts(part for part, output in zip(parts, outputs, strict=True) if not output.is_file())
    if measured:
        _keep(grown(record, measured), path, plan)
    return NightlyMeasurement(code, path, interrupted, () if interrupted else lost)


def _shares(plan: NightlyPlan, record: RunRecord, cases: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the cases of each part that measured some of them, so that they stay on its GPU."""
    if plan.gpus == 1:
        yield 1, list(cases)
        return
    kernels = {case.name: case.kernel for case in record.cases}
    for number, part in enumerate(record.parts, 1):
        own = [name for name in cases if kernels.get(name) in part["kernels"]]
        if own:
            yield number, own


def _started(plan: NightlyPlan, stem: Path, part: int, cases: Sequence[str], processes: int) -> NightlyChild:
    own = stem.with_name(f"{stem.name}-{part}")
    device = plan.devices[part - 1] if plan.gpus > 1 else None
    return started(plan.again_words(own.with_suffix(".json.gz"), cases, processes), own, device)


def _keep(record: RunRecord, path: Path, plan: NightlyPlan) -> None:
    store.save(record, path)
    add_record(path, plan.runs)


def grown(record: RunRecord, more: Sequence[RunRecord]) -> RunRecord:
    """Return the record with the processes that `more` measured of its cases: those of the same code and board."""
    again = {case.name: (other, case) for other in more for case in other.cases if not case.ceiling}

    def joined(case: CaseResult) -> CaseResult:
        other, result = again.get(case.name, (record, None))
        if result is None or other.board_of(result) != record.board_of(case) or not _is_alike(case, result):
            return case
        return combined([case, replace(result, board=case.board)])

    return replace(
        record,
        cases=tuple(map(joined, record.cases)),
        duration=round(record.duration + max((one.duration for one in more), default=0.0), 1),
        monitor=(*record.monitor, *(entry for one in more for entry in one.monitor)),
    )


def _is_alike(case: CaseResult, other: CaseResult) -> bool:
    return all(case.code.get(name) == other.code.get(name) for name in (*LAUNCHED, "source"))
