"""The first sentence of a run: what is measured, and how long it will take."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from prism_bench.cli import options
from prism_bench.record.run_record import RunRecord
from prism_bench.spec.case import Case
from prism_bench.units import count_text, duration_text

if TYPE_CHECKING:
    from prism_bench.run import Forecast, Settings
    from prism_bench.spec.case import Device


class DescribedBackend(Protocol):
    """What is known of a backend, whether it was opened here or by the worker of a fleet."""

    @property
    def name(self) -> str:
        """The name of the backend."""
        ...

    @property
    def device(self) -> "Device":
        """What launches may ask of the device."""
        ...

    def facts(self) -> dict[str, Any]:
        """Return what it reports of the device."""
        ...


@dataclass(frozen=True)
class RunPlan:
    """What a run measures: `cases` with the ceiling benchmarks that are added, and how many were `chosen`."""

    cases: Sequence[Case]
    chosen: int
    settings: "Settings"


class EarlierRecords:
    """The records of the backend's kind of machine below `runs`, the newest first, each read once and when needed."""

    def __init__(self, runs: Path, backend: DescribedBackend) -> None:
        from prism_bench.record import store
        from prism_bench.record.identity import machine

        self._unread = store.readable(runs, machine(backend.facts())["id"])
        self._read: list[RunRecord] = []

    def __iter__(self) -> Iterator[RunRecord]:
        yield from self._read
        for _, record in self._unread:
            self._read.append(record)
            yield record


def announce(
    plan: RunPlan, backend: DescribedBackend, earlier: Iterable[RunRecord], quiet: bool, boards: int = 1
) -> "Forecast":
    """Print how long the run will take, by the `earlier` records, if `quiet` on standard error; return the forecast.

    Several `boards` share the work: what one of them would take is printed.
    """
    from prism_bench.run import forecast

    expected = forecast(plan.cases, plan.settings, backend.name, earlier)
    if plan.chosen:  # a run of nothing ends with its error alone
        (options.remark if quiet else options.line)(_sentence(plan, expected, boards))
    return expected


def _sentence(plan: RunPlan, expected: "Forecast", boards: int) -> str:
    """Return `745 cases, 3 processes, peers: about 21 min (from the record of 2026-11-22)`."""
    added, processes = len(plan.cases) - plan.chosen, plan.settings.processes
    cases = count_text(plan.chosen, "case")
    parts = [
        f"{cases} and {count_text(added, 'ceiling benchmark')}" if added else cases,
        count_text(processes, "process", "processes"),
        *(["peers"] if plan.settings.peers else []),
    ]
    alone = " on one board" if boards > 1 else ""
    return f"{', '.join(parts)}: about {duration_text(expected.seconds)}{alone} ({expected.source})"
