"""Code of kernels, compiled on all cores by one process while others verify: whoever needs it later only loads it."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from threading import Thread

from prism_bench.io.workers.handle import WorkerEnvironment
from prism_bench.io.workers.process import EventWorker, WorkerDied, work
from prism_bench.run.places import HERE


class KernelCompilation(AbstractContextManager["KernelCompilation"]):
    """The compilation of what an order's `ahead` names, in the background of a `with` block.

    What is left at its end is given up, unless `wait` was called. What fails is compiled again by whoever needs it,
    which reports why.
    """

    def __init__(self, order: Mapping[str, object], timeout: float, place: WorkerEnvironment = HERE) -> None:
        """End the process where a library takes longer than `timeout` seconds."""
        self._order, self._timeout, self._place = order, timeout, place

    def __enter__(self) -> "KernelCompilation":
        self._worker = EventWorker(self._place)
        self._thread = Thread(target=self._compile, daemon=True)
        self._thread.start()
        return self

    def wait(self) -> None:
        """Wait for the end."""
        self._thread.join()

    def __exit__(self, *exception: object) -> None:
        self._worker.kill()
        self._thread.join()
        self._worker.end()

    def _compile(self) -> None:
        with suppress(WorkerDied):
            for _ in work(self._order, self._timeout, self._place, self._worker):
                pass
