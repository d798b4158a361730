"""The gate for programs."""

from typing import Any

from prism_bench.analysis.gate.alerts import command
from prism_bench.analysis.gate.checks import Gate, GateCheck, GatePart
from prism_bench.report.gate.words import headline
from prism_bench.spec.metric import timed_on


def view(gate: Gate) -> dict[str, Any]:
    """Return `exit_code`, `headline`, the record's facts, and `parts` with their checks; concerns have `reproduce`."""
    record = gate.record
    facts = {name: getattr(record, name) for name in ("created", "commit", "dirty", "backend", "complete")}
    return {
        "exit_code": gate.exit_code,
        "headline": headline(gate),
        "record": str(gate.path),
        "machine": gate.machine,
        **facts,
        "timed": timed_on(record.backend),
        "parts": [_part(gate, part) for part in gate.parts],
    }


def _part(gate: Gate, part: GatePart) -> dict[str, Any]:
    return {"name": part.name, "silent": part.silent, "checks": [_check(gate, check) for check in part.checks]}


def _check(gate: Gate, check: GateCheck) -> dict[str, Any]:
    return {**vars(check), "reproduce": command(gate.record, check) if check.grave else None}
