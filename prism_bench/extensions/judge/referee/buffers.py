"""Device of a runner, and its memory: every buffer between canaries, moved and poisoned between launches."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

import numpy as np

from prism_bench.extensions.judge.referee.messages import BufferPlan, CasePlan, FactsAnswer, PlannedParameter, StepPlan
from prism_bench.spec.inputs import InputArray
from prism_bench.spec.launch import TensorMap


class LaunchDevice(ABC):
    """Device of a runner process: memory by address, machine code, launches; all work is done in order.

    An error of the launched code raises VerificationFailed, or ends the process; either makes the process unusable.
    """

    @abstractmethod
    def load(self, cubins: Sequence[bytes], symbols: Sequence[tuple[int, str]]) -> dict[str, int]:
        """Load each cubin as a new module, even if it was loaded before; return its variables' bytes by name.

        `symbols` are the launched symbols, with the number of their cubin. Modules loaded before are unloaded.
        """

    @abstractmethod
    def allocate(self, size: int) -> int:
        """Return the address of `size` new bytes, a multiple of 256; raise a MemoryError if memory is short."""

    @abstractmethod
    def free_all(self) -> None:
        """Free all memory."""

    @abstractmethod
    def fill(self, address: int, size: int, value: int) -> None:
        """Fill bytes with a value."""

    @abstractmethod
    def lay_out(self, address: int, content: InputArray) -> None:
        """Write an input, whose block is repeated on the device."""

    @abstractmethod
    def tensor_map(self, wanted: TensorMap, address: int, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
        """Return the tensor map of an array of the device's memory, as an array with one element.

        A SpecError if no map can describe it.
        """

    @abstractmethod
    def call(self, step: StepPlan, values: Sequence[int | np.generic | np.ndarray]) -> Callable[[], None]:
        """Return a function that enqueues a launch with these parameters: addresses, numbers and structures."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until all work has ended."""


