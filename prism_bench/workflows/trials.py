"""Trials of cases in many configurations: one process verifies and times them, fresh ones time the best few again."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from prism_bench.catalogue import Catalogue
from prism_bench.io.workers.conversation import Conversation
from prism_bench.io.workers.process import WorkerDied, died_at_start
from prism_bench.measure import Criterion, shuffled
from prism_bench.record.measurement import Measurement, merged
from prism_bench.record.run_record import CaseResult, decode_case
from prism_bench.run.driver import rounds
from prism_bench.run.interleave import pair_settings
from prism_bench.run.orders import MeasuringOrder
from prism_bench.run.places import HERE
from prism_bench.run.session import result_of
from prism_bench.run.settings import Settings, Watching, to_plain
from prism_bench.spec.case import Case, edges_task

CLOCKS = ("cold_time", "wall_time")  # of a device, and of a CPU
QUICK = Criterion(precision=0.01, min_samples=8, max_samples=30, seconds=0.15)


@dataclass(frozen=True)
class Trial:
    """A case as it was launched, and its result."""

    case: Case
    result: CaseResult

    @property
    def measured(self) -> Measurement | None:
        """The time of the case, or None where it is not right or its time is invalid."""
        found = (self.result.measurement(clock) for clock in CLOCKS)
        return next((one for one in found if one and one.valid and one.samples), None)

    @property
    def seconds(self) -> float | None:
        """The median of the case's time."""
        return self.measured.median if self.measured else None

    @property
    def reason(self) -> str | None:
        """The reason why it has no time."""
        if self.seconds is not None:
            return None
        empty = next((one.reason for one in self.result.measurements if one.reason), "nothing was timed")
        return self.result.reason or empty


@dataclass(frozen=True)
class Bench:
    """Where trials run: a backend's name, a catalogue, and the seconds that one trial may take."""

    backend: str
    catalogue: Catalogue
    timeout: float = 60.0

    def order(self, settings: Settings, *, verifies: bool, ahead: Sequence[str] = ()) -> MeasuringOrder:
        """Return the order of a worker: no peers, one clock; the tasks `ahead` are compiled first."""
        return {
            "backend": self.backend, "catalogue": str(self.catalogue.folder.resolve()),
            "settings": to_plain(pair_settings(settings, CLOCKS)), "process": 1, "timed": True, "verifies": verifies,
            "ahead": list(ahead),
        }  # fmt: skip


class Trials:
    """Tries cases in one process, quickly: verified on one seed, then timed. Use it in a `with` block.

    The code of the tasks `ahead` is compiled on all cores before.
    """

    def __init__(self, bench: Bench, ahead: Sequence[str] = ()) -> None:
        criteria = Settings().criteria | dict.fromkeys(CLOCKS, QUICK)
        settings = Settings(seeds=(0,), criteria=criteria, watching=Watching(hertz=0))
        self._bench = bench
        self._conversation = Conversation(bench.order(settings, verifies=True, ahead=ahead), HERE)

    @property
    def facts(self) -> dict[str, Any]:
        """The device's facts, once a case was tried."""
        return self._conversation.facts

    def __call__(self, case: Case) -> Trial:
        """Verify and time the case; one that crashes or takes too long ends its process, and another continues."""
        try:
            (plain,) = self._conversation.ask(case.task, self._bench.timeout)
        except WorkerDied as died:
            return Trial(case, _dead(case, died, self._bench))
        return Trial(case, decode_case(plain))

    def at_edges(self, case: Case) -> str | None:
        """Return what is wrong at the edges of the case's kernel as the case is launched, or None."""
        try:
            results = [decode_case(plain) for plain in self._conversation.ask(edges_task(case), self._bench.timeout)]
        except WorkerDied as died:
            return _dead(case, died, self._bench).reason
        return next((one.reason for one in results if one.status not in ("ok", "skipped")), None)

    def __enter__(self) -> "Trials":
        return self

    def __exit__(self, *exception: object) -> None:
        self._conversation.__exit__(*exception)


def _dead(case: Case, died: WorkerDied, bench: Bench) -> CaseResult:
    if died.task is None:
        raise died_at_start(died, bench.backend)
    return result_of(case, died.status, f"{case.task}: {died.reason}")


def timed_in_turn(
    bench: Bench, sides: Sequence[Sequence[Case]], processes: int, *, end: float | None = None,
    report: Callable[[int, Case], None] = lambda process, case: None,
) -> Iterator[dict[str, Measurement]]:  # fmt: skip
    """Time every case of every side in `processes` fresh processes of its side, the sides in turn: A B C, C B A, ...

    Yields after each round, by task, the measurements of all processes so far together. No further round starts that
    would not be over by `end` if it took as long as the last one. The cases are verified already; a case that fails
    nevertheless has no entry.
    """
    found: dict[str, list[Measurement | None]] = {}

    def turn(side: Sequence[Case], number: int) -> None:
        for trial in _round(bench, shuffled(side, 0, number), lambda case: report(number, case)):
            found.setdefault(trial.case.task, []).append(trial.measured)

    for _ in rounds(sides, range(1, processes + 1), turn, end):
        timed = {task: [part for part in parts if part] for task, parts in found.items()}
        yield {task: merged(parts) for task, parts in timed.items() if len(parts) == len(found[task])}


def _round(bench: Bench, cases: Sequence[Case], report: Callable[[Case], None]) -> Iterator[Trial]:
    if not cases:
        return
    settings = replace(Settings(), seeds=(0,))
    with Conversation(bench.order(settings, verifies=False), HERE) as conversation:
        for case in cases:
            report(case)
            try:
                (plain,) = conversation.ask(case.task, bench.timeout)
                yield Trial(case, decode_case(plain))
            except WorkerDied as died:
                yield Trial(case, _dead(case, died, bench))
