"""Forecast of a run: the seconds that each case takes, by an earlier run or by an estimate."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.run.carrying import Carrier
from prism_bench.run.measuring import COMPILING, TIMED, UNTIMED
from prism_bench.run.settings import Settings
from prism_bench.spec.case import Case, edges_task

# Costs of cases: how many seconds of a run each of them takes, by an earlier record or only by the criteria.

# What a run of 853 cases took on H200s (2026-11-27): most series are precise before their time is over, so all in all
# this share of the limits of its cold and hot times; seconds of a case's verification, of a kernel's edges and
# compilation, and of a process's start; the share of the first two that they take side by side.
_LIMIT_SHARE = 0.5
_CHECK, _EDGES, _COMPILATION, _START, _SIDE_BY_SIDE = 1.9, 1.6, 0.2, 1.1, 0.18
_CONTROL_SHARE = 0.3  # of a case's seconds in one process: its cold time, with fewer samples
_PEER = "peer:"


@dataclass(frozen=True)
class CaseCosts:
    """Seconds by case: `untimed` to verify it, `timed` in each process that times it; `edges` to verify a kernel's.

    `labels` are those of the cases. `compiling` is that of the whole run, which had that many `jobs`, `start` that of
    each process of a job. Verification in several processes side by side takes `shared` of the sum of their seconds.
    `controls` are the seconds of cases that were measured as controls, which `timed` lacks.
    """

    edges: Mapping[str, float]
    untimed: Mapping[str, float]
    timed: Mapping[str, float]
    labels: Mapping[str, str]
    compiling: float = 0.0
    jobs: int = 1
    start: float = 0.0
    shared: float = 1.0
    controls: Mapping[str, float] = field(default_factory=dict[str, float])

    def verifying(self, cases: Iterable[Case]) -> float:
        """Return the seconds that verification of the cases takes in one process."""
        return sum(self._of(self.untimed, case) for case in cases)

    def timing(self, cases: Iterable[Case], controls: Iterable[Case] = ()) -> float:
        """Return the seconds that one process needs to time the cases, and others as controls."""
        known = sum(self._of(self.controls or self.timed, case) for case in controls)
        return (
            self.start
            + sum(self._of(self.timed, case) for case in cases)
            + (known if self.controls else _CONTROL_SHARE * known)
        )

    def verifying_edges(self, kernels: Iterable[str]) -> float:
        """Return the seconds of the kernels' edges in one process; an unknown kernel counts as the mean of all."""
        mean = _mean(self.edges.values())
        return sum(self.edges.get(kernel, mean) for kernel in kernels)

    def by_case(self, cases: Iterable[Case], processes: int) -> dict[str, float]:
        """Return by name the seconds of each case in all `processes`; the edges of a kernel count to its first case."""
        seconds_by_name: dict[str, float] = {}
        kernels: set[str] = set()
        for case in cases:
            edges = 0.0 if case.kernel in kernels else self.verifying_edges([case.kernel])
            kernels.add(case.kernel)
            untimed = edges + self._of(self.untimed, case)
            seconds_by_name[case.name] = self.shared * untimed + processes * self._of(self.timed, case)
        return seconds_by_name

    def _of(self, table: Mapping[str, float], case: Case) -> float:
        """Return the case's seconds; an unknown one counts as the mean of its label, else of all."""
        if case.name in table:
            return table[case.name]
        alike = [seconds for name, seconds in table.items() if self.labels[name] == case.label]
        return _mean(alike or table.values())


