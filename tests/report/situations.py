"""Five planted situations: a regression, an improvement, an untrusted run, a wrong kernel, and nothing at all."""

from dataclasses import replace
from pathlib import Path

from prism_bench.record import store
from prism_bench.record.run_record import RunRecord
from tests.analysis.measured_pairs import records

SITUATIONS = ("regression", "improvement", "untrusted", "wrong", "nothing")
PLANTED = "k3"
_COUNT = 14
_DIFFERENT = "y[33] is 0.5, the reference 1.25"


def planted(situation: str) -> tuple[RunRecord, RunRecord]:
    """Return a record and a later one of the same kernels, whose kernel PLANTED is in that situation."""
    ratios = [1.0] * _COUNT
    ratios[3] = {"regression": 1.2, "improvement": 0.8}.get(situation, 1.0)
    old, new = records(ratios, commit="b" * 40, created="2026-11-21T22:14:05")
    changed = {"untrusted": _untrusted, "wrong": _wrong}.get(situation)
    if changed:
        new = replace(new, cases=tuple(changed(case) if case.kernel == PLANTED else case for case in new.cases))
    same = {case.name: case for case in old.cases if case.kernel != PLANTED or situation == "nothing"}
    # The machine code of the other kernels is that of before.
    return old, replace(
        new,
        cases=tuple(replace(case, code=same[case.name].code) if case.name in same else case for case in new.cases),
    )


def write(situation: str, runs: Path) -> tuple[Path, Path]:
    """Write both records below `runs`, and return their paths."""
    old, new = planted(situation)
    return store.add_once(old, runs), store.add_once(new, runs)


def _untrusted(case):
    (measured,) = case.measurements
    reason = "below the time of an empty launch"
    return replace(case, measurements=(replace(measured, valid=False, reason=reason),))


def _wrong(case):
    return replace(case, status="wrong", reason=_DIFFERENT, measurements=())
