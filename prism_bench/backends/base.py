"""What every backend offers: it prepares cases, and a prepared case can be launched, checked and timed.

A backend is a module or folder here with a function `open_backend() -> Backend`; the file's name is the backend's.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from prism_bench.case import Case, Device
from prism_bench.inputs import InputArray
from prism_bench.measurement import Sample


class Runnable(AbstractContextManager):
    """A case prepared on a backend: buffers allocated, code compiled. Use it in a `with` block to free its memory."""

    case: Case
    inputs: Mapping[str, InputArray]

    @abstractmethod
    def __call__(self) -> None:
        """Enqueue the kernel's whole host plan once."""

    @abstractmethod
    def reset(self, inputs: Mapping[str, InputArray]) -> None:
        """Lay the inputs out again and poison every output, so that what stands there later was written."""

    @abstractmethod
    def arrays(self, names) -> dict[str, object]:
        """The named buffers as arrays of the backend's `xp`, after all work is done."""

    def timers(self) -> Mapping[str, Callable[[], Callable[[], Sample]]]:
        """Per metric, a function that sets its clock up and returns what takes one sample.

        Setting up raises MeasurementInvalid where the metric cannot be had; one that makes no sense here is left out.
        """
        return {}

    def evidence(self) -> dict:
        """What is known of the code that runs: code hash, registers, spills, shared memory, launches."""
        return {}

    def __exit__(self, *exception):
        return None


class Backend(ABC):
    """Where cases run."""

    name: str
    xp: object
    special: object

    @property
    def device(self) -> Device:
        """What launches may ask of the device."""
        return Device()

    @abstractmethod
    def facts(self) -> dict:
        """The machine and software behind the numbers, as the run record stores them."""

    @abstractmethod
    def prepare(self, case: Case, inputs: Mapping[str, InputArray]) -> Runnable:
        """The case, ready to launch. CompilationFailed, SpecError, or MemoryError with the bytes it wanted."""

    def passes(self) -> Mapping[str, "Backend"]:
        """The ways in which an edge must come out right here, by name: one, unless a backend can look harder."""
        return {self.name: self}

    def peers(self, case: Case) -> tuple[str, ...]:
        """The names of the peers that can run here."""
        return ()

    def prepare_peer(self, case: Case, name: str, runnable: Runnable) -> Runnable:
        """The library call `name` on the inputs of the case's own `runnable`; its arrays are its results."""
        raise LookupError(name)
