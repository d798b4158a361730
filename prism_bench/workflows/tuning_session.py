"""A tuning session: search each case's configurations, time the best against the default."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count
from math import inf
from pathlib import Path
from typing import Any

from prism_bench.analysis.compare.estimate import Spread
from prism_bench.analysis.compare.noise import stored_noise
from prism_bench.analysis.compare.selection import Decided, Least, Searched, decided
from prism_bench.catalogue import Catalogue, discover
from prism_bench.errors import BackendUnavailable, PrismBenchError, ResultsError
from prism_bench.io import files
from prism_bench.io.workers import Conversation, WorkerDied, died_at_start
from prism_bench.measure import Criterion, shuffled
from prism_bench.record import identity
from prism_bench.record.measurement import Measurement, merged
from prism_bench.record.run_record import CaseResult, decode_case
from prism_bench.run import Progress
from prism_bench.run.builds import checked_out, pair_settings
from prism_bench.run.pool import HERE, MeasuringOrder, rounds
from prism_bench.run.session import result_of
from prism_bench.run.settings import Settings, Watching, to_plain
from prism_bench.spec.case import Case, Device, edges_task
from prism_bench.workflows.tuning.choice import (
    KeptChoices,
    TuningChoice,
    launched,
    path_for,
    read_kept,
    toolchain_of,
    write_kept,
)
from prism_bench.workflows.tuning.search import best_few, search

# Trials: one process verifies and times the configurations of cases, fresh processes time the best few again.

_CLOCKS = ("cold_time", "wall_time")  # of a device, and of a CPU
_ENERGIES = (*_CLOCKS, "hot_time", "energy")  # a launch's energy is that of the hot time's replay
_QUICK = Criterion(precision=0.01, min_samples=8, max_samples=30, seconds=0.15)


@dataclass(frozen=True)
class Trial:
    """A launched case and its result, of which what is `least` counts."""

    case: Case
    result: CaseResult
    least: Least = "time"

    @property
    def measured(self) -> Measurement | None:
        """The measurement that counts, or None if the case's output is wrong or the measurement is invalid."""
        return self._valid(_CLOCKS if self.least == "time" else ("energy",))

    @property
    def seconds(self) -> float | None:
        """The median of the case's time."""
        timed = self._valid(_CLOCKS)
        return timed.median if timed else None

    @property
    def value(self) -> float | None:
        """The median of what counts; None without a time, too."""
        return self.measured.median if self.measured and self.seconds is not None else None

    @property
    def reason(self) -> str | None:
        """The reason why the case has no value."""
        if self.value is not None:
            return None
        reasons = [measurement.reason for measurement in self.result.measurements if measurement.reason]
        nothing = "nothing was timed" if self.seconds is None else "this device has no energy counter"
        return self.result.reason or next(iter(reasons), nothing)

    def _valid(self, metrics: Sequence[str]) -> Measurement | None:
        known = (self.result.measurement(metric) for metric in metrics)
        return next((measured for measured in known if measured and measured.valid and measured.samples), None)


@dataclass(frozen=True)
class Bench:
    """Environment of trials: a backend's name, a catalogue, the seconds that a trial may take, and what is `least`."""

    backend: str
    catalogue: Catalogue
    timeout: float = 60.0
    least: Least = "time"

    def order(self, settings: Settings, *, verifies: bool, ahead: Sequence[str] = ()) -> MeasuringOrder:
        """Return the order of a worker: no peers, one clock; the tasks `ahead` are compiled first."""
        return {
            "backend": self.backend,
            "catalogue": str(self.catalogue.folder.resolve()),
            "settings": to_plain(pair_settings(settings, _CLOCKS if self.least == "time" else _ENERGIES)),
            "process": 1,
            "timed": True,
            "verifies": verifies,
            "ahead": list(ahead),
        }


