"""The queue kernel and the memory that host and device share, on CUDA and on the emulator."""

import mmap
import os
import re
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import Any

import numpy as np

from prism_bench.backends.cuda.device import describe, open_cupy
from prism_bench.compilation import compile_source
from prism_bench.emulator import HostBuffer, LaunchReport, Module
from prism_bench.emulator import compile_source as emulator_compile_source
from prism_bench.errors import BackendUnavailable, SpecError, UsageError, unknown
from prism_bench.io.files import default_folder, shared_with
from prism_bench.spec.case import Case, Device
from prism_bench.spec.kernel import Array, Launch, Scalar, Zero

# The queue's words, as `kernels/include/launches/work_queue.cuh` defines them; its constants are read from there.
#
# A message is one word: a ticket in the upper bits, a number in the lower ones. In a request the number is the
# program's, in an answer the error's. All words are 64 bits wide.

_HEADER = default_folder() / "include" / "launches" / "work_queue.cuh"
_NUMBER = re.compile(r"^constexpr (?:unsigned )?int (\w+) = (0x[0-9a-f]+|\d+);", re.MULTILINE)
_ENUM = re.compile(r"^enum \w+ \{([^}]*)\};", re.MULTILINE)


def constants(text: str) -> dict[str, int]:
    """Return the whole numbers and the enumerators that a header defines at its outermost level, by name."""
    numbers = {name: int(value, 0) for name, value in _NUMBER.findall(text)}
    lists = [[name.strip() for name in names.split(",")] for names in _ENUM.findall(text)]
    return {**numbers, **{name: value for names in lists for value, name in enumerate(names)}}


_CONSTANTS = constants(_HEADER.read_text())
NUMBER_BITS, STOP_PROGRAM = _CONSTANTS["NUMBER_BITS"], _CONSTANTS["STOP_PROGRAM"]
DESK_WORDS, MOST_PROGRAM_WORDS = _CONSTANTS["DESK_WORDS"], _CONSTANTS["MOST_PROGRAM_WORDS"]
NO_SUCH_PROGRAM = _CONSTANTS["NO_SUCH_PROGRAM"]
NO_ERROR, KERNEL_ERRORS = _CONSTANTS["NO_ERROR"], _CONSTANTS["KERNEL_ERRORS"]
_ERRORS = {_CONSTANTS["NO_SUCH_PROGRAM"]: "no such program", _CONSTANTS["NO_SUCH_KERNEL"]: "no such kernel"}
LINE_WORDS = 8  # of a line of the host's cache; words that different sides write are in different lines


def message(ticket: int, number: int) -> int:
    """Return the word for a ticket and a number."""
    return ticket << NUMBER_BITS | number


def ticket_of(word: int) -> int:
    """Return the ticket of a message."""
    return word >> NUMBER_BITS


def number_of(word: int) -> int:
    """Return the number of a message."""
    return word & STOP_PROGRAM


def error_text(number: int) -> str:
    """Return the meaning of an answer's number in words; kernels define their own errors."""
    if number >= KERNEL_ERRORS:
        return f"the kernel gave error {number - KERNEL_ERRORS}"
    return _ERRORS.get(number, f"error {number}")


@dataclass(frozen=True)
class QueueStage:
    """One kernel of a program: its index among the kernels that are served, its grid, its arguments as words."""

    kernel: int
    grid: tuple[int, int, int]
    arguments: tuple[int, ...]

    @property
    def blocks(self) -> int:
        """How many blocks the grid has."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    def words(self) -> list[int]:
        """Return the words in the order of StageWord, the length first."""
        return [5 + len(self.arguments), self.kernel, *self.grid, *self.arguments]


def table(programs: Sequence[Iterable[QueueStage]]) -> np.ndarray:
    """Return all programs as words: where each one begins, then its words as in ProgramWord; SpecError for too many."""
    bodies = [_body(list(stages)) for stages in programs]
    begins = accumulate((len(body) for body in bodies[:-1]), initial=len(bodies)) if bodies else [0]
    words = np.array([*begins, *(word for body in bodies for word in body)], np.uint64)
    if words.size > MOST_PROGRAM_WORDS:
        raise SpecError(f"the programs of a queue take {words.size} words, {MOST_PROGRAM_WORDS} at most: serve fewer")
    return words


def _body(stages: Sequence[QueueStage]) -> list[int]:
    return [
        len(stages),
        max((stage.blocks for stage in stages), default=1),
        *(word for stage in stages for word in stage.words()),
    ]


def slot_of(ticket: int, slots: int) -> int:
    """Return the slot of the ticket's request and answer among `slots`, which are 2, 4, 8 ..."""
    return ticket & (slots - 1)