def recorded_costs(record: RunRecord, peers: bool) -> CaseCosts:
    """Return what the record's cases took, with or without its peers.

    A record without `spent` gives its duration, spread evenly over all that it verified and measured. In a record of
    several parts, a ceiling benchmark that all of them measured costs what it took one of them.
    """
    processes = max(1, int(record.protocol.get("processes") or 1))
    kept = any(case.spent for case in record.cases)
    ledger = _Spent() if kept else _Spread(record.duration / max(1, sum(map(_counted, record.cases))))
    times = {case.name: _times(record, case) for case in record.cases}
    timed = [case for case in record.cases if not case.is_edge]
    verified = [case for case in record.cases if not case.carried]
    costs = CaseCosts(
        edges=_by_kernel((case, ledger.untimed(case) / times[case.name]) for case in verified if case.is_edge),
        untimed={case.name: ledger.untimed(case) / times[case.name] for case in verified if not case.is_edge},
        timed={
            case.name: ledger.timed(case, peers) / processes / times[case.name] for case in timed if not case.control
        },
        controls={case.name: ledger.timed(case, peers) for case in timed if case.control},
        labels={case.name: case.label for case in timed},
    )
    return _with_stages(costs, record, processes) if record.spent else costs


def _times(record: RunRecord, case: CaseResult) -> int:
    """Return how many parts of the record measured the case."""
    return max(1, len(record.parts)) if case.ceiling and case.board is None else 1


def _rough_costs(cases: Sequence[Case], settings: Settings, backend: str) -> CaseCosts:
    """Return a rough estimate: a share of the criteria's limits for every metric of the kernels and their peers.

    On a GPU verification, compilation and starts are added.
    """
    metrics = ("cold_time", "hot_time") if backend == "cuda" else ("wall_time",)
    timed: dict[str, float] = {}
    for case in cases:
        peers = [f"{_PEER}{name}" for name in case.spec.peers] if settings.peers and backend == "cuda" else []
        limits = [settings.criterion(metric, subject).seconds for metric in metrics for subject in ("kernel", *peers)]
        timed[case.name] = _LIMIT_SHARE * sum(limits)
    labels, kernels = {case.name: case.label for case in cases}, {case.kernel for case in cases}
    if backend != "cuda":
        return CaseCosts({}, {}, timed, labels)
    edges, checks = dict.fromkeys(kernels, _EDGES), dict.fromkeys(timed, _CHECK)
    return CaseCosts(edges, checks, timed, labels, _COMPILATION * len(kernels), start=_START, shared=_SIDE_BY_SIDE)


@dataclass(frozen=True)
class _Spent:
    """Reads the seconds that a record keeps by case and phase."""

    def untimed(self, case: CaseResult) -> float:
        return case.spent.get(UNTIMED, 0.0)

    def timed(self, case: CaseResult, peers: bool) -> float:
        return sum(s for name, s in case.spent.items() if name != UNTIMED and (peers or not name.startswith("peer")))


@dataclass(frozen=True)
class _Spread:
    """Spreads the duration of a record over the outputs that it verified and the series that it measured."""

    unit: float  # seconds of one output or series

    def untimed(self, case: CaseResult) -> float:
        return self.unit * len(case.verification)

    def timed(self, case: CaseResult, peers: bool) -> float:
        return self.unit * _series(case, peers)


def _counted(case: CaseResult) -> int:
    return len(case.verification) + _series(case, peers=True)


def _series(case: CaseResult, peers: bool) -> int:
    """Return how many series of samples the case has; the host's launch cost comes with another one."""
    counted = [measurement for measurement in case.measurements if measurement.metric != "launch_time"]
    return sum(
        len(measurement.processes) for measurement in counted if peers or not measurement.subject.startswith(_PEER)
    )


def _with_stages(costs: CaseCosts, record: RunRecord, processes: int) -> CaseCosts:
    """Return the costs with what the stages of the record took next to its cases; each job has its own processes."""
    jobs = _jobs(record, processes)
    side_by_side = sum(case.spent.get(UNTIMED, 0.0) for case in record.cases)
    one_by_one = sum(_Spent().timed(case, True) for case in record.cases)
    return replace(
        costs,
        compiling=record.spent.get(COMPILING, 0.0),
        jobs=jobs,
        start=max(0.0, record.spent.get(TIMED, 0.0) - one_by_one) / processes / jobs,
        shared=record.spent.get(UNTIMED, 0.0) / side_by_side if side_by_side else 1.0,
    )


