"""The command that shows again what a check found: to be pasted into a shell, in a clean checkout on that machine."""

import shlex

from prism_bench.analysis.checks import Check
from prism_bench.analysis.summary import implementation
from prism_bench.run_record import RunRecord
from prism_bench.workload import LABELS

# What verification alone shows; everything else needs a measurement.
_VERIFIED = ("wrong", "crashed", "timed out", "failed")


def command(record: RunRecord, check: Check) -> str:
    """Check out the measured commit, then measure or verify the cases that the check is about."""
    verb = "verify" if check.answer in _VERIFIED else "run"
    words = ["prism-bench", verb, "--backend", record.backend]
    if record.catalogue != "built-in":
        words += ["--catalogue", record.catalogue]
    found = [case for name in _names(check) if (case := record.case(name))]
    words += [word for label in _labels(found) for word in ("--label", label)]
    words += [word for case in found for word in ("--filter", _filter(case))]
    checkout = f"git checkout {record.commit[:12]} && " if record.commit else ""
    return checkout + shlex.join(words)


def _names(check):
    """A long list becomes no list: the whole catalogue is measured sooner than it is typed."""
    names = check.cases or ((check.case,) if check.case else ())
    return names if len(names) <= 8 else ()


def _labels(cases):
    return sorted({case.label for case in cases} & set(LABELS))


def _filter(case):
    """Edges have no name that a filter knows: those are asked for by their kernel."""
    return case.name if case.label in LABELS else implementation(case)
