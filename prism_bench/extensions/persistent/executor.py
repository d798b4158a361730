"""The persistent executor: an item is submitted by writing one word; its handles, faults and watchdog."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event, RLock, Thread
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from prism_bench.backends import Runnable
from prism_bench.errors import BackendUnavailable, ItemFailed, PrismBenchError, QueueFull, UsageError, unknown
from prism_bench.extensions.persistent.process import (
    ArrayContent,
    ArrayWritten,
    DeviceMessage,
    ReadArray,
    ServingMessage,
    ServingProcess,
    WriteArray,
    pack_order,
)
from prism_bench.extensions.persistent.queue import (
    CHAINS,
    NUMBER_BITS,
    STOP_PROGRAM,
    Field,
    error_text,
    number_of,
    program_of,
    served,
    slot_of,
)
from prism_bench.spec.case import Case
from prism_bench.spec.inputs import InputArray
from prism_bench.units import count_text

# Submitted items, which a caller holds until they are served.

_SPINS = 10_000  # reads of the answer, about a millisecond, before a waiting caller begins to rest between them
_REST_SECONDS = 50e-6


class Pending:
    """An item of the program `name` with that `number`; done by an answer or by a failure."""

    __slots__ = ("name", "number", "ticket", "_place", "_failure", "_settled")

    def __init__(self, name: str, number: int) -> None:
        self.name, self.number = name, number
        self._failure: ItemFailed | None = None
        self._settled = False

    def place(self, ticket: int, answers: Sequence[int], slot: int) -> None:
        """Set the ticket of the item, and the board's answers and slot for it."""
        self.ticket, self._place = ticket, (answers, slot, ticket << NUMBER_BITS)

    def done(self) -> bool:
        """Return whether the item has been served, or never will be."""
        answers, slot, least = self._place
        return self._settled or answers[slot] >= least

    def result(self, timeout: float | None = None) -> None:
        """Return when the item has been served.

        ItemFailed if the item gave an error or the executor gave it up; TimeoutError after `timeout` seconds: the item
        continues, and may be waited for again.
        """
        answers, slot, least = self._place
        for _ in range(_SPINS):
            if answers[slot] >= least or self._settled:
                break
        limit = None if timeout is None else time.monotonic() + timeout
        while not self.done():  # by now the executor may have moved it to another board
            if limit is not None and time.monotonic() >= limit:
                raise TimeoutError(f"item {self.ticket} ({self.name}) is not served within {timeout:g} s")
            time.sleep(_REST_SECONDS)
        self.settle()
        if self._failure:
            raise self._failure

    def settle(self) -> None:
        """Keep the answer before another item takes the slot."""
        if self._settled:
            return
        answers, slot, _ = self._place
        error = number_of(answers[slot])
        if error:
            self.fail(error_text(error))
        self._settled = True

    def fail(self, reason: str) -> None:
        """Mark the item as failed for the reason."""
        self._failure = ItemFailed(f"item {self.ticket} ({self.name}): {reason}")
        self._settled = True


# Settings of the executor, and its reports of faults.

LAUNCHES, PERSISTENT = "launches", "persistent"
FORMS = (PERSISTENT, LAUNCHES)


@dataclass(frozen=True)
class QueueSettings:
    """Settings of the executor.

    `slots` items may wait (2, 4, 8 ...), each may take `timeout` seconds, and `submit` waits `patience` seconds for a
    slot. `form` is `persistent`, or `launches` of the same kernels. `source` is that of the queue kernel, in which
    `virtual_grid.cuh` precedes all kernels that are served.
    """

    slots: int = 64
    timeout: float = 5.0
    patience: float = 1.0
    form: str = PERSISTENT
    source: Path = CHAINS

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise unknown("form", self.form, FORMS)
        if min(self.timeout, self.patience) <= 0:
            raise UsageError(f"timeout ({self.timeout}) and patience ({self.patience}) are seconds above 0")


@dataclass(frozen=True)
class Incident:
    """A fault that the watchdog acted on.

    It has the `reason`, the `item` that was given up (its ticket and name, None if no item was under way), and the
    number of other items that were `moved` to the new worker.
    """

    reason: str
    item: tuple[int, str] | None
    moved: int


# One worker with its queue: items go in, answers come out, and faults are noticed.

