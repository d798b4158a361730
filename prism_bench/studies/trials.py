"""Cases in many configurations: one process verifies and times them in turn, fresh ones time the best few again."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from prism_bench.case import Case, edges_task
from prism_bench.catalogue import Catalogue
from prism_bench.measure import Criterion, shuffled
from prism_bench.measurement import Measurement, merged
from prism_bench.run.interleave import pair_settings
from prism_bench.run.places import HERE
from prism_bench.run.session import result_of
from prism_bench.run.settings import Settings, Watching, to_plain
from prism_bench.run_record import CaseResult, decode_case
from prism_bench.workers.conversation import Conversation
from prism_bench.workers.process import WorkerDied, died_at_start

CLOCKS = ("cold_time", "wall_time")  # a device's own, and a CPU's
QUICK = Criterion(precision=0.01, min_samples=8, max_samples=30, seconds=0.15)


@dataclass(frozen=True)
class Trial:
    """A case as it was launched, and what came of it."""

    case: Case
    result: CaseResult

    @property
    def measured(self) -> Measurement | None:
        """Its time, or None where it is not right or has none that can be trusted."""
        found = (self.result.measurement(clock) for clock in CLOCKS)
        return next((one for one in found if one and one.valid and one.samples), None)

    @property
    def seconds(self) -> float | None:
        """The median of its time."""
        return self.measured.median if self.measured else None

    @property
    def reason(self) -> str | None:
        """Why it has no time."""
        if self.seconds is not None:
            return None
        empty = next((one.reason for one in self.result.measurements if one.reason), "nothing was timed")
        return self.result.reason or empty


@dataclass(frozen=True)
class Bench:
    """Where trials are made: a backend's name, a catalogue, and the seconds that one trial may take."""

    backend: str
    catalogue: Catalogue
    timeout: float = 60.0

    def order(self, settings: Settings, *, verifies: bool, ahead: Sequence[str] = ()) -> dict:
        """What a process is told: the clock alone is read, there are no peers; the tasks `ahead` are compiled first."""
        return {
            "backend": self.backend,
            "catalogue": str(self.catalogue.folder.resolve()),
            "settings": to_plain(pair_settings(settings, CLOCKS)),
            "process": 1,
            "timed": True,
            "verifies": verifies,
            "ahead": list(ahead),
        }


class Trials:
    """Tries cases in one process, quickly: verified on one seed, then timed. Use it in a `with` block.

    What the tasks `ahead` launch is compiled by all cores before.
    """

    def __init__(self, bench: Bench, ahead: Sequence[str] = ()):
        criteria = Settings().criteria | dict.fromkeys(CLOCKS, QUICK)
        settings = Settings(seeds=(0,), criteria=criteria, watching=Watching(hertz=0))
        self._bench = bench
        self._conversation = Conversation(bench.order(settings, verifies=True, ahead=ahead), HERE)

    @property
    def facts(self) -> dict:
        """The device's facts, once something was tried."""
        return self._conversation.facts

    def __call__(self, case: Case) -> Trial:
        """The case verified and timed; what crashes or takes too long ends its process, and another goes on."""
        try:
            (plain,) = self._conversation.ask(case.task, self._bench.timeout)
        except WorkerDied as died:
            return Trial(case, _dead(case, died, self._bench))
        return Trial(case, decode_case(plain))

    def at_edges(self, case: Case) -> str | None:
        """What is wrong at the edges of the case's kernel as the case is launched, or None."""
        try:
            results = [decode_case(plain) for plain in self._conversation.ask(edges_task(case), self._bench.timeout)]
        except WorkerDied as died:
            return _dead(case, died, self._bench).reason
        return next((one.reason for one in results if one.status not in ("ok", "skipped")), None)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._conversation.__exit__(*exception)


def _dead(case, died, bench):
    if died.task is None:
        raise died_at_start(died, bench.backend)
    return result_of(case, died.status, f"{case.task}: {died.reason}")


def timed_in_turn(
    bench: Bench, sides: Sequence[Sequence[Case]], processes: int, *, end: float | None = None,
    report: Callable[[int, Case], None] = lambda process, case: None,
) -> Iterator[dict[str, Measurement]]:  # fmt: skip
    """Every case of every side timed in `processes` fresh processes of its side, the sides in turn: A B C, C B A, ...

    After each round it yields, by task, the measurements of all processes so far together. No further round starts that
    would not be over by `end`, as long as the last one took. The cases are right already; a case that fails all the
    same has no entry.
    """
    found: dict[str, list[Measurement]] = {}
    for number in range(1, processes + 1):
        begun = time.perf_counter()
        for side in sides if number % 2 else sides[::-1]:
            for trial in _round(bench, shuffled(side, 0, number), lambda case, n=number: report(n, case)):
                found.setdefault(trial.case.task, []).append(trial.measured)
        yield {task: merged(parts) for task, parts in found.items() if None not in parts}
        now = time.perf_counter()
        if end is not None and now + (now - begun) > end:
            return


def _round(bench, cases, report) -> Iterator[Trial]:
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