class Trials:
    """Quick trials in one process: verified on one seed, then timed. Use them in a `with` block.

    The code of the tasks `ahead` is compiled on all cores first.
    """

    def __init__(self, bench: Bench, ahead: Sequence[str] = ()) -> None:
        criteria = Settings().criteria | dict.fromkeys(_CLOCKS, _QUICK)
        watching = Watching(hertz=0) if bench.least == "time" else Watching()
        settings = Settings(seeds=(0,), criteria=criteria, watching=watching)
        self._bench = bench
        self._conversation = Conversation(bench.order(settings, verifies=True, ahead=ahead), HERE)

    @property
    def facts(self) -> dict[str, Any]:
        """The device's facts, available after the first trial."""
        return self._conversation.facts

    def __call__(self, case: Case) -> Trial:
        """Verify and time the case; a case that crashes or times out ends its process, and another continues."""
        try:
            (plain,) = self._conversation.ask(case.task, self._bench.timeout)
        except WorkerDied as died:
            return Trial(case, _dead(case, died, self._bench))
        return Trial(case, decode_case(plain), self._bench.least)

    def at_edges(self, case: Case) -> str | None:
        """Return why the kernel fails at its edges in the case's configuration, or None."""
        try:
            results = [decode_case(plain) for plain in self._conversation.ask(edges_task(case), self._bench.timeout)]
        except WorkerDied as died:
            return _dead(case, died, self._bench).reason
        return next((result.reason for result in results if result.status not in ("ok", "skipped")), None)

    def __enter__(self) -> "Trials":
        return self

    def __exit__(self, *exception: object) -> None:
        self._conversation.__exit__(*exception)


def _dead(case: Case, died: WorkerDied, bench: Bench) -> CaseResult:
    if died.task is None:
        raise died_at_start(died, bench.backend)
    return result_of(case, died.status, f"{case.task}: {died.reason}")


def timed_in_turn(
    bench: Bench,
    sides: Sequence[Sequence[Case]],
    processes: int,
    *,
    end: float | None = None,
    report: Callable[[int, Case], None] = lambda process, case: None,
) -> Iterator[dict[str, Measurement]]:
    """Time every case of every side in `processes` fresh processes of its side, the sides in turn: A B C, C B A, ...

    Yield after each round, by task, the merged measurements of all processes so far. No further round starts that
    would not be over by `end` if it took as long as the last round. The cases are verified already; a case that fails
    nevertheless has no entry.
    """
    measurements: dict[str, list[Measurement | None]] = {}

    settings = replace(Settings(), seeds=(0,))

    def turn(side: Sequence[Case], number: int) -> None:
        if not side:
            return
        with Conversation(bench.order(settings, verifies=False), HERE) as conversation:
            for case in shuffled(side, 0, number):
                report(number, case)
                try:
                    (plain,) = conversation.ask(case.task, bench.timeout)
                    result = decode_case(plain)
                except WorkerDied as died:
                    result = _dead(case, died, bench)
                measurements.setdefault(case.task, []).append(Trial(case, result, bench.least).measured)

    for _ in rounds(sides, range(1, processes + 1), turn, end):
        timed = {task: [part for part in parts if part] for task, parts in measurements.items()}
        yield {task: merged(parts) for task, parts in timed.items() if len(parts) == len(measurements[task])}


# The session: search each case's configurations, time the best again, decide and keep.

FEW = 3  # of the best, timed again next to the default
SEARCH_SHARE = 0.6  # of the available seconds: the rest is for fresh processes


@dataclass(frozen=True)
class TuningPlan:
    """Effort of a session: `budget` configurations of a case, and the `FEW` best again in `processes`."""

    budget: int = 64
    processes: int = 5
    seconds: float | None = None


@dataclass(frozen=True)
class TuningFound:
    """Measurements of a session: the searched cases, times of fresh processes by task, and facts of the device."""

    searched: tuple[Searched, ...] = ()
    again: Mapping[str, Measurement] = field(default_factory=dict[str, Measurement])
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def decisions(self, noise: Path) -> tuple[Decided, ...]:
        """Return the decision on each case; `noise` is the folder of noise floors."""
        floors = stored_noise(identity.machine(self.facts)["id"], noise)
        spreads: dict[str, Spread] = {}
        if floors:
            for searched in self.searched:
                measurement = self.again.get(searched.default.task)
                spread = floors.spread(searched.default.name, measurement.metric) if measurement else None
                if spread is not None:
                    spreads[searched.default.name] = spread
        return tuple(decided(self.searched, self.again, spreads))


