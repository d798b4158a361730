"""A tuning session: search each case's configurations, time the best again, decide and keep."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from math import inf
from pathlib import Path
from typing import Any

from prism_bench.analysis.compare.estimate import Spread
from prism_bench.analysis.compare.noise import stored_noise
from prism_bench.analysis.compare.tuning import Decided, Searched, decided
from prism_bench.errors import BackendUnavailable
from prism_bench.io import interrupts
from prism_bench.record import identity
from prism_bench.record.measurement import Measurement
from prism_bench.run import Progress
from prism_bench.spec.case import Case, Device, edges_task
from prism_bench.workflows.trials import Bench, Trial, Trials, timed_in_turn
from prism_bench.workflows.tuning.choice import TuningChoice, toolchain_of
from prism_bench.workflows.tuning.kept import KeptChoices, path_for, read_kept, write_kept
from prism_bench.workflows.tuning.launched import launched
from prism_bench.workflows.tuning.search import best_few, require_strategy, search

SEARCH_SHARE = 0.6  # of the seconds there are: the rest is for fresh processes


@dataclass(frozen=True)
class TuningPlan:
    """Effort of a session: `budget` configurations by `strategy`, the best `few` again in `processes`.

    A UsageError where there is no such strategy.
    """

    strategy: str = "auto"
    budget: int = 64
    few: int = 3
    processes: int = 5
    seconds: float | None = None

    def __post_init__(self) -> None:
        require_strategy(self.strategy)


@dataclass(frozen=True)
class TuningFound:
    """What was measured so far: the searched cases, times of fresh processes by task, and facts of the device."""

    searched: tuple[Searched, ...] = ()
    again: Mapping[str, Measurement] = field(default_factory=dict[str, Measurement])
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def decisions(self, noise: Path) -> tuple[Decided, ...]:
        """Return what is launched from now on; `noise` is the folder of noise floors."""
        return tuple(decided(self.searched, self.again, self._known(noise)))

    def _known(self, noise: Path) -> dict[str, Spread]:
        """Return the noise of the cases on this machine, by name."""
        floors = stored_noise(identity.machine(self.facts)["id"], noise)
        names = {one.default.name: self.again.get(one.default.task) for one in self.searched}
        if not floors:
            return {}
        spreads = {name: floors.spread(name, found.metric) for name, found in names.items() if found}
        return {name: spread for name, spread in spreads.items() if spread is not None}


@dataclass(frozen=True)
class TuningResult:
    """Decisions of a session, the cases that time did not allow for, and facts of the device."""

    decisions: tuple[Decided, ...]
    left: tuple[Case, ...]
    facts: Mapping[str, Any]
    seconds: float
    complete: bool = True


class TuningSession:
    """One session on a bench; `report` takes progress."""

    def __init__(self, bench: Bench, device: Device, plan: TuningPlan, report: Callable[[Progress], None]) -> None:
        self._bench, self._device, self._plan, self._report = bench, device, plan, report
        self._begun = time.perf_counter()
        self._searched: list[Searched] = []
        self._again: Mapping[str, Measurement] = {}
        self._facts: Mapping[str, Any] = {}

    @property
    def found(self) -> TuningFound:
        """What was measured so far."""
        return TuningFound(tuple(self._searched), self._again, self._facts)

    def run(
        self, cases: Sequence[Case], noise: Path, keep: Callable[[TuningResult], object] = lambda _: None
    ) -> TuningResult:
        """Return what was decided; Ctrl-C, or a backend that no longer starts, keeps what was found by then.

        Interim results go to `keep` after the search and after every round.
        """
        complete = True
        try:
            with interrupts.allowed():
                for _ in self.steps(cases):
                    keep(self._result(cases, noise, complete=False))
        except KeyboardInterrupt:
            complete = False
        except BackendUnavailable:
            if not self._searched:
                raise
            complete = False
        return self._result(cases, noise, complete)

    def steps(self, cases: Sequence[Case]) -> Iterator[None]:
        """Search all cases, then time the best again; yield after the search and after every round."""
        self._search_all([case.configurations(self._device) for case in cases])
        yield from self._rounds()

    def _result(self, cases: Sequence[Case], noise: Path, complete: bool) -> TuningResult:
        left, seconds = tuple(cases[len(self._searched) :]), time.perf_counter() - self._begun
        return TuningResult(self.found.decisions(noise), left, self._facts, seconds, complete and not left)

    def _search_all(self, spaces: Sequence[Sequence[Case]]) -> None:
        """Search case by case until their share of the time is over; compile first what is tried whole, and edges."""
        whole = [case for space in spaces if len(space) <= self._plan.budget for case in space]
        ahead = [*(case.task for case in whole), *(edges_task(case) for case in whole)]
        tried, total = count(), sum(min(len(space), self._plan.budget) for space in spaces)
        with Trials(self._bench, ahead) as trials:

            def trial(case: Case) -> Trial:
                self._report(Progress(0, min(next(tried), total), total, case.task))
                return trials(case)

            for space in spaces:
                end = inf if self._plan.seconds is None else self._begun + SEARCH_SHARE * self._plan.seconds
                if time.perf_counter() > end:
                    return
                self._searched.append(_search(space, trial, trials.at_edges, self._plan))
                self._facts = trials.facts

    def _rounds(self) -> Iterator[None]:
        """Time the default, the best, the second best ... in turn in fresh processes; yield before and after rounds."""
        yield
        with_best = [one for one in self._searched if one.best]
        sides = [[one.default for one in with_best]]
        sides += [[one.best[k] for one in with_best if len(one.best) > k] for k in range(self._plan.few)]
        total, done = sum(map(len, sides)) * self._plan.processes, count()

        def report(process: int, case: Case) -> None:
            self._report(Progress(process, next(done), total, case.task))

        end = None if self._plan.seconds is None else self._begun + self._plan.seconds
        rounds = self._plan.processes if with_best else 0
        for times in timed_in_turn(self._bench, sides, rounds, end=end, report=report):
            self._again = times
            yield


def _search(
    space: Sequence[Case], trial: Callable[[Case], Trial], at_edges: Callable[[Case], str | None], plan: TuningPlan
) -> Searched:
    """Try every configuration that the search chooses; the best few are verified at the edges too."""
    by_choice = {tuple(case.configuration.items()): case for case in space}
    tasks = {case.task: case for case in space}
    seconds: dict[str, float] = {}
    refused: dict[str, str] = {}

    def measure(configuration: Mapping[str, Any]) -> float | None:
        found = trial(by_choice[tuple(configuration.items())])
        if found.seconds is None:
            refused[found.case.task] = found.reason or ""
            return None
        seconds[found.case.task] = found.seconds
        return found.seconds

    search([case.configuration for case in space], measure, plan.strategy, plan.budget)
    tried = len(seconds) + len(refused)
    best: list[Case] = []
    for task in best_few(seconds, space[0].task):
        if len(best) == plan.few:
            break
        if wrong := at_edges(tasks[task]):
            refused[task] = wrong
        else:
            best.append(tasks[task])
    return Searched(space[0], tried, refused, seconds, tuple(best), len(space))


def require_readable(facts: Mapping[str, Any], store: Path, noise: Path) -> None:
    """Raise a ResultsError where this machine's choices or noise floors cannot be read: better now than later."""
    machine = identity.machine(facts)["id"]
    read_kept(path_for(machine, store))
    stored_noise(machine, noise)


def keep(session: TuningResult, bench: Bench, folder: Path) -> Path | None:
    """Put what was settled into the machine's store and return its path, None where nothing was settled.

    A store of another device of the same name is replaced.
    """
    commit, _ = identity.commit_of(bench.catalogue.folder)
    found = [_choice(one, session.facts, commit) for one in session.decisions if one.settled]
    if not found:
        return None
    machine, device = identity.machine(session.facts)["id"], session.facts.get("device", "")
    path = path_for(machine, folder)
    kept = read_kept(path)
    if kept is None or kept.misfit(device, bench.backend):
        kept = KeptChoices(machine, device, bench.backend)
    return write_kept(kept.with_choices(found), path)


def _choice(one: Decided, facts: Mapping[str, Any], commit: str | None) -> TuningChoice:
    case = one.searched.default
    return TuningChoice(
        kernel=case.kernel, workload=dict(case.workload), configuration=one.chosen.configuration,
        default=case.configuration, seconds=one.seconds, speedup=one.speedup, interval=one.interval, reason=one.reason,
        tried=one.searched.tried, refused=len(one.searched.refused), source=launched(case.spec),
        toolchain=toolchain_of(facts), created=identity.timestamp(datetime.now(UTC)), commit=commit,
    )  # fmt: skip
