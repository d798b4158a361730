"""A tuning session: search each case's configurations, time the best few again beside the default, decide, keep."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from prism_bench.analysis.noise_file import stored_noise
from prism_bench.analysis.tuning import Decided, Searched, decided
from prism_bench.case import Case
from prism_bench.tuning.choice import Choice, toolchain_of
from prism_bench.tuning.kept import Kept, path_for, read_kept, write_kept
from prism_bench.tuning.launched import launched
from prism_bench.tuning.search import best_few, require_strategy, search
from prism_bench.workbench import Progress, identity
from prism_bench.workbench.trials import Bench, Trials, timed_in_turn

SEARCH_SHARE = 0.6  # of the seconds there are: the rest is for fresh processes


@dataclass(frozen=True)
class Plan:
    """How a session goes about it: `budget` configurations by `strategy`, the best `few` again in `processes`.

    A UsageError where there is no such strategy.
    """

    strategy: str = "auto"
    budget: int = 64
    few: int = 3
    processes: int = 5
    seconds: float | None = None

    def __post_init__(self):
        require_strategy(self.strategy)


@dataclass(frozen=True)
class Session:
    """What came out, the cases that time did not allow for, and the device that it was found out on."""

    decisions: tuple[Decided, ...]
    left: tuple[Case, ...]
    facts: dict
    seconds: float
    complete: bool = True


class Tuning:
    """One session on a bench; `report` takes progress."""

    def __init__(self, bench: Bench, device, plan: Plan, report: Callable[[Progress], None]):
        self._bench, self._device, self._plan, self._report = bench, device, plan, report
        self._begun = time.perf_counter()

    def run(self, cases: Sequence[Case], noise: Path) -> Session:
        """Ctrl-C keeps what is decided by then: the cases that were searched, each on the times that there are."""
        searched: list[Searched] = []
        spaces = {case.name: case.configurations(self._device) for case in cases}
        total = sum(min(len(space), self._plan.budget) for space in spaces.values())
        again, complete, facts = {}, True, {}
        try:
            with Trials(self._bench, [one for space in spaces.values() for one in space]) as trials:
                for space in spaces.values():
                    if self._out_of(SEARCH_SHARE):
                        break
                    searched.append(self._search(space, trials, total))
                    facts = trials.facts
            again = self._again(searched)
        except KeyboardInterrupt:
            complete = False
        machine = identity.machine(facts)["id"]
        floors = stored_noise(machine, noise)
        clocks = {one.default.name: _clock_of(again, one) for one in searched}
        known = {name: floors.spread(name, clock) for name, clock in clocks.items()} if floors else {}
        left = tuple(cases[len(searched) :])
        return Session(tuple(decided(searched, again, known)), left, facts, self._elapsed(), complete and not left)

    def _elapsed(self):
        return time.perf_counter() - self._begun

    def _out_of(self, share):
        return self._plan.seconds is not None and self._elapsed() > share * self._plan.seconds

    def _search(self, space, trials, total):
        """Every configuration that the search asks for, tried; the best few are right at the edges too."""
        by_choice = {tuple(case.configuration.items()): case for case in space}
        seconds, refused = {}, {}

        def measure(configuration):
            case = by_choice[tuple(configuration.items())]
            self._report(Progress(0, self._tried, total, case.task))
            self._tried += 1
            trial = trials(case)
            (seconds if trial.seconds is not None else refused)[case.task] = trial.seconds or trial.reason
            return trial.seconds

        search([case.configuration for case in space], measure, self._plan.strategy, self._plan.budget)
        tasks = {case.task: case for case in space}
        tried = len(seconds) + len(refused)
        best = []
        for task in best_few(seconds, space[0].task, len(seconds)):
            wrong = trials.at_edges(tasks[task]) if len(best) < self._plan.few else None
            if wrong:
                refused[task] = wrong
            elif len(best) < self._plan.few:
                best.append(tasks[task])
        return Searched(space[0], tried, refused, seconds, tuple(best), len(space))

    _tried = 0

    def _again(self, searched):
        """Fresh processes for the default, for the best, for the second best ... in turn."""
        with_best = [one for one in searched if one.best]
        sides = [[one.default for one in with_best]]
        sides += [[one.best[k] for one in with_best if len(one.best) > k] for k in range(self._plan.few)]
        total, done = sum(map(len, sides)) * self._plan.processes, iter(range(10**9))

        def report(process, case):
            self._report(Progress(process, next(done), total, case.task))

        end = None if self._plan.seconds is None else self._begun + self._plan.seconds
        return timed_in_turn(self._bench, sides, self._plan.processes, end=end, report=report)


def _clock_of(again, one):
    found = again.get(one.default.task)
    return found.metric if found else "cold_time"


def keep(session: Session, bench: Bench, folder: Path) -> Path | None:
    """Put what was decided into the machine's store; the path, None where nothing was. A store of another device of the
    same name makes way.
    """
    found = [_choice(one, session.facts, bench) for one in session.decisions if one.seconds[0] == one.seconds[0]]
    if not found:
        return None
    machine, device = identity.machine(session.facts)["id"], session.facts.get("device", "")
    path = path_for(machine, folder)
    kept = read_kept(path)
    if kept is None or kept.misfit(device, bench.backend):
        kept = Kept(machine, device, bench.backend)
    return write_kept(kept.with_choices(found), path)


def _choice(one: Decided, facts, bench):
    commit, _ = identity.commit_of(bench.catalogue.folder)
    case = one.searched.default
    return Choice(
        kernel=case.kernel,
        workload=dict(case.workload),
        configuration=one.chosen.configuration,
        default=case.configuration,
        seconds=one.seconds,
        speedup=one.speedup,
        interval=one.interval,
        reason=one.reason,
        tried=one.searched.tried,
        refused=len(one.searched.refused),
        source=launched(case.spec),
        toolchain=toolchain_of(facts),
        created=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", ""),
        commit=commit,
    )
