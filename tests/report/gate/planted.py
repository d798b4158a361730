"""Gates with planted answers, of every gravity and with every awkward character."""

from pathlib import Path

from prism_bench.analysis.gate.checks import Gate, GateCheck, GatePart
from tests.report.synthetic import case_result, record_of

CASE = "softmax[n=100]"
AWKWARD = "50 % of <b>\n| `it` :, & @all [x](y) \x00\x1b[31m ]]>"
BAD = GateCheck(CASE, "cold_time", "missed", "bad", "cold time is 9 us; the budget is at most 6 us", 1.5)
DOUBT = GateCheck(CASE, "hot_time", "invalid", "untrusted", "hot time: below the floor")
NOTE = GateCheck(CASE, "energy", "unmeasured", "note", "energy was not measured")
MET = GateCheck(CASE, "registers", "met", message="registers is 32")
OK = GateCheck(CASE, None, "ok")


def gate_of(*checks, more=(), **record):
    """A gate with one part, `budgets`, of these checks, and the parts in `more`."""
    found = record_of(case_result("softmax"), **record)
    return Gate(found, Path("runs/box/one.json.gz"), (GatePart("budgets", checks), *more))


def many(count, check=BAD):
    """That many checks alike, on cases of their own."""
    return [
        GateCheck(f"k{index}[n=1]", check.metric, check.answer, check.gravity, check.message) for index in range(count)
    ]
