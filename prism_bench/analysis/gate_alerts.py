"""What the gate has to tell: an alert for each concern, or that it could not be asked."""

from prism_bench.alerts import Alert, Occasion
from prism_bench.analysis import checks
from prism_bench.analysis.gate import Gate
from prism_bench.analysis.reproduce import command

SOURCE = "check"


def alerts(gate: Gate) -> list[Alert]:
    """One alert for each concern, with the state it was found in and the command that shows it again."""
    states = checks.states(gate.record)
    return [_alert(gate, part, check, states) for part in gate.parts for check in part.checks if check.grave]


def occasion(gate: Gate) -> Occasion:
    """The heading under which the alerts are told, and the state of everything that was looked at."""
    count = len(gate.concerns)
    heading = f"prism-bench check on {gate.machine}: {count} finding{'' if count == 1 else 's'}"
    return Occasion(SOURCE, heading, checks.states(gate.record))


def _alert(gate, part, check, states):
    record = gate.record
    return Alert(
        source=SOURCE, machine=gate.machine, kind=check.answer, subject=check.case, gravity=check.gravity,
        message=check.message, identity=(part.name, check.metric or "", *check.identity),
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