_PULSE_SECONDS = 1.0  # a pulse may stop for less: hosts are busy


class _Service:
    """The cases, by name, in a new process and on a new board.

    `form` is the form of serving, `reason` explains a form other than that of the settings. BackendUnavailable if the
    backend is missing, UsageError if a case cannot be served.
    """

    def __init__(self, cases: Mapping[str, Case | None], backend: str, settings: QueueSettings, form: str) -> None:
        self._settings = settings
        self.process = ServingProcess(backend, settings.slots)
        try:
            device = self.process.receive(DeviceMessage).message.device()
            self.programs = {name: program_of(name, case, device) for name, case in cases.items()}
            programs = tuple(self.programs.values())
            served(programs)  # refuse here, not in another process, what cannot be served
            self.process.send(*pack_order(programs, settings.source, form))
            serving = self.process.receive(ServingMessage).message
        except BaseException:
            self.process.end()
            raise
        self.form, self.reason = serving.form, serving.reason
        self._board, self._ticket = self.process.board, 0
        self._slots: list[Pending | None] = [None] * settings.slots
        self._requests, self._answers = self._board.requests, self._board.answers
        self._head: Pending | None = None
        self._beats = -1

    def place(self, item: Pending) -> bool:
        """Put the item into the queue; return False where its slot is still taken."""
        ticket = self._ticket + 1
        slot = slot_of(ticket, len(self._slots))
        earlier = self._slots[slot]
        if earlier is not None:
            if not earlier.done():
                return False
            earlier.settle()
        item.place(ticket, self._answers, slot)
        self._slots[slot], self._ticket = item, ticket
        self._requests[slot] = ticket << NUMBER_BITS | item.number
        return True

    def unfinished(self) -> list[Pending]:
        """Return the items in the queue that are not done, in their order."""
        waiting = [item for item in self._slots if item is not None and not item.done()]
        return sorted(waiting, key=lambda item: item.ticket)

    def field(self, program: str, array: str) -> Field:
        """Return a program's array; UsageError for an unknown name."""
        if program not in self.programs:
            raise unknown("program", program, self.programs)
        return self.programs[program].field(array)

    def write(self, program: str, array: str, values: np.ndarray) -> None:
        """Copy the values into a program's array; BackendUnavailable if that takes longer than the timeout."""
        self.process.send(WriteArray(program, array), (values,))
        self.process.receive(ArrayWritten, self._settings.timeout)

    def read(self, program: str, array: str, nbytes: int) -> bytes:
        """Return the bytes of a program's array; BackendUnavailable if that takes longer than the timeout."""
        self.process.send(ReadArray(program, array, nbytes))
        (content,) = self.process.receive(ArrayContent, self._settings.timeout, nbytes).arrays
        return content.tobytes()

    def trouble(self, now: float) -> str | None:
        """Return the fault at `now`, a time of the monotonic clock, or None; call it at short intervals."""
        if not self.process.alive():
            return self.process.ending()
        head = next(iter(self.unfinished()), None)
        if head is not self._head or head is None:
            self._head, self._head_since = head, now
        if self._board.pulse[0] != self._beats:
            self._beats, self._beat_at = self._board.pulse[0], now
        if now - self._head_since > self._settings.timeout:
            return f"no answer within {self._settings.timeout:g} s"
        beating = self.form == PERSISTENT or head is None
        if beating and now - self._beat_at > max(self._settings.timeout, _PULSE_SECONDS):
            return f"its pulse has stopped for {now - self._beat_at:.2g} s"
        return None

    def stop(self) -> bool:
        """Serve all items in the queue and end; return False where that takes longer than the timeout."""
        limit = time.monotonic() + self._settings.timeout
        stop = Pending("stop", STOP_PROGRAM)
        while not self.place(stop):
            if time.monotonic() > limit or not self.process.alive():
                return False
            time.sleep(1e-3)
        return self.process.wait(self._settings.timeout) and stop.done()

    def end(self) -> None:
        """Kill the worker."""
        self.process.end()


# A thread that checks the executor at intervals, with or without a caller that waits for a result.


