"""Forecast of a run: how long it will take, from what an earlier run of the same cases on such a machine took."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from prism_bench.record.run_record import RunRecord
from prism_bench.run.case_costs import CaseCosts, recorded_costs, rough_costs
from prism_bench.run.settings import Settings
from prism_bench.spec.case import Case

ENOUGH = 0.5  # of the cases must be in a record that a forecast is made from
MOST_READ = 5  # records that are looked at, the newest first
MOST_READ_FOR_CODE = 2  # a record of many cases takes a second to read
ROUGH = "rough: no complete record of this machine has enough of these cases"


@dataclass(frozen=True)
class ForecastStage:
    """A stage of a run: its number of `tasks`, and the `seconds` that all of them will take."""

    tasks: int
    seconds: float


@dataclass(frozen=True)
class Forecast:
    """How long a run will take, stage by stage, and `source`: what this is known from, in words."""

    stages: tuple[ForecastStage, ...]
    source: str

    @property
    def seconds(self) -> float:
        """The seconds of the whole run."""
        return sum(stage.seconds for stage in self.stages)

    def left(self, done: int, elapsed: float) -> float:
        """Return the seconds that are left when `done` tasks are over after `elapsed` seconds.

        The more of the run is over, the more the speed so far counts.
        """
        planned = self._planned(done)
        if not planned:
            return max(0.0, self.seconds - elapsed)
        share = planned / self.seconds
        return (self.seconds - planned) * (1 - share + share * elapsed / planned)

    def _planned(self, done: int) -> float:
        """Return the seconds that the first `done` tasks were expected to take."""
        seconds = 0.0
        for stage in self.stages:
            seconds += stage.seconds * (min(1.0, done / stage.tasks) if stage.tasks else 1.0)
            done -= min(done, stage.tasks)
        return seconds


def forecast(cases: Sequence[Case], settings: Settings, backend: str, records: Iterable[RunRecord] = ()) -> Forecast:
    """Return the forecast of a run of the cases, the ceiling benchmarks among them, by this backend.

    `records` are those of such a machine, the newest first: the first complete one that has enough of the cases counts.
    """
    costs, source = costs_of(cases, settings, backend, records)
    return Forecast(_stages(costs, cases, settings), source)


def costs_of(
    cases: Sequence[Case], settings: Settings, backend: str, records: Iterable[RunRecord] = ()
) -> tuple[CaseCosts, str]:
    """Return the costs of the cases, and in words what they are known from; `records` as those of `forecast`."""
    names = {case.name for case in cases}
    for record in islice(records, MOST_READ):
        if record.backend == backend and record.complete and record.duration > 0:
            costs = recorded_costs(record, settings.peers)
            if len(names & costs.timed.keys()) >= ENOUGH * len(names):
                return costs, f"from the record of {record.created[:10]}"
    return rough_costs(cases, settings, backend), ROUGH


def known_code(records: Iterable[RunRecord], facts: Mapping[str, Any]) -> dict[str, str]:
    """Return by case the machine code whose first call one of the records has, made by the same compiler.

    `records` are those of such a machine, the newest first; `facts` are the backend's.
    """
    known: dict[str, str] = {}
    for record in islice(records, MOST_READ_FOR_CODE):
        if record.software.get("nvrtc") == facts.get("software", {}).get("nvrtc"):
            for case in record.cases:
                first = case.measurement("first_call_time")
                if first and first.processes and "sass" in case.code:
                    known.setdefault(case.name, case.code["sass"])
    return known


def verification_seconds(records: Iterable[RunRecord], backend: str) -> dict[str, float]:
    """Return by task the seconds that it took to verify it in the newest complete record of the backend."""
    for record in islice(records, MOST_READ):
        if record.backend == backend and record.complete and any(case.spent for case in record.cases):
            costs = recorded_costs(record, peers=True)
            return {**costs.untimed, **{f"edges:{kernel}": seconds for kernel, seconds in costs.edges.items()}}
    return {}


def _stages(costs: CaseCosts, cases: Sequence[Case], settings: Settings) -> tuple[ForecastStage, ...]:
    """Return the stages in the order in which a run goes through them: edges, verification, a process each."""
    kernels, apart = list(dict.fromkeys(case.kernel for case in cases)), settings.lanes > 1
    shared = costs.shared if apart else 1.0
    edges = ForecastStage(len(kernels), costs.compiling + shared * costs.verifying_edges(kernels))
    verifying, timing = costs.verifying(cases), costs.timing(cases)
    first = [edges, ForecastStage(len(cases), shared * verifying)] if apart else [edges]
    extra = [0.0 if apart or process else verifying for process in range(settings.processes)]
    return (*first, *(ForecastStage(len(cases), timing + one) for one in extra))
