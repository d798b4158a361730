"""The command that shows again what a check found, for a shell in a clean checkout on the machine of the record."""

import shlex

from prism_bench.analysis.checks import GateCheck
from prism_bench.analysis.summary import implementation
from prism_bench.run_record import RunRecord
from prism_bench.workload import LABELS

# What verification alone shows; everything else needs a measurement.
_VERIFIED = ("wrong", "crashed", "timed out", "failed")
_SHORT = 12  # digits of a commit
_MOST = 8


def command(record: RunRecord, check: GateCheck) -> str:
    """Compare with the commit that the check is against; else check out its own, and measure or verify its cases."""
    verb = "verify" if check.answer in _VERIFIED else "run"
    compares = bool(check.against and record.commit)
    words = ["compare", check.against[:_SHORT], record.commit[:_SHORT]] if compares else [verb]
    checkout = f"git checkout {record.commit[:_SHORT]} && " if record.commit and not compares else ""
    return checkout + shlex.join(["prism-bench", *words, *_choice(record, check)])


def _choice(record, check):
    """The options that choose backend, catalogue and cases."""
    names = check.cases or ((check.case,) if check.case else ())
    found = [case for name in names if (case := record.case(name))]
    options = [("--backend", record.backend)]
    options += [("--catalogue", record.catalogue)] if record.catalogue != "built-in" else []
    options += [("--label", label) for label in sorted({case.label for case in found} & set(LABELS))]
    options += [("--filter", name) for name in _filters(found)]
    return [word for option in options for word in option]


def _filters(cases):
    """The cases; where those are too many to type their kernels, and all where even these are."""
    for name in (_filter, implementation):
        names = dict.fromkeys(map(name, cases))
        if len(names) <= _MOST:
            return list(names)
    return []


def _filter(case):
    """Edges have no name that a filter knows: those are asked for by their kernel."""
    return case.name if case.label in LABELS else implementation(case)
