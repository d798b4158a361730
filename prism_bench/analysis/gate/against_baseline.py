"""Gate checks against the baseline: what is slower, by statistics and by a plain factor."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from prism_bench.analysis.boards.known import KnownBoards
from prism_bench.analysis.compare.comparable import device_of
from prism_bench.analysis.compare.comparison import ComparedCase, RecordComparison, compare, comparison_findings
from prism_bench.analysis.compare.earlier_runs import Known
from prism_bench.analysis.compare.noise import Noise
from prism_bench.analysis.compare.verdict import RULES
from prism_bench.analysis.findings import metric_words
from prism_bench.analysis.gate.baselines import Baseline, Slowdown
from prism_bench.analysis.gate.checks import WELL, CheckGravity, GateCheck, GatePart, of_finding
from prism_bench.analysis.reading import Reading
from prism_bench.errors import ResultsError
from prism_bench.record import store
from prism_bench.record.raw_source import is_present
from prism_bench.record.run_record import RunRecord
from prism_bench.units import share_text

NAME = "baseline"
_ANSWERS = {"not compared": "unmeasured"}


def baseline_part(
    reading: Reading, path: Path, runs: Path, noise: Noise | None = None, boards: KnownBoards | None = None,
    earlier: Known | None = None,
) -> GatePart:  # fmt: skip
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
    hosts = [of_finding(one) for one in reading.findings if one.kind == "host"]
    checks = [*compared, *_degraded(reading, baseline, compared), *hosts]
    return GatePart(NAME, tuple(replace(check, against=baseline.commit or None) for check in checks), reason)


def _compared(
    kept: RunRecord, record: RunRecord, noise: Noise | None, boards: KnownBoards | None, earlier: Known | None
) -> list[GateCheck]:
    names = "the baseline", "this record"
    rules = replace(RULES, looks=int(record.protocol.get("looks", 1)))
    return compared_checks(compare(kept, record, noise, rules, names=names, boards=boards, earlier=earlier))


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


def compared_checks(comparison: RecordComparison) -> list[GateCheck]:
    """Return a check for each case of the comparison, and the notes on the two records."""
    findings = comparison_findings(comparison)
    messages = {(one.case, one.metric): one.message for one in findings if one.case}
    checks = [_check(one, messages.get((one.case, one.metric), "")) for one in comparison.cases]
    return checks + [of_finding(one) for one in findings if not one.case]


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
    return GateCheck(one.case, one.metric, _ANSWERS.get(one.verdict, one.verdict), gravity, message, ratio)


def _degraded(reading: Reading, baseline: Baseline, compared: Sequence[GateCheck]) -> list[GateCheck]:
    """Return what takes longer than the factor allows; what was found slower already is not reported twice."""
    slower = {(check.case, check.metric) for check in compared if check.answer == "slower"}
    others = [one for one in reading.slowdowns if (one.case, one.metric) not in slower]
    broken = {(one.case, one.metric): of_finding(one) for one in reading.findings if one.kind == "degraded"}
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