@dataclass(frozen=True)
class TuningResult:
    """Decisions of a session, the cases `left` for lack of time, and facts of the device."""

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
        """Return the decisions; Ctrl-C, or a backend that no longer starts, ends the session with those so far.

        Interim results go to `keep` after the search and after every round.
        """
        complete = True
        try:
            with files.allowed():
                for _ in self.steps(cases):
                    keep(self._result(cases, noise, complete=False))
        except (KeyboardInterrupt, BackendUnavailable):
            if not self._searched:  # there is nothing to report
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
        """Search case by case until the search's share of the time is over.

        Spaces that are tried whole are compiled first, with the edges of their kernels.
        """
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
                self._searched.append(_search(space, trial, trials.at_edges, self._plan, self._bench.least))
                self._facts = trials.facts

    def _rounds(self) -> Iterator[None]:
        """Time the default, the best, the second best ... in turn in fresh processes; yield before and after rounds."""
        yield
        with_best = [searched for searched in self._searched if searched.best]
        sides = [[searched.default for searched in with_best]]
        sides += [[searched.best[k] for searched in with_best if len(searched.best) > k] for k in range(FEW)]
        total, done = sum(map(len, sides)) * self._plan.processes, count()

        def report(process: int, case: Case) -> None:
            self._report(Progress(process, next(done), total, case.task))

        end = None if self._plan.seconds is None else self._begun + self._plan.seconds
        rounds = self._plan.processes if with_best else 0
        for times in timed_in_turn(self._bench, sides, rounds, end=end, report=report):
            self._again = times
            yield


class _NotLaunched(Exception):
    """The machine cannot launch a case's default."""


def _search(
    space: Sequence[Case],
    trial: Callable[[Case], Trial],
    at_edges: Callable[[Case], str | None],
    plan: TuningPlan,
    least: Least,
) -> Searched:
    """Try each configuration that the search chooses; verify the best few at the edges, too."""
    by_choice = {tuple(case.configuration.items()): case for case in space}
    tasks = {case.task: case for case in space}
    seconds: dict[str, float] = {}
    values: dict[str, float] = {}
    refused: dict[str, str] = {}

    def measure(configuration: Mapping[str, Any]) -> float | None:
        result = trial(by_choice[tuple(configuration.items())])
        task, value, time_of = result.case.task, result.value, result.seconds
        if task == space[0].task and result.result.status == "skipped":
            raise _NotLaunched(result.reason)
        if value is None or time_of is None:
            if task == space[0].task and time_of is not None:
                raise BackendUnavailable(f"{task}: no energy to tune by: {result.reason}")
            refused[task] = result.reason or ""
            return None
        seconds[task], values[task] = time_of, value
        return value

    try:
        search([case.configuration for case in space], measure, plan.budget)
    except _NotLaunched as error:
        return Searched(space[0], 0, {space[0].task: str(error)}, {}, (), len(space), least, skipped=True)
    tried = len(values) + len(refused)
    best: list[Case] = []
    for task in best_few(values, space[0].task):
        if len(best) == FEW:
            break
        if wrong := at_edges(tasks[task]):
            refused[task] = wrong
        else:
            best.append(tasks[task])
    joules = values if least == "energy" else {}
    return Searched(space[0], tried, refused, seconds, tuple(best), len(space), least, joules)


def require_readable(facts: Mapping[str, Any], store: Path, noise: Path) -> None:
    """Raise ResultsError if this machine's choices or noise floors cannot be read, before anything is measured."""
    machine = identity.machine(facts)["id"]
    read_kept(path_for(machine, store))
    stored_noise(machine, noise)


def keep(session: TuningResult, bench: Bench, folder: Path) -> Path | None:
    """Put the settled decisions into the machine's store and return its path, None if there are none.

    A store of another device of the same name is replaced.
    """
    commit, _ = identity.commit_of(bench.catalogue.folder)
    choices = [_choice(decision, session.facts, commit) for decision in session.decisions if decision.settled]
    if not choices:
        return None
    machine, device = identity.machine(session.facts)["id"], session.facts.get("device", "")
    path = path_for(machine, folder)
    kept = read_kept(path)
    if kept is None or kept.misfit(device, bench.backend):
        kept = KeptChoices(machine, device, bench.backend)
    return write_kept(kept.with_choices(choices), path)