def _jobs(record: RunRecord, processes: int) -> int:
    """Return in how many jobs the boards of a fleet measured the record: every process on a GPU left its readings."""
    return max(1, len(record.parts), len(record.monitor) // processes)


def _by_kernel(seconds: Iterable[tuple[CaseResult, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for case, spent in seconds:
        kernel = f"{case.kernel}:{case.variant}" if case.variant else case.kernel
        total[kernel] = total.get(kernel, 0.0) + spent
    return total


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return sum(numbers) / len(numbers) if numbers else 0.0


# Forecast of a run: how long it will take, from what an earlier run of the same cases on such a machine took.

_ENOUGH = 0.5  # of the cases must be in a record that a forecast is made from
MOST_READ = 5  # records that are looked at, the newest first
_MOST_READ_FOR_CODE = 2  # a record of many cases takes a second to read
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


def forecast(
    cases: Sequence[Case],
    settings: Settings,
    backend: str,
    records: Iterable[RunRecord] = (),
    carrier: Carrier | None = None,
) -> Forecast:
    """Return the forecast of a run of the cases, the ceiling benchmarks among them, by this backend.

    `records` are those of such a machine, the newest first: the first complete one that has enough of the cases counts.
    What the `carrier` carries over is not verified, and its controls are not measured in all processes.
    """
    costs, source = costs_of(cases, settings, backend, records)
    return Forecast(_stages(costs, cases, settings, carrier), source)


def costs_of(
    cases: Sequence[Case], settings: Settings, backend: str, records: Iterable[RunRecord] = ()
) -> tuple[CaseCosts, str]:
    """Return the costs of the cases, and in words what they are known from; `records` as those of `forecast`."""
    names = {case.name for case in cases}
    for record in islice(records, MOST_READ):
        if record.backend == backend and record.complete and record.duration > 0:
            costs = recorded_costs(record, settings.peers)
            if len(names & (costs.timed.keys() | costs.controls.keys())) >= _ENOUGH * len(names):
                return costs, f"from the record of {record.created[:10]}"
    return _rough_costs(cases, settings, backend), ROUGH


def known_code(records: Iterable[RunRecord], facts: Mapping[str, Any]) -> dict[str, str]:
    """Return by case the machine code whose first call one of the records has, made by the same compiler.

    `records` are those of such a machine, the newest first; `facts` are the backend's.
    """
    known: dict[str, str] = {}
    for record in islice(records, _MOST_READ_FOR_CODE):
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


def _stages(
    costs: CaseCosts, cases: Sequence[Case], settings: Settings, carrier: Carrier | None
) -> tuple[ForecastStage, ...]:
    """Return the stages in the order in which a run goes through them: edges, verification, a process each."""
    tasks, apart = {edges_task(case): case.kernel for case in cases}, settings.lanes > 1
    controls = carrier.controls_of(cases).known if carrier else {}
    kernels = [kernel for task, kernel in tasks.items() if not (carrier and carrier.carries(task))]
    shared = costs.shared if apart else 1.0
    edges = ForecastStage(len(tasks), costs.compiling + shared * costs.verifying_edges(kernels))
    verifying = costs.verifying(case for case in cases if not (apart and carrier and carrier.carries(case.task)))
    first = [edges, ForecastStage(len(cases), shared * verifying)] if apart else [edges]
    whole = [case for case in cases if case.name not in controls]
    timed: list[ForecastStage] = []
    for process in range(settings.processes):
        known = [case for case in cases if case.name in controls] if process < settings.control_processes else []
        seconds = costs.timing(whole, known) + (0.0 if apart or process else verifying)
        timed.append(ForecastStage(len(whole) + len(known), seconds))
    return (*first, *timed)
