"""Alerts of the gate: one for each concern, or that it could not do its work.

Command that reproduces a finding, for a shell in a clean checkout on the machine of the record.
"""

import shlex
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from prism_bench.analysis.gate import checks
from prism_bench.analysis.gate.checks import Gate, GateCheck, GatePart
from prism_bench.analysis.summary import implementation
from prism_bench.record.alert import Alert, Occasion
from prism_bench.record.run_record import TESTED, CaseResult, RunRecord
from prism_bench.spec.case import test_of
from prism_bench.spec.workload import LABELS
from prism_bench.units import count_text

# Answers that verification alone shows; everything else needs a measurement.
_VERIFIED = ("wrong", "crashed", "timed out", "failed")
_SHORT = 12  # digits of a commit
_MOST = 8


def command(record: RunRecord, check: GateCheck) -> str:
    """Return the command: compare with the check's other commit, else check out its own and run or verify its cases."""
    verb = "verify" if check.answer in _VERIFIED else "run"
    commit = (record.commit or "")[:_SHORT]
    checkout = f"git checkout {commit} && " if commit else ""
    if tests := _tests(record, check):
        return checkout + shlex.join(["pytest", *tests])
    if check.against and commit:
        return shlex.join(["prism-bench", "compare", check.against[:_SHORT], commit, *_choice(record, check)])
    return checkout + shlex.join(["prism-bench", verb, *_choice(record, check)])


def _tests(record: RunRecord, check: GateCheck) -> list[str]:
    """Return the tests that timed the check's cases; empty where another command did."""
    found = [record.case(name) for name in check.cases or ((check.case,) if check.case else ())]
    return list(dict.fromkeys(test_of(case.name) for case in found if case and case.family == TESTED))


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


SOURCE = "check"
MANY = 8  # concerns of one part, answer and metric, those of the run of one kernel
_NAMED = 3


def alerts(gate: Gate) -> list[Alert]:
    """Return one alert for each concern, with the state it was found in and the command that shows it again.

    More than MANY alike are one alert: so many have one cause, and nobody reads sixty messages.
    """
    states = checks.states(gate.record)
    alike: defaultdict[tuple[str, str, str | None, str], list[GateCheck]] = defaultdict(list)
    for part in gate.parts:
        for check in part.checks:
            if check.grave:
                alike[part.name, check.answer, check.metric, _kernel(part, check)].append(check)
    found: list[Alert] = []
    for (part, _, _, kernel), concerns in alike.items():
        shown = [_together(concerns, states, kernel)] if len(concerns) > MANY else concerns
        found += [_alert(gate, part, check, states) for check in shown]
    return found


def _kernel(part: GatePart, check: GateCheck) -> str:
    """Return what else groups concerns: the kernel of what went wrong; nothing for what is slow or over its budget."""
    return check.case.partition("[")[0].partition(":")[0] if part.name == "run" and check.case else ""


def _together(concerns: Sequence[GateCheck], states: Mapping[str | None, str], kernel: str) -> GateCheck:
    """Return one check for all: more of them, or another driver or toolkit, is news; which cases they are is not."""
    worst = min(concerns, key=lambda check: check.order)
    cases = tuple(dict.fromkeys(check.case for check in concerns if check.case))
    more = f" and {len(cases) - _NAMED} more" if len(cases) > _NAMED else ""
    return replace(
        worst, case=None, cases=cases, ratio=float(len(concerns)), identity=("many", kernel), state=_world(states),
        message=f"{count_text(len(cases), 'case')} ({', '.join(cases[:_NAMED])}{more}); "
        f"the farthest, {worst.case}: {worst.message}",
    )  # fmt: skip


def _world(states: Mapping[str | None, str]) -> str:
    """Return driver and toolkit: the state of the run without its commit."""
    return states[None].partition(", ")[2] or "unknown"


def occasion(gate: Gate) -> Occasion:
    """Return the heading of the alerts, and the state of everything that was checked."""
    count = len(gate.concerns)
    heading = f"prism-bench check on {gate.machine}: {count} finding{'' if count == 1 else 's'}"
    return Occasion(SOURCE, heading, checks.states(gate.record))


def _alert(gate: Gate, part: str, check: GateCheck, states: Mapping[str | None, str]) -> Alert:
    record = gate.record
    return Alert(
        source=SOURCE, machine=gate.machine, kind=check.answer, subject=check.case, gravity=check.gravity,
        message=check.message, identity=(part, check.metric or "", *check.identity),
        state=check.state or states.get(check.case, states[None]), severity=check.severity,
        reproduce=command(record, check),
        facts={"record": gate.path.name, "commit": record.commit, "created": record.created,
               "backend": record.backend, "metric": check.metric, "cases": list(check.cases)},
    )  # fmt: skip


def failure(host: str, reason: str) -> Alert:
    """Return the alert that the gate could not do its work: a run without any message would be taken for a good one."""
    return Alert(SOURCE, host, "failed", None, "bad", reason, state=reason)


def failing(host: str, state: str) -> Occasion:
    """Return the heading of a failure, and the gate's `state`: the failure's reason, or another one to end it."""
    return Occasion(SOURCE, f"prism-bench check on {host} could not do its work", {None: state})
