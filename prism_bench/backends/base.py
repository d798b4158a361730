"""What every backend offers: prepared cases whose outputs are guarded, called and timed."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from hashlib import blake2b
from types import ModuleType
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import DTypeLike

from prism_bench.errors import BackendUnavailable, SpecError
from prism_bench.io.files import cache_folder, writable_cache, write_atomically
from prism_bench.monitor.nvml import cache_of_gpu
from prism_bench.record.measurement import Sample
from prism_bench.spec.case import Case, Device
from prism_bench.spec.inputs import InputArray

# Guards of a prepared case's outputs: spoil them before a launch, compare them with a verified launch afterwards.
#
# A kernel can distinguish verification from timing: it can count its launches, look whether its outputs hold poison, or
# keep a flag in its scratch. So a timed launch finds outputs that are right except for a few unpredictable places, or
# random everywhere, and its results are compared with those of the verified launch.

POOL = 4096  # places of an output that are remembered
SHARE = 16  # one of this number of places is spoiled before a launch
ROOM = 64  # differences that are kept for the judge


@dataclass(frozen=True)
class StrayElement:
    """An element that a timed launch left wrong: `index` in the flat output `name`, and what is there, as its bits."""

    sample: int
    name: str
    index: int
    bits: int


class OutputGuard(ABC):
    """Made right after a verified launch; `key` is random and makes the places unforeseeable.

    Everything but `strays` and `digests` is only enqueued, before and after a launch, outside of what is timed.
    """

    @abstractmethod
    def spoil(self, key: int) -> None:
        """Make some places of every output wrong, by far; what is changed in place is left to `restore`."""

    @abstractmethod
    def overwrite(self, key: int) -> None:
        """Make every byte of every output random, and every scratch as it was when the case was prepared."""

    @abstractmethod
    def clear_scratch(self) -> None:
        """Make every scratch as it was when the case was prepared."""

    @abstractmethod
    def compare(self, sample: int, key: int, *, rewritten: bool = False) -> None:
        """Note remembered places that differ from the verified launch's.

        `rewritten`: only those that still are as `spoil(key)` left them.
        """

    @abstractmethod
    def strays(self) -> list[StrayElement]:
        """Return what `compare` noted and forget it: unordered, at most `ROOM`, after all work is done."""

    @abstractmethod
    def digests(self) -> Mapping[str, int]:
        """Return a digest of the present content of every output."""

    @abstractmethod
    def nudge(self, key: int) -> bool:
        """Change one element of an input by one unit in the last place, towards zero; False where none can be.

        What was changed before is put back first.
        """

    @abstractmethod
    def mend(self) -> None:
        """Undo `nudge`."""


class HostGuard(OutputGuard):
    """The guard of outputs that are NumPy arrays, whose writes go through.

    `outputs` and `scratch` by name; `in_place` names outputs that are inputs too; `inputs` are what may be nudged.
    """

    def __init__(
        self,
        outputs: dict[str, np.ndarray],
        *,
        in_place: Collection[str] = (),
        scratch: Iterable[np.ndarray] = (),
        inputs: Iterable[np.ndarray] = (),
        key: int,
    ) -> None:
        self._outputs = {name: _words(array) for name, array in outputs.items() if array.size}
        self._in_place, self._scratch = set(in_place), list(scratch)
        self._inputs = [array.reshape(-1) for array in inputs if array.size and array.dtype.kind == "f"]
        self._places = {name: _places(words.size, key + n) for n, (name, words) in enumerate(self._outputs.items())}
        self._wanted = {name: words[self._places[name]].copy() for name, words in self._outputs.items()}
        self._noted: list[StrayElement] = []
        self._nudged: tuple | None = None

    def spoil(self, key: int) -> None:
        for name, words in self._outputs.items():
            if name not in self._in_place:
                chosen, spoiled = self._spoiled(name, key)
                words[self._places[name][chosen]] = spoiled

    def overwrite(self, key: int) -> None:
        rng = np.random.default_rng(key)
        for name, words in self._outputs.items():
            if name not in self._in_place:
                words.view(np.uint8)[:] = rng.integers(0, 256, words.nbytes, np.uint8)
        self.clear_scratch()

    def clear_scratch(self) -> None:
        for array in self._scratch:
            array[...] = 0

    def compare(self, sample: int, key: int, *, rewritten: bool = False) -> None:
        for name, words in self._outputs.items():
            if rewritten and name in self._in_place:
                continue
            places = self._places[name]
            wrong = words[places] != self._wanted[name]
            if rewritten:
                chosen, spoiled = self._spoiled(name, key)
                wrong = np.zeros_like(wrong)
                wrong[chosen] = words[places[chosen]] == spoiled
            room = ROOM - len(self._noted)
            strays = places[wrong][:room]
            self._noted += [StrayElement(sample, name, int(at), int(words[at])) for at in strays]

    def strays(self) -> list[StrayElement]:
        noted, self._noted = self._noted, []
        return noted

    def digests(self) -> dict[str, int]:
        return {
            name: int.from_bytes(blake2b(words.tobytes(), digest_size=8).digest(), "little")
            for name, words in self._outputs.items()
        }

    def nudge(self, key: int) -> bool:
        self.mend()
        turn = key % max(1, len(self._inputs))
        for array in self._inputs[turn:] + self._inputs[:turn]:
            words = _words(array)
            at = key % words.size
            odd = np.flatnonzero(words[at : at + ROOM] & 1)
            if odd.size:
                self._nudged = words, at + int(odd[0])
                words[self._nudged[1]] ^= 1
                return True
        return False

    def mend(self) -> None:
        if self._nudged:
            words, at = self._nudged
            words[at] ^= 1
            self._nudged = None

    def _spoiled(self, name: str, key: int) -> tuple[np.ndarray, np.ndarray]:
        """Which of the remembered places are spoiled, and with what."""
        wanted, rng = self._wanted[name], np.random.default_rng(key)
        chosen = rng.integers(0, SHARE, wanted.size) == 0
        chosen[key % wanted.size] = True
        masks = rng.integers(0, np.iinfo(wanted.dtype).max, wanted.size, wanted.dtype, endpoint=True)
        return chosen, (wanted ^ (masks | _far(wanted.dtype)))[chosen]


def _far(dtype: np.dtype) -> int:
    """Return the bit below the highest: the largest of a float's exponent, so that flipping it moves a value far."""
    return dtype.type(1 << (8 * dtype.itemsize - 2))


