"""Driver of tasks: sends them to worker processes, collects their results, and survives the workers that die."""

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from prism_bench.catalogue import Catalogue
from prism_bench.io.workers.events import WorkerEvent
from prism_bench.io.workers.handle import WorkerEnvironment
from prism_bench.io.workers.process import EventWorker, WorkerDied, begun, died_at_start, events_of, work
from prism_bench.record.run_record import CaseResult, decode_case
from prism_bench.run.places import HERE, timing
from prism_bench.run.record_builder import RecordBuilder
from prism_bench.run.standby import Standby

Side = TypeVar("Side")


@dataclass(frozen=True)
class Progress:
    """How far a run is: tasks `done` of `total`, the number of the process, and the task that begins.

    `stage` is what this part of the run does, where that is not plain from the number of the process.
    """

    process: int
    done: int
    total: int
    task: str
    stage: str = ""


class TaskDriver:
    """Base of every run: drives tasks through worker processes and keeps the results of each case or task.

    A worker that crashes or hangs costs its current task alone: another worker gets the rest. Where a peer of the task
    ended the worker, another worker does the task again without that peer. Subclasses define what they do at the
    beginning of a task (`begin`), under which name they keep results (`keep`), what they keep of a task that died with
    its worker (`lose`), and whether they can do it again without a peer (`avoid`).
    """

    def __init__(self, catalogue: Catalogue, backend: str, timeout: float, place: WorkerEnvironment = HERE) -> None:
        self._catalogue, self._backend, self._timeout, self._place = catalogue, backend, timeout, place
        self.results: dict[str, list[CaseResult]] = {}
        self.facts: dict[str, Any] = {}
        self.protocol: dict[str, Any] = {}
        self.monitor: list[dict[str, Any]] = []
        self._task = ""
        self.standby = Standby([])
        self._ahead: tuple[Mapping[str, object], EventWorker] | None = None

    @property
    def has_results(self) -> bool:
        """Whether any result has arrived."""
        return bool(self.results)

    @property
    def builder(self) -> RecordBuilder:
        """The builder of this run's records."""
        return RecordBuilder(self._catalogue, self._backend, self.facts)

    def is_right(self, name: str) -> bool:
        """Return whether no result under this name has failed so far."""
        return all(result.status == "ok" for result in self.results.get(name, ()))

    def begin(self, task: str, process: int) -> None:
        """Notice that the process has begun with the task."""
        raise NotImplementedError

    def keep(self, task: str, results: Sequence[CaseResult]) -> None:
        """Keep the results of a task that has ended."""
        raise NotImplementedError

    def lose(self, death: WorkerDied, task: str) -> None:
        """Keep what is known of a task whose worker died."""
        raise NotImplementedError

    def avoid(self, death: WorkerDied, task: str) -> bool:
        """Leave out the peer that ended the worker from now on; False where the task cannot be done without it."""
        return False

    def take(self, event: WorkerEvent, process: int, finished: list[str]) -> None:
        """Take one event of a worker; a task that ends with it is added to `finished`."""
        self.facts = event.get("facts", self.facts)
        self.protocol = event.get("protocol", self.protocol)
        self.monitor += [event["monitor"]] if "monitor" in event else []
        if "begin" in event:
            self._task = event["begin"]
            self.begin(self._task, process)
        if "results" in event:
            task = event.get("task", self._task)
            self.keep(task, [decode_case(plain) for plain in event["results"]])
            finished.append(task)

    def drive(self, order_for: Callable[[list[str]], Mapping[str, object]], tasks: Iterable[str], process: int) -> None:
        """Send the tasks to a worker, and what is left to another one each time that it dies.

        `order_for` returns the order of a worker for its tasks. BackendUnavailable where a worker does not start.
        """
        left = list(tasks)
        while left:
            finished = self.send(order_for(left), process)
            left = [task for task in left if task not in finished]

    def send(self, order: Mapping[str, object], process: int) -> list[str]:
        """Send an order to one worker; return the tasks that are done with, one of them perhaps lost."""
        finished: list[str] = []
        known, worker = self._ahead or (None, None)
        if worker and known == order:
            self._ahead = None
            self.follow(events_of(worker, self._timeout), process, finished)
        else:
            place = timing(self._place) if order.get("timed") else self._place
            self.follow(work(order, self._timeout, place, self.standby.take()), process, finished)
        return finished

    @contextmanager
    def beginning(self, order: Mapping[str, object]) -> Generator[None]:
        """Let a worker begin with an order, whose events `send` takes when it sends the same order within the block."""
        self._ahead = order, begun(order, self._place, self.standby.take())
        try:
            yield
        finally:
            if self._ahead:
                self._ahead[1].end()
            self._ahead = None

    def follow(self, events: Iterable[WorkerEvent | WorkerDied], process: int, finished: list[str]) -> None:
        """Take all events; a task whose worker died is lost."""
        try:
            for event in events:
                if isinstance(event, WorkerDied):
                    self._bury(event, finished)
                else:
                    self.take(event, process, finished)
        except WorkerDied as death:
            self._bury(death, finished)

    def _bury(self, death: WorkerDied, finished: list[str]) -> None:
        """Lose the task of a dead worker, unless it died between two tasks, or a peer ended it that can be avoided."""
        if death.task is None:
            raise died_at_start(death, self._backend)
        if death.task not in finished and not (death.peer and self.avoid(death, death.task)):
            finished.append(death.task)
            self.lose(death, death.task)


def rounds(
    sides: Sequence[Side], numbers: range, turn: Callable[[Side, int], object], end: float | None = None
) -> Iterator[int]:
    """Let the sides take turns in each round (A B, B A, A B, ...), and yield the number of each round after it.

    No further round starts that would not be over by `end` (of `time.perf_counter`) if it took as long as the last.
    """
    for number in numbers:
        begun = time.perf_counter()
        for side in sides if (number - numbers.start) % 2 == 0 else sides[::-1]:
            turn(side, number)
        yield number
        now = time.perf_counter()
        if end is not None and now + (now - begun) > end:
            return