class _Watchdog:
    """Caller of `check` with the monotonic clock's time every `interval` seconds until it is stopped."""

    def __init__(self, check: Callable[[float], None], interval: float) -> None:
        self._check, self._interval, self._stopped = check, interval, Event()
        self._thread = Thread(target=self._run, name="persistent watchdog", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the calls; when this returns, no call is under way."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(self._interval):
            self._check(time.monotonic())


# The persistent executor: an item is submitted by writing one word, and served without a launch.
#
#     with Executor({"te": case}) as executor:
#         executor.write("te", "x_past", values)
#         executor.submit("te").result()
#         mean = executor.read("te", "mean")
#
# The queue kernel runs in a worker process. A watchdog ends the process when an item does not answer within
# `QueueSettings.timeout`, when the kernel's pulse stops, or when the process dies; another process takes its place and
# serves the waiting items by launches of the fused kernels. The item that was under way fails with the reason; every
# fault is reported (`Executor.incidents`).

_DEFAULT = QueueSettings()
_LOOKS = 10  # checks of the watchdog within a timeout


class Executor:
    """Server of the cases of `programs`, by name; None is the empty item.

    BackendUnavailable if the backend is missing, UsageError if a case cannot be served. Any thread may use it.
    """

    def __init__(
        self, programs: Mapping[str, Case | None], backend: str = "cuda", settings: QueueSettings = _DEFAULT
    ) -> None:
        self.settings, self.backend = settings, backend
        self.incidents: list[Incident] = []
        self.closed: str | None = None
        self._cases, self._lock = dict(programs), RLock()
        self._written: dict[tuple[str, str], np.ndarray] = {}
        self._numbers = {name: number for number, name in enumerate(self._cases)}
        self._service = _Service(self._cases, backend, settings, settings.form)
        self._watchdog = _Watchdog(self._check, settings.timeout / _LOOKS)

    @property
    def form(self) -> str:
        """The form in which items are served now: `persistent` or `launches`."""
        return self._service.form

    @property
    def reason(self) -> str | None:
        """Why items are not served in the form of the settings; None if they are."""
        return self.incidents[-1].reason if self.incidents else self._service.reason

    @property
    def pid(self) -> int:
        """The id of the worker's process."""
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
        """Copy the values into the program's array after all submitted items are done; they stay there."""
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
        """Return when all submitted items are done; BackendUnavailable if they are not in time."""
        with self._lock:
            items = self._service.unfinished()
        timeout = self.settings.timeout * (1 + len(items))
        limit = time.monotonic() + timeout
        while not all(item.done() for item in items):
            if time.monotonic() > limit:
                raise BackendUnavailable(f"{count_text(len(items), 'item')} not served within {timeout:g} s")
            time.sleep(1e-4)

    def close(self) -> None:
        """Serve all submitted items, then stop; the items of a worker that exceeds the timeout fail."""
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
            time.sleep(_REST_SECONDS)
            if self._place(item):
                return
        raise QueueFull(
            f"all {count_text(self.settings.slots, 'slot')} of the queue are taken, and "
            f"none became free within {self.settings.patience:g} s; "
            "wait for results, or give it more slots"
        )

    def _check(self, now: float) -> None:
        """Replace the worker if it has a fault."""
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
            self._service = _Service(self._cases, self.backend, self.settings, LAUNCHES)
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


# A served case as a runnable, so that it can be verified.


class ServedRunnable(Runnable):
    """The executor's program `name`, which is `case`; a call is an item. Its arrays are copies on the host."""

    def __init__(self, executor: Executor, name: str, case: Case) -> None:
        self._executor, self._name, self.case = executor, name, case
        self.inputs = {}

    def __call__(self) -> None:
        self._executor.submit(self._name).result()

    def reset(self, inputs: Mapping[str, InputArray]) -> None:
        self.inputs = inputs
        for array in self.case.spec.arrays:
            if array.scratch:
                continue
            shape = self.case.sizes.shape(array.name)
            if array.reads:
                content = np.asarray(inputs[array.name].on(np)).reshape(shape)
            else:
                content = np.empty(shape, array.storage)
                content.reshape(-1).view(np.uint8)[:] = array.first_byte
            self._executor.write(self._name, array.name, content)

    def arrays(self, names: Iterable[str]) -> dict[str, np.ndarray]:
        return {name: self._executor.read(self._name, name) for name in names}