def _words(array: np.ndarray) -> np.ndarray:
    """Return the elements as flat unsigned integers in the same memory; a complex one as its two parts."""
    size = array.dtype.itemsize // (2 if array.dtype.kind == "c" else 1)
    return array.reshape(-1).view(f"u{size}")


def _places(count: int, key: int) -> np.ndarray:
    """POOL places below `count`, or all, one at random in each of as many equal parts."""
    pool = min(POOL, count)
    edges = np.arange(pool + 1, dtype=np.int64) * count // pool
    return edges[:-1] + np.random.default_rng(key).integers(0, np.diff(edges))


# What every backend offers: it prepares cases, and a prepared case can be launched, checked and timed.
#
# A backend is a module or folder here with a function `open_backend() -> Backend`; the file's name is the backend's.

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

    def unseen(self) -> str | None:
        """Return why the last call did not show all that the backend looks for; None where it did."""
        return None

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
        (dtype, count), other_elements = self.case.sizes.elements(name), other.case.sizes.elements(theirs)
        if (dtype, count) != other_elements:
            raise SpecError(
                f"{self.case.name}: {name} holds {count} {dtype}; '{theirs}' of {other.case.name} holds "
                f"{other_elements[1]} {other_elements[0]}"
            )
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

    def clear_variable(self, name: str) -> None:
        """Enqueue: every byte of a `__device__` variable is zero; SpecError where the loaded code has no such one."""
        raise BackendUnavailable(f"{self.case.name}: this backend has no variables of compiled code")

    def variables(self, name: str, dtype: DTypeLike) -> list[np.ndarray]:
        """Return the content of a `__device__` variable after all work is done, once for each time it is loaded."""
        raise BackendUnavailable(f"{self.case.name}: this backend has no variables of compiled code")

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
    trusts_source = True  # whether a case's source may be compiled outside of this backend, to look at its code

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
        """Return the device memory that this process holds; memory outside of arrays only if it is `alone`."""
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

    def orders(self, case: Case) -> "Mapping[str, Backend]":
        """Return backends that launch `case` in other orders of blocks and threads; empty where a device decides."""
        return {}

    def strict(self, case: Case) -> "Backend | None":
        """Return a backend whose launches of a case have all checks, for a limited time; None without more checks."""
        return None

    def peers(self, case: Case) -> tuple[str, ...]:
        """Return the names of the peers that can run here."""
        return ()

    def prepare_peer(self, case: Case, name: str, runnable: Runnable) -> Runnable:
        """Prepare the library call `name` on the inputs of the case's `runnable`; its arrays are its results."""
        raise LookupError(name)


# Cache on disk of what peers make before they can be called: code that was built, and choices that were timed.
#
# Code depends only on its key, so that any process may build it, also next to others. A choice depends on the times
# that were measured for it: it is handed from the process that made it without other work to the later processes of a
# run.

_BUILDS, _CHOICES = "peer_builds", "peer_choices"


def kept_build(key: Iterable[object], build: Callable[[], bytes]) -> bytes:
    """Return the code kept under the key, which names all that decides about it; else build and keep it."""
    return _kept(_BUILDS, key, build)


def kept_choice(key: Iterable[object], choose: Callable[[], bytes]) -> bytes:
    """Return the choice that an earlier process of the run kept under the key on this GPU; else choose and keep it."""
    return _kept(cache_of_gpu(_CHOICES), key, choose)


def forget_kept_choices() -> int:
    """Remove the choices that were made on this GPU so far, and return how many: later processes choose anew."""
    files = [file for file in cache_folder(cache_of_gpu(_CHOICES)).glob("*") if file.is_file()]
    for file in files:
        file.unlink(missing_ok=True)
    return len(files)


def _kept(cache: str, key: Iterable[object], make: Callable[[], bytes]) -> bytes:
    name = hashlib.sha256("\n".join(map(str, key)).encode()).hexdigest()[:32]
    file = cache_folder(cache) / name
    try:
        return file.read_bytes()
    except OSError:
        made = make()
    write_atomically(writable_cache(cache) / name, made)
    return made
