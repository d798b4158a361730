"""What every backend offers: it prepares cases, and a prepared case can be launched, checked and timed.

A backend is a module or folder here with a function `open_backend() -> Backend`; the file's name is the backend's.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import DTypeLike

from prism_bench.backends.guard import OutputGuard
from prism_bench.errors import BackendUnavailable, SpecError
from prism_bench.record.measurement import Sample
from prism_bench.spec.case import Case, Device
from prism_bench.spec.inputs import InputArray

# By metric, a function that sets its clock up and returns what takes one sample.
TimerFactories = Mapping[str, Callable[[], Callable[[], Sample]]]


class Runnable(AbstractContextManager):
    """A case prepared on a backend: buffers allocated, code compiled. Use it in a `with` block to free its memory."""

    case: Case
    inputs: Mapping[str, InputArray]

    @abstractmethod
    def __call__(self) -> None:
        """Enqueue the kernel's whole host plan once."""

    @abstractmethod
    def reset(self, inputs: Mapping[str, InputArray]) -> None:
        """Write the inputs again and poison every output, so that a later value there was written by the kernel."""

    @abstractmethod
    def arrays(self, names: Iterable[str]) -> dict[str, Any]:
        """Return the named buffers as arrays of the backend's `xp`, after all work is done."""

    def timers(self) -> TimerFactories:
        """Per metric, a function that sets its clock up and returns what takes one sample.

        Setting up raises MeasurementInvalid where the metric cannot be had; one that makes no sense here is left out.
        """
        return {}

    def restore(self) -> None:
        """Enqueue: restore the inputs that the kernel changes in place."""

    def guard(self, key: int) -> OutputGuard | None:
        """Return a guard of the outputs as a verified launch has just left them; `key` is random.

        None if a timed launch leaves nothing behind that could be checked.
        """
        return None

    def replayed(self, call: Callable[[], None], times: int) -> Callable[[], float] | None:
        """Return a timer of a graph with `times` calls: seconds of one call. None if there are no graphs."""
        return None

    def confirm(self) -> None:
        """Raise MeasurementInvalid where calls after the timing are not those that were timed."""
        return

    def evidence(self) -> dict:
        """Return what is known of the code: code hash, registers, spills, shared memory, launches."""
        return {}

    def share(self, name: str, other: "Runnable", theirs: str) -> None:
        """Use `other`'s buffer `theirs` as the argument `name`. SpecError unless both hold the same type and count."""
        (dtype, count), given = self.case.sizes.elements(name), other.case.sizes.elements(theirs)
        if (dtype, count) != given:
            raise SpecError(f"{self.case.name}: {name} holds {count} {dtype}; '{theirs}' of {other.case.name} holds "
                            f"{given[1]} {given[0]}")  # fmt: skip
        self._share(name, other, theirs)

    def _share(self, name: str, other: "Runnable", theirs: str) -> None:
        raise BackendUnavailable(f"{self.case.name}: cases of this backend keep their buffers to themselves")

    def put(self, name: str, values: np.ndarray) -> None:
        """Enqueue: the buffer holds `values`, a host array of its type that stays as it is until then."""
        raise BackendUnavailable(f"{self.case.name}: this backend's inputs stay as they were prepared")

    def take(self, name: str, other: "Runnable", theirs: str) -> None:
        """Enqueue: the buffer holds what `other`'s buffer `theirs` holds."""
        self.put(name, other.arrays([theirs])[theirs])

    def fetch(self, name: str, out: np.ndarray) -> None:
        """Enqueue: `out`, an array of the host, holds what the buffer holds."""
        out[...] = self.arrays([name])[name].reshape(out.shape)

    def renew(self, names: Iterable[str]) -> None:
        """Allocate new memory for the named outputs from the current allocator; the host always does so."""

    def __exit__(self, *exception: object) -> None:
        return None

    def __repr__(self) -> str:
        case = getattr(self, "case", None)  # while it is still being prepared, there may be none
        return f"<{type(self).__name__} {f'{case.task} {case.label}' if case else 'of no case'}>"


class Flow:
    """Order of pieces of work: on the host each runs after the last, in whatever lane it is enqueued."""

    def lane(self, number: int) -> AbstractContextManager:
        """Enqueue the work of a `with` block on that lane."""
        return nullcontext()

    def point(self) -> Any:
        """Return a point in time that lanes can reach and wait for, repeatedly."""

    def reached(self, point: Any, lane: int) -> None:
        """Enqueue on the lane: the point is reached."""

    def wait(self, lane: int, point: Any) -> None:
        """Enqueue on the lane: wait for the point."""

    def synchronize(self) -> None:
        """Wait until lane 0 has done all its work."""

    def captured(self, call: Callable[[], object]) -> Callable[[], None]:
        """Return a function that replays the work of `call` as one graph. BackendUnavailable without graphs."""
        raise BackendUnavailable("graphs are captured on a GPU alone; the other forms run here")

    def host_array(self, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
        """Return a host array that copies to and from the device can use directly."""
        return np.empty(shape, dtype)


class Fork:
    """Concurrent lanes.

    In its `with` block they begin after the earlier work of lane 0; later work of lane 0 begins after all of them. It
    may be entered repeatedly.
    """

    def __init__(self, flow: Flow, lanes: Iterable[int]) -> None:
        self._flow, self._begin = flow, flow.point()
        self._ends = {number: flow.point() for number in lanes}

    def __enter__(self) -> Self:
        self._flow.reached(self._begin, 0)
        for number in self._ends:
            self._flow.wait(number, self._begin)
        return self

    def __exit__(self, *exception: object) -> None:
        for number, end in self._ends.items():
            self._flow.reached(end, number)
            self._flow.wait(0, end)


class HeldBytes(NamedTuple):
    """Device memory that this process holds: in live `arrays`, and `outside` of all arrays."""

    arrays: int = 0
    outside: int = 0


class Backend(ABC):
    """Where cases run."""

    name: str
    xp: ModuleType

    @property
    @abstractmethod
    def special(self) -> ModuleType:
        """SciPy's special functions for arrays of `xp`."""

    @property
    def device(self) -> Device:
        """What launches may ask of the device."""
        return Device()

    def answers(self) -> bool:
        """Return whether the device still works: after some errors nothing does until the process ends."""
        return True

    def held_bytes(self, alone: bool) -> HeldBytes:
        """Return the device memory that this process holds; what is outside of arrays only where it is `alone`."""
        return HeldBytes()

    @abstractmethod
    def facts(self) -> dict:
        """Return the machine and software behind the numbers, as the run record stores them."""

    @abstractmethod
    def prepare(self, case: Case, inputs: Mapping[str, InputArray]) -> Runnable:
        """Prepare the case for launches. CompilationFailed, SpecError, or MemoryError with the bytes it wanted."""

    def report_crashes(self) -> None:
        """Write the place of a kernel's crash to standard error before the crash ends this process, if possible."""
        return

    def flow(self) -> Flow:
        """Return the backend's lanes of concurrent work, if it has any."""
        return Flow()

    def passes(self, case: Case) -> Mapping[str, "Backend"]:
        """Return the ways in which the edge `case` is verified, by name: one, unless the backend has stricter ones."""
        return {self.name: self}

    def peers(self, case: Case) -> tuple[str, ...]:
        """Return the names of the peers that can run here."""
        return ()

    def prepare_peer(self, case: Case, name: str, runnable: Runnable) -> Runnable:
        """Prepare the library call `name` on the inputs of the case's `runnable`; its arrays are its results."""
        raise LookupError(name)
