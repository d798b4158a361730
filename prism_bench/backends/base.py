"""What every backend offers: it prepares cases, and a prepared case can be launched, checked and timed.

A backend is a module or folder here with a function `open_backend() -> Backend`; the file's name is the backend's.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike

from prism_bench.backends.guard import OutputGuard
from prism_bench.case import Case, Device
from prism_bench.errors import BackendUnavailable, SpecError
from prism_bench.inputs import InputArray
from prism_bench.measurement import Sample

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
        """Lay the inputs out again and poison every output, so that what stands there later was written."""

    @abstractmethod
    def arrays(self, names: Iterable[str]) -> dict[str, Any]:
        """The named buffers as arrays of the backend's `xp`, after all work is done."""

    def timers(self) -> TimerFactories:
        """Per metric, a function that sets its clock up and returns what takes one sample.

        Setting up raises MeasurementInvalid where the metric cannot be had; one that makes no sense here is left out.
        """
        return {}

    def restore(self) -> None:
        """Enqueue: what is changed in place holds its inputs again."""

    def guard(self, key: int) -> OutputGuard | None:
        """A guard of the outputs as a verified launch has just left them; `key` is random.

        None where a timed launch leaves nothing behind that could be looked at.
        """
        return None

    def replayed(self, call: Callable[[], None], times: int) -> Callable[[], float] | None:
        """A timer of one graph of so many times `call`: seconds of one of them. None where there are no graphs."""
        return None

    def evidence(self) -> dict:
        """What is known of the code that runs: code hash, registers, spills, shared memory, launches."""
        return {}

    def share(self, name: str, other: "Runnable", theirs: str) -> None:
        """The argument `name` is from now on `other`'s buffer `theirs`. SpecError unless both hold the same."""
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
        """The named outputs get new memory from whatever allocator is current; on the host they always do."""

    def __exit__(self, *exception: object) -> None:
        return None


class Flow:
    """How pieces of work follow one another: here on the host, each after the last, whatever lane it is given to."""

    def lane(self, number: int) -> AbstractContextManager:
        """What is enqueued inside goes to that lane."""
        return nullcontext()

    def point(self) -> Any:
        """A point in time that lanes can tell and wait for, again and again."""

    def reached(self, point: Any, lane: int) -> None:
        """Enqueue on the lane: the point is reached."""

    def wait(self, lane: int, point: Any) -> None:
        """Enqueue on the lane: wait for the point."""

    def synchronize(self) -> None:
        """Wait until lane 0 has done all its work."""

    def captured(self, call: Callable[[], object]) -> Callable[[], None]:
        """What replays the work that `call` enqueues, as one graph. BackendUnavailable where there are no graphs."""
        raise BackendUnavailable("graphs are captured on a GPU alone; the other forms run here")

    def host_array(self, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
        """An array of the host that copies to and from the device can use directly."""
        return np.empty(shape, dtype)


class Fork:
    """Lanes beside one another: in its `with` block they begin after what lane 0 held before, and what lane 0 is given
    afterwards comes after all of them. It may be entered again and again.
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
        """Whether it still works: after some errors of a device nothing does, for as long as the process lives."""
        return True

    @abstractmethod
    def facts(self) -> dict:
        """The machine and software behind the numbers, as the run record stores them."""

    @abstractmethod
    def prepare(self, case: Case, inputs: Mapping[str, InputArray]) -> Runnable:
        """The case, ready to launch. CompilationFailed, SpecError, or MemoryError with the bytes it wanted."""

    def report_crashes(self) -> None:
        """From now on write to standard error where a kernel crashed, before that ends this process, if it can be."""
        return

    def flow(self) -> Flow:
        """Lanes of work beside one another, where the backend has such."""
        return Flow()

    def passes(self) -> Mapping[str, "Backend"]:
        """The ways in which an edge must come out right here, by name: one, unless a backend can look harder."""
        return {self.name: self}

    def peers(self, case: Case) -> tuple[str, ...]:
        """The names of the peers that can run here."""
        return ()

    def prepare_peer(self, case: Case, name: str, runnable: Runnable) -> Runnable:
        """The library call `name` on the inputs of the case's own `runnable`; its arrays are its results."""
        raise LookupError(name)
