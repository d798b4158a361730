"""One worker with its queue: items go in, answers come out, and faults are noticed."""

import time
from collections.abc import Mapping

import numpy as np

from prism_bench.errors import BackendUnavailable, unknown
from prism_bench.extensions.persistent.layout import NUMBER_BITS, STOP_PROGRAM, slot_of
from prism_bench.extensions.persistent.messages import (
    ArrayContent,
    ArrayWritten,
    DeviceMessage,
    ReadArray,
    ServingMessage,
    WriteArray,
    pack_order,
)
from prism_bench.extensions.persistent.pending import Pending
from prism_bench.extensions.persistent.process import ServingProcess
from prism_bench.extensions.persistent.program import Field, program_of, served
from prism_bench.extensions.persistent.settings import PERSISTENT, QueueSettings
from prism_bench.spec.case import Case
from prism_bench.units import count_text

PULSE_SECONDS = 1.0  # a pulse that stops for less than that means nothing: hosts are busy


class Service:
    """The cases, by name, in a new process and on a new board.

    `form` is how they are served, `reason` why not in the form of the settings. BackendUnavailable where the backend
    is missing, UsageError where a case cannot be served.
    """

    def __init__(self, cases: Mapping[str, Case | None], backend: str, settings: QueueSettings, form: str) -> None:
        self._settings = settings
        self.process = ServingProcess(backend, settings.slots)
        try:
            device = self.process.receive(DeviceMessage).message.device()
            self.programs = {name: program_of(name, case, device) for name, case in cases.items()}
            programs = tuple(self.programs.values())
            served(programs)  # what cannot be served is refused here, not in another process
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
        """Return a program's array; a UsageError where there is none of that name."""
        if program not in self.programs:
            raise unknown("program", program, self.programs)
        return self.programs[program].field(array)

    def write(self, program: str, array: str, values: np.ndarray) -> None:
        """Copy the values into a program's array; BackendUnavailable where that takes longer than the timeout."""
        self.process.send(WriteArray(program, array), (values,))
        self.process.receive(ArrayWritten, self._settings.timeout)

    def read(self, program: str, array: str, nbytes: int) -> bytes:
        """Return the bytes of a program's array; BackendUnavailable where that takes longer than the timeout."""
        self.process.send(ReadArray(program, array, nbytes))
        (content,) = self.process.receive(ArrayContent, self._settings.timeout, nbytes).arrays
        return content.tobytes()

    def trouble(self, now: float) -> str | None:
        """Return what is wrong at `now`, a time of the monotonic clock; it has to be called again and again."""
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
        if beating and now - self._beat_at > max(self._settings.timeout, PULSE_SECONDS):
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
        """End the worker, whatever it is doing."""
        self.process.end()


def drained(items: list[Pending], timeout: float) -> None:
    """Return when all items are done; BackendUnavailable where they are not within `timeout` seconds."""
    limit = time.monotonic() + timeout
    while not all(item.done() for item in items):
        if time.monotonic() > limit:
            raise BackendUnavailable(f"{count_text(len(items), 'item')} not served within {timeout:g} s")
        time.sleep(1e-4)
