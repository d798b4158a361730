"""A runner's memory: every buffer between canaries, moved and poisoned between launches."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

import numpy as np

from prism_bench.extensions.judge.referee.messages import BufferPlan, CasePlan, FactsAnswer, PlannedParameter, StepPlan
from prism_bench.spec.inputs import InputArray
from prism_bench.spec.launch import TensorMap

# What a runner needs of a device, and nothing more: memory by address, machine code, launches, a clock.


class RefereeDevice(ABC):
    """A device of one runner process. Addresses are whole numbers; all work is done in order.

    An error of the launched code raises VerificationFailed; after it the process is of no more use.
    """

    @abstractmethod
    def facts(self) -> FactsAnswer:
        """Return the device; runs an empty kernel and one of known outcome."""

    @abstractmethod
    def load(self, cubins: Sequence[bytes], symbols: Sequence[tuple[int, str]]) -> dict[str, int]:
        """Load each cubin as an own module, also where it was loaded before; return its variables' bytes by name.

        `symbols` are those that are launched, with the number of their cubin. What was loaded before is unloaded.
        """

    @abstractmethod
    def restore_variables(self) -> None:
        """Make all variables of the modules what they were when it was loaded."""

    @abstractmethod
    def allocate(self, size: int) -> int:
        """Return the address of so many bytes, a multiple of 256; MemoryError where there are none."""

    @abstractmethod
    def free_all(self) -> None:
        """Give all memory back."""

    @abstractmethod
    def fill(self, address: int, size: int, value: int) -> None:
        """Fill bytes with a value."""

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
    def lay_out(self, address: int, content: InputArray) -> None:
        """Write an input, whose block is repeated on the device."""

    @abstractmethod
    def read(self, address: int, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
        """Return an array of the device's memory as a copy on the host."""

    def share(self, name: str, address: int, size: int) -> bytes | None:
        """Return the handle of a copy of these bytes that another process on the device can open, until `free_all`.

        What is copied under the same `name` has the place of what was copied before. None where the device shares no
        memory.
        """
        return None

    @abstractmethod
    def tensor_map(self, wanted: TensorMap, address: int, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
        """Return the tensor map of an array of the device's memory, as an array of one.

        A SpecError where no map can describe it.
        """

    @abstractmethod
    def call(self, step: StepPlan, values: Sequence[int | np.generic | np.ndarray]) -> Callable[[], None]:
        """Return what enqueues a launch with these parameters: addresses, numbers and structures."""

    @abstractmethod
    def timed(self, call: Callable[[], None], *, cold: bool) -> float | None:
        """Return the seconds of what a call enqueues, on the device's clock; no line is kept in a cache on request.

        None where the device began before all was enqueued: the call has been made, and has no time. Cold: caches are
        cleared before it.
        """

    @abstractmethod
    def leftover(self) -> float:
        """Return the seconds that the device still worked after all that was enqueued had ended."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until all work has ended."""


# A runner's memory: every buffer between canaries, moved and poisoned before each launch.

_CANARY_BYTES = 4096  # on either side of a buffer, at least
_CANARY = 0xC5
_SHIFT_BYTES = 256  # of which a buffer is moved by a random number
_MOST_SHIFTS = 64


@dataclass(frozen=True)
class _BufferPlace:
    """A buffer's place: `first` is the address of the memory around it, `room` the bytes of that."""

    plan: BufferPlan
    first: int
    room: int
    address: int
    size: int

    @property
    def margins(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Address and bytes of the canaries before and after the buffer."""
        end = self.address + self.size
        return (self.first, self.address - self.first), (end, self.first + self.room - end)

    def moved(self, shift: int) -> "_BufferPlace":
        """Return the place so many times 256 bytes behind the first one."""
        return replace(self, address=self.first + _CANARY_BYTES + shift * _SHIFT_BYTES)


class Arena:
    """The buffers of one case on a device, each in memory in which it can be moved."""

    def __init__(self, device: RefereeDevice, plan: CasePlan) -> None:
        self._device = device
        device.free_all()
        self._places = {one.name: self._placed(one) for one in plan.buffers}
        self._given: dict[str, int] = {}

    def address(self, name: str) -> int:
        """Return the address of a buffer."""
        return self._places[name].address

    def size(self, name: str) -> int:
        """Return the bytes of a buffer."""
        return self._places[name].size

    def values(self, parameters: Sequence[PlannedParameter]) -> list[int | np.generic | np.ndarray]:
        """Return the values of a launch's parameters, a structure or a tensor map as an array of one.

        A SpecError for a buffer that no tensor map can describe.
        """
        return [self._value(one) for one in parameters]

    def _value(self, one: PlannedParameter) -> int | np.generic | np.ndarray:
        if one.members:
            return np.array([tuple(map(self._value, one.members))], one.type)
        if one.map:
            place = self._places[one.buffer]
            return self._device.tensor_map(one.map, place.address, place.plan.dtype, place.plan.shape)
        return self.address(one.buffer) if one.buffer else np.frombuffer(bytes.fromhex(one.value), one.dtype)[0]

    def move(self, key: int) -> None:
        """Move every buffer by 256 bytes times a number that the key draws for it; what was in it is lost."""
        draw = Random(key)
        self._places = {name: place.moved(draw.randrange(_MOST_SHIFTS)) for name, place in self._places.items()}

    def prepare(self, inputs: Mapping[str, InputArray], key: int) -> None:
        """Write new inputs, poison the outputs by the key, and make scratch and canaries as they were at first."""
        self._given = {}
        for number, (name, place) in enumerate(self._places.items()):
            for address, size in place.margins:
                self._device.fill(address, size, _CANARY)
            if name in inputs:
                self._device.lay_out(place.address, inputs[name])
                if place.plan.role == "input":
                    self._given[name] = self._device.digest(place.address, place.size)
            elif place.plan.role == "scratch":
                self._device.fill(place.address, place.size, place.plan.first_byte)
            else:
                self._device.randomize(place.address, place.size, key + number)

    def digests(self) -> dict[str, int]:
        """Return the digests of what launches write, by name."""
        return {
            name: self._device.digest(place.address, place.size)
            for name, place in self._places.items()
            if place.plan.is_written
        }

    def outputs(self) -> dict[str, np.ndarray]:
        """Return what launches write, by name, on the host."""
        return {
            name: self._device.read(place.address, place.plan.dtype, place.plan.shape)
            for name, place in self._places.items()
            if place.plan.is_written
        }

    def shared(self) -> dict[str, str]:
        """Return handles of copies of what launches write, by name, in hexadecimal; none where one cannot be shared."""
        places = {name: place for name, place in self._places.items() if place.plan.is_written and place.size}
        found = {name: self._device.share(name, place.address, place.size) for name, place in places.items()}
        handles = {name: handle.hex() for name, handle in found.items() if handle is not None}
        return handles if len(handles) == len(places) else {}

    def broken(self) -> Iterator[str]:
        """Yield in words what a launch may not have changed: canaries and inputs."""
        for name, place in self._places.items():
            for side, (address, size) in zip(("before", "after"), place.margins, strict=True):
                if not self._device.is_filled(address, size, _CANARY):
                    yield f"it wrote {side} the buffer of {name}"
            if name in self._given and self._device.digest(place.address, place.size) != self._given[name]:
                yield f"it changed the input {name}"

    def _placed(self, plan: BufferPlan) -> _BufferPlace:
        size = plan.nbytes
        room = size + 2 * _CANARY_BYTES + _MOST_SHIFTS * _SHIFT_BYTES
        first = self._device.allocate(room)
        return _BufferPlace(plan, first, room, first + _CANARY_BYTES, size)


class BareArena(Arena):
    """Buffers for a sanitizer, which sees itself what is beyond one, and what of it nothing has written.

    Each is an allocation as large as the buffer. Outputs hold what the device left there.
    """

    def prepare(self, inputs: Mapping[str, InputArray], key: int) -> None:
        """Write the inputs, and make scratch what it is at first."""
        for name, place in self._places.items():
            if name in inputs:
                self._device.lay_out(place.address, inputs[name])
            elif place.plan.role == "scratch":
                self._device.fill(place.address, place.size, place.plan.first_byte)

    def move(self, key: int) -> None:
        """Leave every buffer where it is: there is nothing around it."""

    def _placed(self, plan: BufferPlan) -> _BufferPlace:
        first = self._device.allocate(max(1, plan.nbytes))
        return _BufferPlace(plan, first, plan.nbytes, first, plan.nbytes)