def _choice(decision: Decided, facts: Mapping[str, Any], commit: str | None) -> TuningChoice:
    searched, case = decision.searched, decision.searched.default
    seconds, joules = decision.values, None
    if searched.least == "energy":
        both = case.task, decision.chosen.task
        seconds, joules = (searched.seconds[both[0]], searched.seconds[both[1]]), decision.values
    return TuningChoice(
        kernel=case.kernel,
        workload=dict(case.workload),
        configuration=decision.chosen.configuration,
        default=case.configuration,
        seconds=seconds,
        speedup=decision.gain,
        interval=decision.interval,
        reason=decision.reason,
        tried=searched.tried,
        refused=len(searched.refused),
        source=launched(case.spec),
        toolchain=toolchain_of(facts),
        created=identity.timestamp(datetime.now(UTC)),
        commit=commit,
        least=searched.least,
        joules=joules,
    )


# Restamping: stored choices are updated to the catalogue without a device, and kept if their launch is unchanged.


@dataclass(frozen=True)
class Restamped:
    """The choices that still hold, the number of `changed` hashes, and the `dropped` choices with reasons."""

    kept: tuple[TuningChoice, ...]
    changed: int
    dropped: tuple[tuple[TuningChoice, str], ...]


def restamp(path: Path, catalogue: Catalogue) -> Restamped:
    """Rewrite the choices at `path` for the catalogue; ResultsError if the file is missing.

    The commit of each choice is checked out. A choice whose launch was the same there gets today's hash. A choice whose
    launch changed since, or whose kernel is gone, is dropped.
    """
    kept = read_kept(path)
    if kept is None:
        raise ResultsError(f"{path}: there is no such file; 'prism-bench tune' makes one")
    with ExitStack() as stack:
        then = _Then(catalogue, stack)
        result = judged(kept.choices, lambda name: _hash(catalogue, name), then.hash)
    write_kept(KeptChoices(kept.machine, kept.device, kept.backend, result.kept), path)
    return result


def judged(
    choices: Sequence[TuningChoice], now: Callable[[str], str | None], then: Callable[[str, str], str | None]
) -> Restamped:
    """Keep the choices whose hash `now` (of a kernel) and `then` (of a kernel and commit) is the same; drop others."""
    kept: list[TuningChoice] = []
    dropped: list[tuple[TuningChoice, str]] = []
    changed = 0
    for choice in choices:
        today = now(choice.kernel)
        if today is None:
            dropped.append((choice, "the catalogue has no such kernel"))
        elif choice.source == today:
            kept.append(choice)
        elif choice.commit is None:
            dropped.append((choice, "its commit is unknown"))
        elif then(choice.kernel, choice.commit) != today:
            dropped.append((choice, f"what is launched changed since {choice.commit[:9]}"))
        else:
            kept.append(replace(choice, source=today))
            changed += 1
    return Restamped(tuple(kept), changed, tuple(dropped))


class _Then:
    """The same catalogue at other commits, each checked out once."""

    def __init__(self, catalogue: Catalogue, stack: ExitStack) -> None:
        self._folder, self._stack = catalogue.folder.resolve(), stack
        self._catalogues: dict[str, Catalogue] = {}

    def hash(self, kernel: str, commit: str) -> str | None:
        """Return the hash of a kernel at a commit, None if the catalogue lacked it."""
        if commit not in self._catalogues:
            top = next((parent for parent in self._folder.parents if (parent / ".git").exists()), self._folder.parent)
            tree = self._stack.enter_context(checked_out(commit, top))
            self._catalogues[commit] = discover(tree / self._folder.relative_to(top))
        return _hash(self._catalogues[commit], kernel)


def _hash(catalogue: Catalogue, kernel: str) -> str | None:
    name, _, variant = kernel.partition(":")
    try:
        spec = catalogue.kernel(name)
        return launched(spec.with_variant(variant) if variant else spec)
    except PrismBenchError:
        return None
