"""Command that reproduces a finding, for a shell in a clean checkout on the machine of the record."""

import shlex
from collections.abc import Sequence

from prism_bench.analysis.gate.checks import GateCheck
from prism_bench.analysis.summary import implementation
from prism_bench.run_record import CaseResult, RunRecord
from prism_bench.workload import LABELS

# Answers that verification alone shows; everything else needs a measurement.
_VERIFIED = ("wrong", "crashed", "timed out", "failed")
_SHORT = 12  # digits of a commit
_MOST = 8


def command(record: RunRecord, check: GateCheck) -> str:
    """Return the command: compare with the check's other commit, else check out its own and run or verify its cases."""
    verb = "verify" if check.answer in _VERIFIED else "run"
    commit = (record.commit or "")[:_SHORT]
    if check.against and commit:
        return shlex.join(["prism-bench", "compare", check.against[:_SHORT], commit, *_choice(record, check)])
    checkout = f"git checkout {commit} && " if commit else ""
    return checkout + shlex.join(["prism-bench", verb, *_choice(record, check)])


def _choice(record: RunRecord, check: GateCheck) -> list[str]:
    """Return the options that choose backend, catalogue and cases."""
    names = check.cases or ((check.case,) if check.case else ())
    found = [case for name in names if (case := record.case(name))]
    options = [("--backend", record.backend)]
    options += [("--catalogue", record.catalogue)] if record.catalogue != "built-in" else []
    options += [("--label", label) for label in sorted({case.label for case in found} & set(LABELS))]
    options += [("--filter", name) for name in _filters(found)]
    return [word for option in options for word in option]


def _filters(cases: Sequence[CaseResult]) -> list[str]:
    """Return the cases; where they are too many their kernels, and nothing (all) where even these are."""
    for name in (_filter, implementation):
        names = dict.fromkeys(map(name, cases))
        if len(names) <= _MOST:
            return list(names)
    return []


def _filter(case: CaseResult) -> str:
    """Return the case's name; that of its kernel for edges, which no filter knows by name."""
    return case.name if case.label in LABELS else implementation(case)
