"""What the gate has to tell: an alert for each concern, or that it could not be asked."""

from collections import defaultdict
from dataclasses import replace

from prism_bench.alerts import Alert, Occasion
from prism_bench.analysis import checks
from prism_bench.analysis.gate import Gate
from prism_bench.analysis.reproduce import command

SOURCE = "check"
MANY = 8  # concerns of one part, answer and metric, those of the run of one kernel
_NAMED = 3


def alerts(gate: Gate) -> list[Alert]:
    """One alert for each concern, with the state it was found in and the command that shows it again.

    More than MANY alike are one alert: so many have one cause, and nobody reads sixty messages.
    """
    states, alike = checks.states(gate.record), defaultdict(list)
    for part in gate.parts:
        for check in part.checks:
            if check.grave:
                alike[part.name, check.answer, check.metric, _kernel(part, check)].append(check)
    found = []
    for (part, _, _, kernel), concerns in alike.items():
        told = [_together(concerns, states, kernel)] if len(concerns) > MANY else concerns
        found += [_alert(gate, part, check, states) for check in told]
    return found


def _kernel(part, check):
    """What went wrong is alike within one kernel; what is slow or over its budget is alike in all of them."""
    return check.case.partition("[")[0].partition(":")[0] if part.name == "run" and check.case else ""


def _together(concerns, states, kernel):
    """One check for all of them: more of them, or another driver or toolkit, is news; which ones they are is not."""
    worst = min(concerns, key=lambda check: check.order)
    cases = tuple(dict.fromkeys(check.case for check in concerns if check.case))
    more = f" and {len(cases) - _NAMED} more" if len(cases) > _NAMED else ""
    return replace(
        worst, case=None, cases=cases, ratio=float(len(concerns)), identity=("many", kernel), state=_world(states),
        message=f"{len(cases)} cases ({', '.join(cases[:_NAMED])}{more}); the farthest, {worst.case}: {worst.message}",
    )  # fmt: skip


def _world(states):
    """Driver and toolkit: the state of the run without its commit."""
    return states[None].partition(", ")[2] or "unknown"


def occasion(gate: Gate) -> Occasion:
    """The heading under which the alerts are told, and the state of everything that was looked at."""
    count = len(gate.concerns)
    heading = f"prism-bench check on {gate.machine}: {count} finding{'' if count == 1 else 's'}"
    return Occasion(SOURCE, heading, checks.states(gate.record))


def _alert(gate, part, check, states):
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
    """The gate could not be asked: a night of which nobody hears is taken for a good one."""
    return Alert(SOURCE, host, "failed", None, "bad", reason, state=reason)


def failing(host: str, state: str) -> Occasion:
    """The heading of a failure, and the `state` that the gate is in: the failure's reason, or another one to end it."""
    return Occasion(SOURCE, f"prism-bench check on {host} could not do its work", {None: state})
