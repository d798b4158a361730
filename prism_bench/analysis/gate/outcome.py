"""Gate: every check of the newest record, and whether it may pass."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from prism_bench.analysis.gate import checks
from prism_bench.analysis.gate.checks import GateCheck
from prism_bench.analysis.reading import Reading
from prism_bench.run_record import RunRecord


@dataclass(frozen=True)
class GatePart:
    """One kind of check: its `checks`, and where there are none, `silent` is the reason."""

    name: str
    checks: tuple[GateCheck, ...] = ()
    silent: str | None = None

    @property
    def answered(self) -> bool:
        """Whether any of its checks has an answer; a part without one promises nothing."""
        return any(check.answered for check in self.checks)


@dataclass(frozen=True)
class Gate:
    """Parts of the gate on the `record` at `path`."""

    record: RunRecord
    path: Path
    parts: tuple[GatePart, ...]

    @property
    def machine(self) -> str:
        """The machine's name in the store."""
        return str(self.record.machine.get("id", "unnamed"))

    @property
    def checks(self) -> tuple[GateCheck, ...]:
        return tuple(check for part in self.parts for check in part.checks)

    @property
    def concerns(self) -> list[GateCheck]:
        """What keeps the gate shut, the gravest first."""
        return sorted((check for check in self.checks if check.grave), key=lambda check: check.order)

    @property
    def exit_code(self) -> int:
        """3 where something cannot be trusted, 1 where something is bad, 2 where no check has an answer, else 0."""
        gravities = {check.gravity for check in self.concerns}
        if gravities:
            return 3 if "untrusted" in gravities else 1
        return 0 if any(part.answered for part in self.parts) else 2


def gate(reading: Reading, path: Path, more: Sequence[GatePart] = ()) -> Gate:
    """Return the gate on a reading: the run itself, its budgets, and the parts that need more than one record."""
    budgets = checks.of_budgets(reading)
    silent = None if budgets else "no budget applies to a case of this record"
    run = GatePart("run", tuple(checks.of_run(reading)))
    if not run.answered:
        run = replace(run, silent="no kernel was verified or timed, except the machine's own")
    return Gate(reading.record, path, (run, GatePart("budgets", tuple(budgets), silent), *more))
