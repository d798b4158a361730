"""The persistent executor: an item is submitted by writing one word, and served without a launch.

    with Executor({"te": case}) as executor:
        executor.write("te", "x_past", values)
        executor.submit("te").result()
        mean = executor.read("te", "mean")

The queue kernel runs in a worker process. A watchdog ends that process when an item does not answer within
`QueueSettings.timeout`, when the kernel's pulse stops, or when the process dies; another one takes its place and serves
the waiting items by launching the fused kernels. The item that was under way fails with the reason; nothing is lost
without a report (`Executor.incidents`).
"""

import time
from collections.abc import Iterable, Mapping
from threading import RLock
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from prism_bench.errors import BackendUnavailable, PrismBenchError, QueueFull, UsageError, unknown
from prism_bench.extensions.persistent.pending import REST_SECONDS, Pending
from prism_bench.extensions.persistent.service import Service, drained
from prism_bench.extensions.persistent.settings import LAUNCHES, Incident, QueueSettings
from prism_bench.extensions.persistent.watchdog import Watchdog
from prism_bench.spec.case import Case
from prism_bench.units import count_text

DEFAULT = QueueSettings()
LOOKS = 10  # checks of the watchdog within one timeout


class Executor:
    """Server of the cases of `programs`, by name; None is the empty item.

    BackendUnavailable where the backend is missing, UsageError where a case cannot be served. Any thread may use it.
    """

    def __init__(
        self, programs: Mapping[str, Case | None], backend: str = "cuda", settings: QueueSettings = DEFAULT
    ) -> None:
        self.settings, self.backend = settings, backend
        self.incidents: list[Incident] = []
        self.closed: str | None = None
        self._cases, self._lock = dict(programs), RLock()
        self._written: dict[tuple[str, str], np.ndarray] = {}
        self._numbers = {name: number for number, name in enumerate(self._cases)}
        self._service = Service(self._cases, backend, settings, settings.form)
        self._watchdog = Watchdog(self._check, settings.timeout / LOOKS)

    @property
    def form(self) -> str:
        """The form in which items are served now: `persistent` or `launches`."""
        return self._service.form

    @property
    def reason(self) -> str | None:
        """Why items are not served in the form of the settings; None where they are."""
        return self.incidents[-1].reason if self.incidents else self._service.reason

    @property
    def pid(self) -> int:
        """The number of the worker's process."""
        return self._service.process.pid

    def submit(self, name: str) -> Pending:
        """Submit one item; QueueFull where no slot becomes free within `QueueSettings.patience`."""
        number = self._numbers.get(name)
        if number is None:
            raise unknown("program", name, self._numbers)
        item = Pending(name, number)
        if not self._place(item):
            self._press(item)
        return item

    def write(self, name: str, array: str, values: ArrayLike) -> None:
        """Copy the values into the program's array, where they stay, after all submitted items are done."""
        field, values = self._service.field(name, array), np.asarray(values)
        if values.shape != field.shape:
            raise UsageError(f"{name}: {array} has shape {field.shape}, not {values.shape}")
        self.drain()
        with self._lock:
            self._written[name, array] = np.array(values, field.dtype)
            self._service.write(name, array, self._written[name, array])

    def read(self, name: str, array: str) -> np.ndarray:
        """Return a copy of the program's array, after all submitted items are done."""
        field = self._service.field(name, array)
        self.drain()
        with self._lock:
            content = self._service.read(name, array, field.nbytes)
        return np.frombuffer(content, field.dtype).reshape(field.shape).copy()

    def drain(self) -> None:
        """Return when all submitted items are done; BackendUnavailable where they are not in time."""
        with self._lock:
            items = self._service.unfinished()
        drained(items, self.settings.timeout * (1 + len(items)))

    def close(self) -> None:
        """Serve all submitted items, then stop; items fail of a worker that does not end within the timeout."""
        self._watchdog.stop()
        with self._lock:
            if not self.closed:
                self.closed = "it was closed"
                self._service.stop()
                self._service.end()
                _fail(self._service.unfinished(), "the executor was closed before it was served")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _place(self, item: Pending) -> bool:
        with self._lock:
            if self.closed:
                raise BackendUnavailable(f"the executor serves no more: {self.closed}")
            return self._service.place(item)

    def _press(self, item: Pending) -> None:
        """Wait while the queue is full; QueueFull after the patience of the settings."""
        limit = time.monotonic() + self.settings.patience
        while time.monotonic() < limit:
            time.sleep(REST_SECONDS)
            if self._place(item):
                return
        raise QueueFull(f"all {count_text(self.settings.slots, 'slot')} of the queue are taken, and "
                        f"none became free within {self.settings.patience:g} s; "
                        "wait for results, or give it more slots")  # fmt: skip

    def _check(self, now: float) -> None:
        """Replace the worker where something is wrong with it."""
        with self._lock:
            trouble = None if self.closed else self._service.trouble(now)
            if trouble:
                self._replace(trouble)

    def _replace(self, trouble: str) -> None:
        """Start another worker, which launches kernels; the item under way fails, the others are submitted again."""
        self._service.end()
        unfinished = self._service.unfinished()
        under_way, waiting = unfinished[0] if unfinished else None, unfinished[1:]
        self.incidents.append(
            Incident(trouble, (under_way.ticket, under_way.name) if under_way else None, len(waiting))
        )
        _fail([under_way] if under_way else [], f"given up: {trouble}; the worker was replaced")
        try:
            self._service = Service(self._cases, self.backend, self.settings, LAUNCHES)
            for (name, array), values in self._written.items():
                self._service.write(name, array, values)
        except (PrismBenchError, OSError) as error:
            self.closed = f"{trouble}; then no other worker came up: {error}"
            _fail(waiting, self.closed)
            return
        for item in waiting:
            self._service.place(item)


def _fail(items: Iterable[Pending], reason: str) -> None:
    for item in items:
        item.fail(reason)
