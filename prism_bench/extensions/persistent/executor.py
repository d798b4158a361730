"""The persistent executor: items are asked for by writing one word, and served without a launch.

    with Executor({"te": case}) as executor:
        executor.write("te", "x_past", values)
        executor.submit("te").result()
        mean = executor.read("te", "mean")

The queue kernel runs in a process of its own. A watchdog ends that process when an item does not answer within
`Settings.timeout`, when the kernel's pulse stops, or when the process dies; another one takes its place and
serves what was asked for by launching the fused kernels. The item that was under way is given up and says so; nothing
is lost without a report (`Executor.incidents`).
"""

import time
from collections.abc import Mapping
from threading import RLock

import numpy as np

from prism_bench.case import Case
from prism_bench.errors import BackendUnavailable, PrismBenchError, QueueFull, UsageError, unknown
from prism_bench.extensions.persistent.pending import REST_SECONDS, Pending
from prism_bench.extensions.persistent.program import Field
from prism_bench.extensions.persistent.service import Service, drained
from prism_bench.extensions.persistent.settings import LAUNCHES, Incident, Settings
from prism_bench.extensions.persistent.watchdog import Watchdog

DEFAULT = Settings()
LOOKS = 10  # of the watchdog within one timeout


class Executor:
    """Serves the cases of `programs` by name; None is the empty item.

    BackendUnavailable where the backend is missing, UsageError where a case cannot be served. Any thread may use it.
    """

    def __init__(self, programs: Mapping[str, Case | None], backend: str = "cuda", settings: Settings = DEFAULT):
        self.settings, self.backend, self.incidents, self.closed = settings, backend, [], None
        self._cases, self._written, self._lock = dict(programs), {}, RLock()
        self._numbers = {name: number for number, name in enumerate(self._cases)}
        self._service = Service(self._cases, backend, settings, settings.form)
        self._watchdog = Watchdog(self._check, settings.timeout / LOOKS)

    @property
    def form(self) -> str:
        """How items are served now: `persistent` or `launches`."""
        return self._service.form

    @property
    def reason(self) -> str | None:
        """Why items are not served in the form that was asked for; None where they are."""
        return self.incidents[-1].reason if self.incidents else self._service.reason

    @property
    def pid(self) -> int:
        """The worker's process."""
        return self._service.process.pid

    def submit(self, name: str) -> Pending:
        """Ask for one item. QueueFull where all slots are taken and none becomes free within `Settings.patience`."""
        number = self._numbers.get(name)
        if number is None:
            raise unknown("program", name, self._numbers)
        item = Pending(name, number)
        if not self._place(item):
            self._press(item)
        return item

    def write(self, name: str, array: str, values) -> None:
        """Copy the values into the program's array, after all items that were asked for; there they stay."""
        field, values = self._field(name, array), np.asarray(values)
        if values.shape != field.shape:
            raise UsageError(f"{name}: {array} has shape {field.shape}, not {values.shape}")
        self.drain()
        with self._lock:
            self._written[name, array] = np.array(values, field.dtype)
            self._service.write(name, array, self._written[name, array])

    def read(self, name: str, array: str) -> np.ndarray:
        """A copy of the program's array, after all items that were asked for."""
        field = self._field(name, array)
        self.drain()
        with self._lock:
            content = self._service.read(name, array, field.nbytes)
        return np.frombuffer(content, field.dtype).reshape(field.shape).copy()

    def drain(self) -> None:
        """Return when all items that were asked for are done; BackendUnavailable where they are not in time."""
        with self._lock:
            items = self._service.unfinished()
        drained(items, self.settings.timeout * (1 + len(items)))

    def close(self) -> None:
        """Serve what was asked for, then stop; what does not end within the timeout is ended, and its items fail."""
        self._watchdog.stop()
        with self._lock:
            if not self.closed:
                self.closed = "it was closed"
                self._service.stop()
                self._service.end()
                self._fail(self._service.unfinished(), "the executor was closed before it was served")

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def _place(self, item):
        with self._lock:
            if self.closed:
                raise BackendUnavailable(f"the executor serves no more: {self.closed}")
            return self._service.place(item)

    def _press(self, item):
        """Back-pressure: as long as the queue is full, its callers wait, and then are told."""
        limit = time.monotonic() + self.settings.patience
        while time.monotonic() < limit:
            time.sleep(REST_SECONDS)
            if self._place(item):
                return
        raise QueueFull(f"all {self.settings.slots} slots of the queue are taken, and none became free within "
                        f"{self.settings.patience:g} s; wait for results, or give it more slots")  # fmt: skip

    def _field(self, name, array) -> Field:
        programs = self._service.programs
        if name not in programs:
            raise unknown("program", name, programs)
        return programs[name].field(array)

    def _check(self, now):
        """The watchdog's question."""
        with self._lock:
            trouble = None if self.closed else self._service.trouble(now)
            if trouble:
                self._replace(trouble)

    def _replace(self, trouble):
        """Another worker, which launches kernels; the item under way is given up, the others are asked for anew."""
        self._service.end()
        under_way, *waiting = self._service.unfinished() or [None]
        self.incidents.append(
            Incident(trouble, (under_way.ticket, under_way.name) if under_way else None, len(waiting))
        )
        self._fail([under_way] if under_way else [], f"given up: {trouble}; the worker was replaced")
        try:
            self._service = Service(self._cases, self.backend, self.settings, LAUNCHES)
            for (name, array), values in self._written.items():
                self._service.write(name, array, values)
        except (PrismBenchError, OSError) as error:
            self.closed = f"{trouble}; then no other worker came up: {error}"
            self._fail(waiting, self.closed)
            return
        for item in waiting:
            self._service.place(item)

    @staticmethod
    def _fail(items, reason):
        for item in items:
            item.fail(reason)
