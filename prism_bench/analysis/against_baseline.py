"""The gate's questions against the baseline: is anything slower, by statistics and by a plain factor?"""

from dataclasses import replace
from pathlib import Path

from prism_bench import store
from prism_bench.analysis.checks import WELL, GateCheck, of_finding
from prism_bench.analysis.comparable import device_of
from prism_bench.analysis.comparison import ComparedCase, RecordComparison, compare, comparison_findings
from prism_bench.analysis.findings import metric_words
from prism_bench.analysis.gate import GatePart
from prism_bench.analysis.noise import Noise
from prism_bench.analysis.reading import Reading
from prism_bench.errors import ResultsError
from prism_bench.units import share_text

NAME = "baseline"
_ANSWERS = {"not compared": "unmeasured"}


def baseline_part(reading: Reading, path: Path, runs: Path, noise: Noise | None = None) -> GatePart:
    """The part of the gate on the record at `path`; without a baseline nothing is met, and the part says why.

    The baseline's own record, where it is still kept, is compared with this one; a ResultsError where the two do not
    compare. Where it is gone, only the rule of thumb is asked.
    """
    baseline = reading.promises.baseline
    if baseline is None:
        return GatePart(NAME, silent=f"no baseline for {device_of(reading.record)}: 'prism-bench baseline' makes one")
    if Path(baseline.record).name == path.name:
        return GatePart(NAME, silent="this record is the baseline itself")
    kept, reason = _record_of(baseline, runs, reading.record.machine.get("id"))
    compared = (
        compared_checks(compare(kept, reading.record, noise, names=("the baseline", "this record"))) if kept else []
    )
    checks = [*compared, *_degraded(reading, baseline, compared)]
    return GatePart(NAME, tuple(replace(check, against=baseline.commit or None) for check in checks), reason)


def _record_of(baseline, runs, machine):
    """The baseline's record, from where it was told to be or from the machine's records; why not, where it is gone."""
    name = Path(baseline.record).name
    for place in (Path(baseline.record), runs / str(machine) / name):
        if place.is_file():
            try:
                return store.read(place), None
            except ResultsError as error:
                return None, f"the baseline's record cannot be read ({error}); only its medians were asked"
    return None, f"the baseline's record {name} is not kept here; only its medians were asked"


def compared_checks(comparison: RecordComparison) -> list[GateCheck]:
    """A check for each case of the comparison, and what is to be known of the two records."""
    findings = comparison_findings(comparison)
    told = {(one.case, one.metric): one.message for one in findings if one.case}
    checks = [_check(one, told.get((one.case, one.metric), "")) for one in comparison.cases]
    return checks + [of_finding(one) for one in findings if not one.case]


def _check(one: ComparedCase, message: str) -> GateCheck:
    """A case without a time on one side is unmeasured here: that it went wrong is the run's own answer."""
    judgement = one.judgement
    if one.verdict == "same":
        message = one.reason or ""
    if one.verdict == "inconclusive":
        message = one.reason or f"a change below {share_text(judgement.floor)} cannot be told from nothing"
    gravity = {"slower": "bad", "faster": WELL, "same": WELL}.get(one.verdict, "note")
    ratio = judgement.estimate.ratio if judgement else None
    return GateCheck(one.case, one.metric, _ANSWERS.get(one.verdict, one.verdict), gravity, message, ratio)


def _degraded(reading, baseline, compared):
    """Return what takes longer than the factor allows; what was found slower already is not reported twice."""
    slower = {(check.case, check.metric) for check in compared if check.answer == "slower"}
    asked = [one for one in reading.slowdowns if (one.case, one.metric) not in slower]
    broken = {(one.case, one.metric): of_finding(one) for one in reading.findings if one.kind == "degraded"}
    here = [broken.get((one.case, one.metric)) or _steady(one, baseline) for one in asked]
    known = {case.name for case in reading.record.cases} | {check.case for check in compared}
    gone = dict.fromkeys(case for case, _ in baseline.seconds if case not in known)
    return here + [GateCheck(case, None, "unmeasured", "note", "in the baseline, not in this record") for case in gone]


def _steady(verdict, baseline):
    if verdict.kept is None:
        kept = (verdict.case, verdict.metric) in baseline.seconds
        message = (
            f"{metric_words(verdict.metric)} {'is in the baseline and was not measured' if kept else 'has no baseline'}"
        )
        return GateCheck(verdict.case, verdict.metric, "unmeasured", "note", message)
    return GateCheck(verdict.case, verdict.metric, "steady", ratio=verdict.ratio)
