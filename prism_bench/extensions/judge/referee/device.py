"""What a runner needs of a device, and nothing more: memory by address, machine code, launches, a clock."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np

from prism_bench.extensions.judge.referee.messages import FactsAnswer, StepPlan
from prism_bench.spec.inputs import InputArray
from prism_bench.spec.launch import TensorMap


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