class RefereeDevice(LaunchDevice):
    """Device that also measures: a clock, a digest of its memory, and the facts of the device."""

    @abstractmethod
    def facts(self) -> FactsAnswer:
        """Return the device; run an empty kernel and a kernel of known outcome."""

    @abstractmethod
    def restore_variables(self) -> None:
        """Restore all variables of the modules to their values when loaded."""

    @abstractmethod
    def randomize(self, address: int, size: int, key: int) -> None:
        """Fill bytes at random, by a key."""

    @abstractmethod
    def is_filled(self, address: int, size: int, value: int) -> bool:
        """Return whether all bytes have the value."""

    @abstractmethod
    def digest(self, address: int, size: int) -> int:
        """Return `digests.digest_of` of the bytes."""

    @abstractmethod
    def read(self, address: int, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
        """Return an array of the device's memory as a copy on the host."""

    def share(self, name: str, address: int, size: int) -> bytes | None:
        """Return the handle of a copy of these bytes that another process on the device can open, until `free_all`.

        Another copy with the same `name` replaces it. None if the device shares no memory.
        """
        return None

    @abstractmethod
    def timed(self, call: Callable[[], None], *, cold: bool) -> float | None:
        """Return the seconds of the work that a call enqueues, on the device's clock, without persisting cache lines.

        None if the device began before all was enqueued: the call was made, but has no time. If `cold`, caches are
        cleared before it.
        """

    @abstractmethod
    def leftover(self) -> float:
        """Return the seconds that the device still worked after the end of all enqueued work."""


# The memory

_CANARY_BYTES = 4096  # on either side of a buffer, at least
_CANARY = 0xC5
_SHIFT_BYTES = 256  # times a random number: the shift of a buffer
_MOST_SHIFTS = 64


@dataclass(frozen=True)
class _BufferPlace:
    """Place of a buffer within its memory, which has `memory_size` bytes from `memory` on."""

    plan: BufferPlan
    memory: int
    memory_size: int
    address: int
    size: int

    @property
    def margins(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Address and bytes of the canaries before and after the buffer."""
        end = self.address + self.size
        return (self.memory, self.address - self.memory), (end, self.memory + self.memory_size - end)

    def moved(self, shift: int) -> "_BufferPlace":
        """Return the place that is `shift` times 256 bytes behind the lowest place."""
        return replace(self, address=self.memory + _CANARY_BYTES + shift * _SHIFT_BYTES)


class BareArena:
    """Buffers of a case on a device; each is an allocation of its exact size.

    A sanitizer finds accesses out of bounds and reads of unwritten memory in them. Outputs hold what the device left
    there.
    """

    def __init__(self, device: LaunchDevice, plan: CasePlan) -> None:
        self._device = device
        device.free_all()
        self._places = {buffer.name: self._placed(buffer) for buffer in plan.buffers}

    def address(self, name: str) -> int:
        """Return the address of a buffer."""
        return self._places[name].address

    def size(self, name: str) -> int:
        """Return the bytes of a buffer."""
        return self._places[name].size

    def values(self, parameters: Sequence[PlannedParameter]) -> list[int | np.generic | np.ndarray]:
        """Return the values of a launch's parameters, a structure or a tensor map as an array with one element.

        A SpecError for a buffer that no tensor map can describe.
        """
        return [self._value(parameter) for parameter in parameters]

    def _value(self, parameter: PlannedParameter) -> int | np.generic | np.ndarray:
        if parameter.members:
            return np.array([tuple(map(self._value, parameter.members))], parameter.type)
        if parameter.map:
            place = self._places[parameter.buffer]
            return self._device.tensor_map(parameter.map, place.address, place.plan.dtype, place.plan.shape)
        if parameter.buffer:
            return self.address(parameter.buffer)
        return np.frombuffer(bytes.fromhex(parameter.value), parameter.dtype)[0]

    def move(self, key: int) -> None:
        """Do nothing: a buffer has no memory around it."""

    def prepare(self, inputs: Mapping[str, InputArray], key: int) -> None:
        """Write the inputs and reset scratch."""
        for name, place in self._places.items():
            if name in inputs:
                self._device.lay_out(place.address, inputs[name])
            elif place.plan.role == "scratch":
                self._device.fill(place.address, place.size, place.plan.first_byte)

    def _placed(self, plan: BufferPlan) -> _BufferPlace:
        address = self._device.allocate(max(1, plan.nbytes))
        return _BufferPlace(plan, address, plan.nbytes, address, plan.nbytes)


class Arena(BareArena):
    """Buffers for measured launches, each between canaries in memory in which it can be moved."""

    def __init__(self, device: RefereeDevice, plan: CasePlan) -> None:
        self._measured = device
        super().__init__(device, plan)
        self._input_digests: dict[str, int] = {}

    def move(self, key: int) -> None:
        """Move every buffer by 256 bytes times a number that the key draws for it; its content is lost."""
        draw = Random(key)
        self._places = {name: place.moved(draw.randrange(_MOST_SHIFTS)) for name, place in self._places.items()}

    def prepare(self, inputs: Mapping[str, InputArray], key: int) -> None:
        """Write new inputs, poison the outputs by the key, and reset scratch and canaries."""
        self._input_digests = {}
        for number, (name, place) in enumerate(self._places.items()):
            for address, size in place.margins:
                self._measured.fill(address, size, _CANARY)
            if name in inputs:
                self._measured.lay_out(place.address, inputs[name])
                if place.plan.role == "input":
                    self._input_digests[name] = self._measured.digest(place.address, place.size)
            elif place.plan.role == "scratch":
                self._measured.fill(place.address, place.size, place.plan.first_byte)
            else:
                self._measured.randomize(place.address, place.size, key + number)

    def digests(self) -> dict[str, int]:
        """Return the digests of the written buffers, by name."""
        return {
            name: self._measured.digest(place.address, place.size)
            for name, place in self._places.items()
            if place.plan.is_written
        }

    def outputs(self) -> dict[str, np.ndarray]:
        """Return the written buffers on the host, by name."""
        return {
            name: self._measured.read(place.address, place.plan.dtype, place.plan.shape)
            for name, place in self._places.items()
            if place.plan.is_written
        }

    def shared(self) -> dict[str, str]:
        """Return handles of copies of the written buffers, by name, in hexadecimal; empty if any cannot be shared."""
        places = {name: place for name, place in self._places.items() if place.plan.is_written and place.size}
        shared = {name: self._measured.share(name, place.address, place.size) for name, place in places.items()}
        handles = {name: handle.hex() for name, handle in shared.items() if handle is not None}
        return handles if len(handles) == len(places) else {}

    def broken(self) -> Iterator[str]:
        """Yield a text for each canary or input that a launch has changed."""
        for name, place in self._places.items():
            for side, (address, size) in zip(("before", "after"), place.margins, strict=True):
                if not self._measured.is_filled(address, size, _CANARY):
                    yield f"it wrote {side} the buffer of {name}"
            if (
                name in self._input_digests
                and self._measured.digest(place.address, place.size) != self._input_digests[name]
            ):
                yield f"it changed the input {name}"

    def _placed(self, plan: BufferPlan) -> _BufferPlace:
        size = plan.nbytes
        memory_size = size + 2 * _CANARY_BYTES + _MOST_SHIFTS * _SHIFT_BYTES
        memory = self._device.allocate(memory_size)
        return _BufferPlace(plan, memory, memory_size, memory + _CANARY_BYTES, size)
