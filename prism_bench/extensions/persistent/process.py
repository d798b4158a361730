"""Handle of the worker process that serves a queue: messages, start and end."""

import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np

from prism_bench.errors import BackendUnavailable
from prism_bench.extensions.persistent.queue import Board, Field, Program, ServedStep
from prism_bench.io.channels import Frame, FrameError
from prism_bench.io.workers import START_SECONDS, FrameWorker, Refusal, WorkerEnvironment
from prism_bench.spec.case import Device

# Messages between the host and a worker that serves a queue; arrays and scalars are in the same frame.


class DeviceMessage(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The worker's first message: its device."""

    sm_count: int
    max_shared_bytes: int
    compute_capability: int

    @classmethod
    def of(cls, device: Device) -> "DeviceMessage":
        """Return the message about a device, whose class may have more fields."""
        return cls(device.sm_count, device.max_shared_bytes, device.compute_capability)

    def device(self) -> Device:
        """Return the device."""
        return Device(self.sm_count, self.max_shared_bytes, self.compute_capability)


class StepMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One launch; an argument is an array's name, or the index of the frame's array that holds a scalar."""

    entry: str
    grid: tuple[int, int, int]
    block: int
    shared: int
    arguments: tuple[str | int, ...]


class ProgramMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A program to be served."""

    name: str
    steps: tuple[StepMessage, ...]
    fields: dict[str, Field]
    source: str | None
    options: tuple[str, ...]


class ServeOrder(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The host's first message: what to serve, the source of the queue kernel, and the form of serving."""

    programs: tuple[ProgramMessage, ...]
    source: str
    form: str


class ServingMessage(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The form in which the worker serves; `reason` explains a form other than the order's."""

    form: str
    reason: str | None


class WriteArray(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Copy the frame's array into a program's array."""

    program: str
    array: str


class ReadArray(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Return the bytes of a program's array."""

    program: str
    array: str
    nbytes: int


class ArrayWritten(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The values are in the array."""


class ArrayContent(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The frame's array holds the bytes."""


HostMessage = ServeOrder | WriteArray | ReadArray
WorkerMessage = DeviceMessage | ServingMessage | ArrayWritten | ArrayContent | Refusal
HOST_MESSAGES: msgspec.json.Decoder[HostMessage] = msgspec.json.Decoder(HostMessage)
WORKER_MESSAGES: msgspec.json.Decoder[WorkerMessage] = msgspec.json.Decoder(WorkerMessage)


def pack_order(programs: Iterable[Program], source: Path, form: str) -> tuple[ServeOrder, list[np.ndarray]]:
    """Return the order, and the scalars of its launches as arrays to be sent with it."""
    scalars: list[np.ndarray] = []
    messages = tuple(
        ProgramMessage(
            name=program.name,
            steps=tuple(_packed(step, scalars) for step in program.steps),
            fields=dict(program.fields),
            source=str(program.source) if program.source else None,
            options=tuple(program.options),
        )
        for program in programs
    )
    return ServeOrder(messages, str(source), form), scalars


def unpack_programs(order: ServeOrder, scalars: Sequence[np.ndarray]) -> tuple[Program, ...]:
    """Return the programs of an order."""
    return tuple(
        Program(
            name=program.name,
            steps=tuple(_unpacked(step, scalars) for step in program.steps),
            fields=program.fields,
            source=Path(program.source) if program.source else None,
            options=program.options,
        )
        for program in order.programs
    )


def _packed(step: ServedStep, scalars: list[np.ndarray]) -> StepMessage:
    arguments: list[str | int] = []
    for argument in step.arguments:
        if isinstance(argument, str):
            arguments.append(argument)
        else:
            arguments.append(len(scalars))
            scalars.append(np.asarray(argument))
    return StepMessage(step.entry, step.grid, step.block, step.shared, tuple(arguments))


def _unpacked(step: StepMessage, scalars: Sequence[np.ndarray]) -> ServedStep:
    arguments: list[str | np.generic] = []
    for argument in step.arguments:
        value = argument if isinstance(argument, str) else scalars[argument][()]  # of an array without axes a scalar
        if not isinstance(value, str | np.generic):
            raise FrameError(f"an array of shape {value.shape} is no scalar")
        arguments.append(value)
    return ServedStep(step.entry, step.grid, step.block, step.shared, tuple(arguments))


# Handle of the worker process that serves a queue: start it, exchange messages, end it.

_END_SECONDS = 30.0
_WORKER = WorkerEnvironment("prism_bench.extensions.persistent.worker")
_Expected = TypeVar("_Expected", bound=WorkerMessage)


class ServingProcess:
    """A worker process with its own board. It answers messages one at a time."""

    def __init__(self, backend: str, slots: int) -> None:
        self.board = Board(slots)
        arguments = [backend, str(self.board.handle), str(slots)]
        self._worker = FrameWorker(_WORKER, arguments, stdout=subprocess.STDOUT, pass_fds=(self.board.handle,))
        self.board.close()

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._worker.pid

    def receive(self, expected: type[_Expected], timeout: float = START_SECONDS, largest: int = 0) -> Frame[_Expected]:
        """Return the worker's next message, whose arrays have at most `largest` bytes.

        An expected error of the worker is raised; BackendUnavailable if it sends nothing in time, something else,
        or has ended.
        """
        try:
            frame = self._worker.channel.receive(WORKER_MESSAGES, timeout, largest)
        except TimeoutError:
            raise BackendUnavailable(f"the worker does not answer within {timeout:.3g} s") from None
        except (EOFError, OSError) as error:
            raise BackendUnavailable(self.ending()) from error
        except FrameError as error:
            raise BackendUnavailable(f"the worker sent no answer: {error}") from error
        if isinstance(frame.message, Refusal):
            raise frame.message.error()
        if not isinstance(frame.message, expected):
            raise BackendUnavailable(f"the worker sent {type(frame.message).__name__}, not {expected.__name__}")
        return Frame(frame.message, frame.arrays)

    def send(self, message: HostMessage, arrays: Sequence[np.ndarray] = ()) -> None:
        """Send a message to the worker; BackendUnavailable if it has ended."""
        try:
            self._worker.channel.send(message, arrays)
        except OSError as error:
            raise BackendUnavailable(self.ending()) from error

    def alive(self) -> bool:
        """Return whether the process has not ended."""
        return self._worker.is_alive()

    def wait(self, timeout: float) -> bool:
        """Return whether the process ends within `timeout` seconds."""
        return self._worker.wait(timeout) is not None

    def end(self) -> None:
        """Kill the process; the system may need a moment to release its memory on the device."""
        self._worker.kill()
        self.wait(_END_SECONDS)
        self._worker.release()

    def ending(self) -> str:
        """Return how the process ended, with its last line of standard error."""
        return f"the worker process {self._worker.ending(1.0)}"
