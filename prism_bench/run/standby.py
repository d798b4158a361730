"""Workers that are started before they are needed, and import and read the catalogue until they get their order.

That takes seconds, and must not fall between two cases that are timed: these processes do it while others compile and
verify. They open no device before they have an order.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from prism_bench.io.documents import json_line
from prism_bench.io.workers.handle import START_SECONDS, WorkerEnvironment
from prism_bench.io.workers.process import EventWorker, WorkerDied
from prism_bench.run.places import HERE
from prism_bench.spec.case import Case


class Standby(AbstractContextManager["Standby"]):
    """A worker for each list of `libraries`, imported in that order; those that nobody took end with the block.

    With a `catalogue` they read its specs, too.
    """

    def __init__(
        self, libraries: Sequence[Sequence[str]], place: WorkerEnvironment = HERE, catalogue: Path | None = None
    ) -> None:
        self._libraries, self._place, self._catalogue = libraries, place, catalogue
        self._workers: deque[EventWorker] = deque()

    def __enter__(self) -> "Standby":
        for names in self._libraries:
            worker = EventWorker(self._place)
            self._workers.append(worker)
            catalogue = {"catalogue": str(self._catalogue.resolve())} if self._catalogue else {}
            worker.send(json_line({"libraries": list(names), **catalogue}))
        return self

    def __exit__(self, *exception: object) -> None:
        while self._workers:
            self._workers.popleft().end()

    def settle(self) -> None:
        """Wait until all have imported their libraries, so that none of that happens while something is timed."""
        for worker in list(self._workers):
            try:
                while "imported" not in worker.receive(None, START_SECONDS):
                    pass
            except WorkerDied:
                self._workers.remove(worker)
                worker.end()

    def take(self) -> EventWorker | None:
        """Return the next worker, which waits for an order; None where none is left that runs."""
        while self._workers:
            worker = self._workers.popleft()
            if worker.is_alive():
                return worker
            worker.end()
        return None


def libraries_of(cases: Iterable[Case]) -> list[str]:
    """Return the libraries that the peers of the cases ask for, by name: first the array packages."""
    named = {case.spec.peer(name).library for case in cases for name in case.spec.peers}
    return [one.name for one in sorted(named, key=lambda one: (one.module != one.arrays, one.name))]
