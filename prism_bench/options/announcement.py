"""The first sentence of a run: what is measured, and how long it will take."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from prism_bench import options
from prism_bench.case import Case
from prism_bench.units import duration_text

if TYPE_CHECKING:
    from prism_bench.backends import Backend
    from prism_bench.run import Forecast, Settings


@dataclass(frozen=True)
class RunPlan:
    """What a run measures: `cases` with the ceiling benchmarks that are added, and how many were `chosen`."""

    cases: Sequence[Case]
    chosen: int
    settings: "Settings"


def announce(plan: RunPlan, backend: "Backend", runs: Path, quiet: bool) -> "Forecast":
    """Print how long the run will take, if `quiet` on standard error; return the forecast.

    The newest records of this kind of machine below `runs` are read for it.
    """
    from prism_bench import store
    from prism_bench.identity import machine
    from prism_bench.run import forecast

    records = (record for _, record in store.readable(runs, machine(backend.facts())["id"]))
    expected = forecast(plan.cases, plan.settings, backend.name, records)
    (options.remark if quiet else options.line)(_sentence(plan, expected))
    return expected


def _sentence(plan: RunPlan, expected: "Forecast") -> str:
    """Return `745 cases, 3 processes, peers: about 21 min (from the record of 2026-11-22)`."""
    added, processes = len(plan.cases) - plan.chosen, plan.settings.processes
    cases = _counted(plan.chosen, "case", "cases")
    parts = [
        f"{cases} and {_counted(added, 'ceiling benchmark', 'ceiling benchmarks')}" if added else cases,
        _counted(processes, "process", "processes"),
        *(["peers"] if plan.settings.peers else []),
    ]
    return f"{', '.join(parts)}: about {duration_text(expected.seconds)} ({expected.source})"


def _counted(count: int, one: str, several: str) -> str:
    return f"{count} {one if count == 1 else several}"
