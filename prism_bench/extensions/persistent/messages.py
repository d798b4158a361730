"""Messages between the host and a worker that serves a queue; arrays and scalars are in the same frame."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
import numpy as np

from prism_bench.extensions.persistent.program import Field, Program, ServedStep
from prism_bench.io.workers.frames import FrameError
from prism_bench.io.workers.refusal import Refusal
from prism_bench.spec.case import Device


class DeviceMessage(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The worker's first message: its device."""

    sm_count: int
    max_shared_bytes: int
    compute_capability: int

    @classmethod
    def of(cls, device: Device) -> "DeviceMessage":
        """Return the message about a device, whose own class may know more."""
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
    """The worker serves in this form; `reason` is why not in the one of the order."""

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
    packed = tuple(_packed(program, scalars) for program in programs)
    return ServeOrder(packed, str(source), form), scalars


def unpack_programs(order: ServeOrder, scalars: Sequence[np.ndarray]) -> tuple[Program, ...]:
    """Return the programs of an order."""
    return tuple(_unpacked(program, scalars) for program in order.programs)


def _packed(program: Program, scalars: list[np.ndarray]) -> ProgramMessage:
    steps = tuple(_packed_step(step, scalars) for step in program.steps)
    source = str(program.source) if program.source else None
    return ProgramMessage(program.name, steps, dict(program.fields), source, tuple(program.options))


def _packed_step(step: ServedStep, scalars: list[np.ndarray]) -> StepMessage:
    arguments: list[str | int] = []
    for argument in step.arguments:
        if isinstance(argument, str):
            arguments.append(argument)
        else:
            arguments.append(len(scalars))
            scalars.append(np.asarray(argument))
    return StepMessage(step.entry, step.grid, step.block, step.shared, tuple(arguments))


def _unpacked(program: ProgramMessage, scalars: Sequence[np.ndarray]) -> Program:
    steps = tuple(_unpacked_step(step, scalars) for step in program.steps)
    source = Path(program.source) if program.source else None
    return Program(program.name, steps, program.fields, source, program.options)


def _unpacked_step(step: StepMessage, scalars: Sequence[np.ndarray]) -> ServedStep:
    arguments = tuple(one if isinstance(one, str) else _scalar(scalars[one]) for one in step.arguments)
    return ServedStep(step.entry, step.grid, step.block, step.shared, arguments)


def _scalar(array: np.ndarray) -> np.generic:
    """Return the scalar in an array that has no axes."""
    scalar = array[()]
    if not isinstance(scalar, np.generic):
        raise FrameError(f"an array of shape {array.shape} is no scalar")
    return scalar