def requests(numbers: Sequence[int], slots: int) -> np.ndarray:
    """Return the words of at most `slots` requests: the programs of these numbers in order, then the stop."""
    words = np.zeros(slots, np.uint64)
    for ticket, number in enumerate([*numbers, STOP_PROGRAM], start=1):
        words[slot_of(ticket, slots)] = message(ticket, number)
    return words


# Memory that host, worker and device share: a pulse, a ring of requests, a ring of answers; a message is one word.
#
# It belongs to no file, and is freed with the last process that maps it.

PAGE = 4096


class Board:
    """`slots` (2, 4, 8 ...) of requests and answers. `words` are all of them; the three parts begin at whole lines."""

    def __init__(self, slots: int, handle: int | None = None) -> None:
        if slots < 2 or slots & (slots - 1):
            raise UsageError(f"a queue has 2, 4, 8 ... slots, not {slots}")
        self.slots = slots
        ring = max(slots, LINE_WORDS)
        self._parts = (0, LINE_WORDS, LINE_WORDS + ring, LINE_WORDS + 2 * ring)
        self.nbytes = -(-8 * self._parts[-1] // PAGE) * PAGE
        self.handle = _fresh(self.nbytes) if handle is None else handle
        self._memory = mmap.mmap(self.handle, self.nbytes)
        words = memoryview(self._memory).cast("Q")
        self.pulse, self.requests, self.answers = (
            words[a:b] for a, b in zip(self._parts, self._parts[1:], strict=False)
        )

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return pulse, requests and answers as arrays over the same memory."""
        pulse, requests, answers = (
            np.frombuffer(part, np.uint64) for part in (self.pulse, self.requests, self.answers)
        )
        return pulse, requests, answers

    def close(self) -> None:
        """Close this process's handle; the mapping is removed when nothing refers to it any more."""
        os.close(self.handle)


def _fresh(nbytes: int) -> int:
    """Return a handle of memory without a name: anonymous where the system offers that, else a removed file."""
    if hasattr(os, "memfd_create"):
        handle = os.memfd_create("prism-bench-queue")
    else:
        with tempfile.TemporaryFile() as file:
            handle = os.dup(file.fileno())
    os.ftruncate(handle, nbytes)
    return handle


# What a worker is given to serve: a case's host plan and arrays as plain data, and all of them as one queue kernel.

ALIGNMENT = 256
_DEFAULT_THREADS = 256
CHAINS = default_folder() / "include" / "launches" / "persistent_chains.cuh"  # every kernel of the chains, to be served


@dataclass(frozen=True)
class Field:
    """An array: its shape and dtype, the byte that it is filled with at first, and whether the kernel reads it."""

    shape: tuple[int, ...]
    dtype: str
    first_byte: int
    reads: bool

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class ServedStep:
    """One launch of a plan; an argument is an array's name or a NumPy scalar."""

    entry: str
    grid: tuple[int, int, int]
    block: int
    shared: int
    arguments: tuple[str | np.generic, ...]


@dataclass(frozen=True)
class Program:
    """A case to be served as `name`; without steps it is the empty item. `source` has its kernels for launches."""

    name: str
    steps: tuple[ServedStep, ...] = ()
    fields: Mapping[str, Field] = field(default_factory=dict)
    source: Path | None = None
    options: tuple[str, ...] = ()

    def field(self, array: str) -> Field:
        """Return the array of that name; UsageError with the nearest names otherwise."""
        if array not in self.fields:
            raise unknown(f"array of {self.name}", array, self.fields)
        return self.fields[array]


def program_of(name: str, case: Case | None, device: Device) -> Program:
    """Return the case's plan on `device`, or the empty item; UsageError if a plan cannot be served."""
    if case is None:
        return Program(name)
    arrays = {a.name: Field(case.sizes.shape(a.name), a.dtype, a.first_byte, a.reads) for a in case.spec.arrays}
    steps = tuple(_step(case, step) for step in case.plan.steps(device) if not getattr(step, "is_empty", False))
    return Program(name, steps, arrays, case.spec.source_file, case.spec.options)


def _step(case: Case, step: Launch | Zero) -> ServedStep:
    if not isinstance(step, Launch):
        raise UsageError(f"{case.name} cannot be served: its plan fills '{step.name}' with zeros between its kernels")
    entry, grid, block = step.entry or case.spec.entry, _three(step.grid), _three(step.block)
    if block[1:] != (1, 1):
        shape = f"{entry} has blocks of {block}; they must have one dimension"
        raise UsageError(f"{case.name} cannot be served: {shape}")
    if step.maps:
        raise UsageError(f"{case.name} cannot be served: {entry} copies by tensor maps, which only its own launch has")
    names = step.arguments or tuple(argument.name for argument in case.spec.arguments)
    values = tuple(_value(case, case.spec.argument(name)) for name in names)
    return ServedStep(entry, grid, block[0], step.shared, values)


def _value(case: Case, argument: Array | Scalar) -> str | np.generic:
    return argument.name if isinstance(argument, Array) else argument.value(case.axes)


def _three(extent: int | tuple[int, ...]) -> tuple[int, int, int]:
    numbers = extent if isinstance(extent, tuple) else (extent,)
    x, y, z = (int(number) for number in (*numbers, 1, 1)[:3])
    return x, y, z


@dataclass(frozen=True)
class Served:
    """Programs as one queue kernel: `entry` of `source`, its block and shared memory, and the words of the programs.

    `offsets` are those of each (program, array) in the workspace, in bytes.
    """

    programs: tuple[Program, ...]
    source: Path
    entry: str
    threads: int
    shared: int
    words: np.ndarray
    offsets: Mapping[tuple[str, str], int]
    workspace_bytes: int


def served(programs: Sequence[Program], source: Path = CHAINS) -> Served:
    """Return all programs as one kernel; UsageError if their blocks differ, SpecError if they are too many.

    `source` includes `virtual_grid.cuh` and then the programs' kernels.
    """
    steps = [step for program in programs for step in program.steps]
    sizes = sorted({step.block for step in steps})
    if len(sizes) > 1:
        blocks = ", ".join(f"{step.entry}: {step.block}" for step in steps)
        raise UsageError(f"a queue's kernels have blocks of one size, these have not ({blocks}): serve them apart")
    kernels = tuple(dict.fromkeys(step.entry for step in steps))
    offsets, total = _offsets(programs)
    words = table([[_stage(program, step, kernels, offsets) for step in program.steps] for program in programs])
    threads = sizes[0] if sizes else _DEFAULT_THREADS
    entry = f"serve_queue<{', '.join((str(threads), *kernels))}>"
    shared = max((step.shared for step in steps), default=0)
    return Served(tuple(programs), source, entry, threads, shared, words, offsets, max(total, ALIGNMENT))


def _offsets(programs: Sequence[Program]) -> tuple[dict[tuple[str, str], int], int]:
    """Return where each array begins in the workspace, and the bytes of all."""
    offsets: dict[tuple[str, str], int] = {}
    total = 0
    for program in programs:
        for name, one in program.fields.items():
            offsets[program.name, name] = total
            total += -(-one.nbytes // ALIGNMENT) * ALIGNMENT
    return offsets, total


def _stage(
    program: Program, step: ServedStep, kernels: Sequence[str], offsets: Mapping[tuple[str, str], int]
) -> QueueStage:
    words = tuple(offsets[program.name, value] if isinstance(value, str) else _bits(value) for value in step.arguments)
    return QueueStage(kernels.index(step.entry), step.grid, words)


def _bits(value: np.generic) -> int:
    """Return the scalar's bytes at the low end of a word, where the kernel reads them."""
    return int.from_bytes(value.tobytes().ljust(8, b"\0"), "little")


# What a worker uses: memory that stays, a queue kernel that runs next to the host, and launches as a fallback.


class Machine(ABC):
    """One device, or the emulator, for one worker."""

    device: Device

    @abstractmethod
    def settle_in(self, served: Served) -> None:
        """Allocate the workspace and lay every array out with its first byte."""

    @abstractmethod
    def serve(self, served: Served, board: Board) -> None:
        """Start the queue kernel on the board; BackendUnavailable names the reason where it cannot run here."""

    @abstractmethod
    def serving(self) -> bool:
        """Return whether the queue kernel still runs. An error that ended it is raised."""

    @abstractmethod
    def launcher(self, served: Served, program: Program) -> Callable[[], None]:
        """Return a function that launches the program's kernels one after another and waits for the last."""

    @abstractmethod
    def write(self, offset: int, values: np.ndarray) -> None:
        """Copy the values into the workspace; they are there when it returns."""

    @abstractmethod
    def read(self, offset: int, nbytes: int) -> bytes:
        """Return the workspace's bytes from `offset` on."""


def open_machine(backend: str) -> Machine:
    """Return the machine of that backend's name; BackendUnavailable if it is missing."""
    machines = {"cuda": _open_cuda, "emulator": _open_emulated}
    if backend not in machines:
        raise UsageError(f"backend '{backend}' serves no queue; {' and '.join(machines)} do")
    return machines[backend]()


# The queue kernel on a CUDA device: one cooperative launch, with copies on a separate stream.

_MAPPED = 2  # cudaHostRegisterMapped
_STAGED = 256 << 10  # bytes; copies of pageable memory this large go through the driver's own pinned memory
_DONE, _NOT_READY = 0, 600  # what a stream's query answers; anything else is an error


def _open_cuda() -> "CudaMachine":
    """Return the current device; BackendUnavailable if there is no device."""
    return CudaMachine(open_cupy())


class CudaMachine(Machine):
    """A CUDA device.

    Everything is allocated, compiled and loaded before the queue kernel starts, and both copies were made once: what
    waits for an idle device (allocating, freeing, loading) must not happen while the kernel runs.
    """

    def __init__(self, cupy: ModuleType) -> None:
        self._cupy: Any = cupy
        described = describe(cupy)
        self.device, self._name = described, described.name
        self._kernels, self._copies = (cupy.cuda.Stream(non_blocking=True) for _ in range(2))

    def settle_in(self, served: Served) -> None:
        cupy = self._cupy
        self._workspace = cupy.zeros(served.workspace_bytes + ALIGNMENT, np.uint8)
        for program in served.programs:
            for name, one in program.fields.items():
                offset = served.offsets[program.name, name]
                self._workspace[offset : offset + one.nbytes].data.memset_async(one.first_byte, one.nbytes)
        cupy.cuda.runtime.deviceSynchronize()
        self.write(0, np.frombuffer(self.read(0, _STAGED), np.uint8))

    def serve(self, served: Served, board: Board) -> None:
        self._refuse()
        try:
            self._begin(served, board)
        except self._cupy.cuda.driver.CUDADriverError as error:
            raise BackendUnavailable(f"{self._name} does not launch the queue kernel: {error}") from error

    def _begin(self, served: Served, board: Board) -> None:
        kernel = self._kernel(served.source, (), served.entry, served.shared, cooperative=True)
        apart = self._share(board)
        pulse, requests, answers = (np.uint64(part.ctypes.data + apart) for part in board.arrays())
        desk, words = self._held = self._cupy.zeros(DESK_WORDS, np.uint64), self._cupy.asarray(served.words)
        sizes = (np.int32(board.slots), np.int32(served.words.size))
        arguments = (requests, answers, pulse, desk, words, self._workspace, *sizes)
        self._cupy.cuda.runtime.deviceSynchronize()
        with self._kernels:
            kernel((self.device.sm_count,), (served.threads,), arguments, shared_mem=served.shared)

    def serving(self) -> bool:
        runtime = self._cupy.cuda.runtime
        status = runtime.streamQuery(self._kernels.ptr)
        if status not in (_DONE, _NOT_READY):
            raise BackendUnavailable(f"the queue kernel ended: {runtime.CUDARuntimeError(status)}")
        return status == _NOT_READY

    def launcher(self, served: Served, program: Program) -> Callable[[], None]:
        calls = [self._call(served, program, step) for step in program.steps]
        self._cupy.cuda.runtime.deviceSynchronize()

        def launch() -> None:
            with self._kernels:
                for call in calls:
                    call()
            self._kernels.synchronize()

        return launch

    def write(self, offset: int, values: np.ndarray) -> None:
        raw = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        self._workspace[offset : offset + raw.size].set(raw, stream=self._copies)
        self._copies.synchronize()

    def read(self, offset: int, nbytes: int) -> bytes:
        found = self._workspace[offset : offset + nbytes].get(stream=self._copies)
        self._copies.synchronize()
        return found.tobytes()

    def _refuse(self) -> None:
        """Raise BackendUnavailable unless the device has what the queue kernel needs."""
        runtime = self._cupy.cuda.runtime
        needed = {
            "cooperative launches": runtime.cudaDevAttrCooperativeLaunch,
            "memory of the host's in its own address space": runtime.cudaDevAttrCanMapHostMemory,
        }
        here = self._cupy.cuda.Device().id
        missing = [what for what, attribute in needed.items() if not runtime.deviceGetAttribute(attribute, here)]
        if missing:
            raise BackendUnavailable(f"{self._name} offers no {' and no '.join(missing)}")

    def _share(self, board: Board) -> int:
        """Lock the board's pages and return how far the device's addresses of it are from the host's."""
        runtime, address = self._cupy.cuda.runtime, board.arrays()[0].ctypes.data
        try:
            runtime.hostRegister(address, board.nbytes, _MAPPED)
            return runtime.pointerGetAttributes(address).devicePointer - address
        except runtime.CUDARuntimeError as error:
            raise BackendUnavailable(f"the queue's memory cannot be shared with {self._name}: {error}") from error

    def _kernel(self, source: Path, options: Sequence[str], entry: str, shared: int, cooperative: bool = False) -> Any:
        """Return the compiled kernel, with room for `shared` bytes of dynamic shared memory."""
        compiled = compile_source(source, (entry,), str(self.device.compute_capability), options)
        module = self._cupy.RawModule(path=str(compiled.path), enable_cooperative_groups=cooperative)
        kernel = module.get_function(compiled.lowered[entry])
        if shared > kernel.max_dynamic_shared_size_bytes:  # of all that launch it, the one with most decides
            kernel.max_dynamic_shared_size_bytes = shared
        return kernel

    def _call(self, served: Served, program: Program, step: ServedStep) -> Callable[[], None]:
        assert program.source is not None, "a program with steps has a source"
        kernel = self._kernel(program.source, program.options, step.entry, step.shared)
        arguments = tuple(
            self._workspace[served.offsets[program.name, argument] :] if isinstance(argument, str) else argument
            for argument in step.arguments
        )
        return lambda: kernel(step.grid, (step.block,), arguments, shared_mem=step.shared)


# The queue kernel on the emulator, in its own thread: its waits let the blocks take turns.

_UNLIMITED = 1e7  # seconds of patience: a queue kernel that waits for work makes no progress, and the watchdog is ours


def _open_emulated() -> "EmulatedMachine":
    """Return the emulator's machine; a missing compiler is reported when something is compiled."""
    return EmulatedMachine()


@dataclass(frozen=True)
class EmulatedLaunch:
    """A launch of the queue kernel, or of a program's kernel."""

    entry: str
    grid: int | tuple[int, ...]
    block: int
    arguments: Sequence[object]
    shared: int

    def run(self, module: Module, cooperative: bool = False) -> LaunchReport:
        """Launch the kernel and return the report of its end."""
        return module.launch(
            self.entry,
            self.grid,
            self.block,
            self.arguments,
            shared_bytes=self.shared,
            cooperative=cooperative,
            patience=_UNLIMITED,
        )


class EmulatedMachine(Machine):
    """The emulator, whose memory is this process's own."""

    device = Device()
    _error: Exception | None = None

    def settle_in(self, served: Served) -> None:
        self._memory = np.zeros(served.workspace_bytes + ALIGNMENT, np.uint8)
        start = -self._memory.ctypes.data % ALIGNMENT
        self._workspace = self._memory[start : start + served.workspace_bytes]
        for program in served.programs:
            for name, one in program.fields.items():
                self._at(served.offsets[program.name, name], one.nbytes)[:] = one.first_byte

    def serve(self, served: Served, board: Board) -> None:
        self._error = None
        module = emulator_compile_source(served.source, shared_with(served.source), (served.entry,))
        pulse, requests, answers = map(HostBuffer, board.arrays())
        desk = np.zeros(DESK_WORDS, np.uint64)
        words = [requests, answers, pulse, desk, served.words, HostBuffer(self._workspace)]
        sizes = [np.int32(board.slots), np.int32(served.words.size)]
        launch = EmulatedLaunch(served.entry, self.device.sm_count, served.threads, [*words, *sizes], served.shared)
        self._thread = Thread(target=self._run, args=(module, launch), daemon=True)
        self._thread.start()

    def serving(self) -> bool:
        if self._error:
            raise self._error
        return self._thread.is_alive()

    def launcher(self, served: Served, program: Program) -> Callable[[], None]:
        if not program.steps or program.source is None:
            return lambda: None
        entries = tuple(dict.fromkeys(step.entry for step in program.steps))
        module = emulator_compile_source(program.source, shared_with(program.source), entries)
        calls = [
            EmulatedLaunch(step.entry, step.grid, step.block, self._arguments(served, program, step), step.shared)
            for step in program.steps
        ]
        return lambda: self._launch(module, calls)

    def write(self, offset: int, values: np.ndarray) -> None:
        raw = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        self._at(offset, raw.size)[:] = raw

    def read(self, offset: int, nbytes: int) -> bytes:
        return self._at(offset, nbytes).tobytes()

    def _at(self, offset: int, nbytes: int) -> np.ndarray:
        return self._workspace[offset : offset + nbytes]

    def _run(self, module: Module, launch: EmulatedLaunch) -> None:
        try:
            report = launch.run(module, cooperative=True)
            if report.findings:
                self._error = BackendUnavailable(f"the queue kernel ended: {report.findings[0]}")
        except Exception as error:  # raised by `serving`, in the thread that calls it
            self._error = error

    def _arguments(self, served: Served, program: Program, step: ServedStep) -> list[object]:
        return [
            self._buffer(served, program, argument) if isinstance(argument, str) else argument
            for argument in step.arguments
        ]

    def _buffer(self, served: Served, program: Program, name: str) -> HostBuffer:
        one = program.field(name)
        place = self._at(served.offsets[program.name, name], one.nbytes)
        return HostBuffer(place.view(one.dtype))

    def _launch(self, module: Module, calls: Sequence[EmulatedLaunch]) -> None:
        for call in calls:
            report = call.run(module)
            if report.findings:
                raise BackendUnavailable(f"{call.entry} ended: {report.findings[0]}")
