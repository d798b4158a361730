"""The queue kernel and the memory that host and device share, on CUDA and on the emulator."""

import mmap
import os
import re
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import Any

import numpy as np

from prism_bench.backends.cuda.device import describe, open_cupy
from prism_bench.compilation import compile_source
from prism_bench.emulator import HostBuffer, LaunchReport
from prism_bench.emulator import compile_source as emulator_compile_source
from prism_bench.errors import BackendUnavailable, SpecError, UsageError, unknown
from prism_bench.io.files import default_folder, shared_with
from prism_bench.spec.case import Case, Device
from prism_bench.spec.kernel import Array, Launch, Zero

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
    """Return the meaning of an answer's number; kernels define their own errors."""
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
        """The number of blocks of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    def words(self) -> list[int]:
        """Return the words in the order of StageWord, the length first."""
        return [5 + len(self.arguments), self.kernel, *self.grid, *self.arguments]


def table(programs: Sequence[Iterable[QueueStage]]) -> np.ndarray:
    """Return all programs as words: their begins, then the words of each as in ProgramWord; SpecError for too many."""
    bodies: list[list[int]] = []
    for stages in map(list, programs):
        most_blocks = max((stage.blocks for stage in stages), default=1)
        bodies.append([len(stages), most_blocks, *(word for stage in stages for word in stage.words())])
    begins = accumulate((len(body) for body in bodies[:-1]), initial=len(bodies)) if bodies else [0]
    packed = np.array([*begins, *(word for body in bodies for word in body)], np.uint64)
    if packed.size > MOST_PROGRAM_WORDS:
        raise SpecError(f"the programs of a queue take {packed.size} words, {MOST_PROGRAM_WORDS} at most: serve fewer")
    return packed


def slot_of(ticket: int, slots: int) -> int:
    """Return the slot of the ticket's request and answer among `slots`, which are 2, 4, 8 ..."""
    return ticket & (slots - 1)


def requests(numbers: Sequence[int], slots: int) -> np.ndarray:
    """Return the words of at most `slots` requests: the programs of these numbers in order, then the stop."""
    ring = np.zeros(slots, np.uint64)
    for ticket, number in enumerate([*numbers, STOP_PROGRAM], start=1):
        ring[slot_of(ticket, slots)] = message(ticket, number)
    return ring


# Memory that host, worker and device share: a pulse, a ring of requests, a ring of answers; a message is one word.
#
# The memory belongs to no file, and is freed with the last process that maps it.

_PAGE = 4096


class Board:
    """Pulse, and `slots` (2, 4, 8 ...) of requests and answers; the three parts begin at whole lines."""

    def __init__(self, slots: int, handle: int | None = None) -> None:
        if slots < 2 or slots & (slots - 1):
            raise UsageError(f"a queue has 2, 4, 8 ... slots, not {slots}")
        self.slots = slots
        ring = max(slots, LINE_WORDS)
        self._parts = (0, LINE_WORDS, LINE_WORDS + ring, LINE_WORDS + 2 * ring)
        self.nbytes = -(-8 * self._parts[-1] // _PAGE) * _PAGE
        self.handle = _fresh(self.nbytes) if handle is None else handle
        self._memory = mmap.mmap(self.handle, self.nbytes)
        memory = memoryview(self._memory).cast("Q")
        self.pulse, self.requests, self.answers = (
            memory[a:b] for a, b in zip(self._parts, self._parts[1:], strict=False)
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


# Programs to serve: a case's launch plan and arrays as plain data, and all programs as one queue kernel.

ALIGNMENT = 256
_DEFAULT_THREADS = 256
CHAINS = default_folder() / "include" / "launches" / "persistent_chains.cuh"  # every kernel of the chains, to be served


@dataclass(frozen=True)
class Field:
    """An array: its shape and dtype, the byte that fills it at first, and whether the kernel reads it."""

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
        """Return the array of the name; UsageError with the nearest names otherwise."""
        if array not in self.fields:
            raise unknown(f"array of {self.name}", array, self.fields)
        return self.fields[array]


def program_of(name: str, case: Case | None, device: Device) -> Program:
    """Return the case's plan on `device`, or the empty item; UsageError if a plan cannot be served."""
    if case is None:
        return Program(name)
    arrays = {a.name: Field(case.sizes.shape(a.name), a.storage.name, a.first_byte, a.reads) for a in case.spec.arrays}
    if case.spec.constants:
        raise UsageError(
            f"{case.name}: a program that is served has no variables; '{case.spec.constants[0].name}' is one"
        )
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
    names = case.spec.passed(step)
    arguments = map(case.spec.argument, names)
    values = tuple(a.name if isinstance(a, Array) else a.value(case.axes) for a in arguments)
    return ServedStep(entry, grid, block[0], step.shared, values)


def _three(extent: int | tuple[int, ...]) -> tuple[int, int, int]:
    numbers = extent if isinstance(extent, tuple) else (extent,)
    x, y, z = (int(number) for number in (*numbers, 1, 1)[:3])
    return x, y, z


@dataclass(frozen=True)
class Served:
    """Programs as one queue kernel: `entry` of `source`, its block and shared memory, and the `table` of the programs.

    `offsets` are in bytes, of each (program, array) in the workspace.
    """

    programs: tuple[Program, ...]
    source: Path
    entry: str
    threads: int
    shared: int
    table: np.ndarray
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
    packed = table([[_stage(program, step, kernels, offsets) for step in program.steps] for program in programs])
    threads = sizes[0] if sizes else _DEFAULT_THREADS
    entry = f"serve_queue<{', '.join((str(threads), *kernels))}>"
    shared = max((step.shared for step in steps), default=0)
    return Served(tuple(programs), source, entry, threads, shared, packed, offsets, max(total, ALIGNMENT))


def _offsets(programs: Sequence[Program]) -> tuple[dict[tuple[str, str], int], int]:
    """Return where each array begins in the workspace, and the bytes of all."""
    offsets: dict[tuple[str, str], int] = {}
    total = 0
    for program in programs:
        for name, array in program.fields.items():
            offsets[program.name, name] = total
            total += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
    return offsets, total


def _stage(
    program: Program, step: ServedStep, kernels: Sequence[str], offsets: Mapping[tuple[str, str], int]
) -> QueueStage:
    """Return the step with offsets of arrays; scalars are at the low end of a word, where the kernel reads them."""
    arguments = tuple(
        offsets[program.name, argument]
        if isinstance(argument, str)
        else int.from_bytes(argument.tobytes().ljust(8, b"\0"), "little")
        for argument in step.arguments
    )
    return QueueStage(kernels.index(step.entry), step.grid, arguments)


# Machines of a worker: memory that stays, a queue kernel that runs next to the host, and launches as a fallback.


class Machine(ABC):
    """A device, or the emulator, for a worker."""

    device: Device

    @abstractmethod
    def allocate(self, served: Served) -> None:
        """Allocate the workspace and fill every array with its first byte."""

    @abstractmethod
    def serve(self, served: Served, board: Board) -> None:
        """Start the queue kernel on the board; BackendUnavailable names the reason where it cannot run here."""

    @abstractmethod
    def serving(self) -> bool:
        """Return whether the queue kernel still runs; raise the error that ended it."""

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
    """Return the machine of the backend; BackendUnavailable if it is missing."""
    if backend == "cuda":
        return CudaMachine(open_cupy())
    if backend == "emulator":
        return _EmulatedMachine()  # a missing compiler is reported by the first compilation
    raise UsageError(f"backend '{backend}' serves no queue; cuda and emulator do")


# The queue kernel on a CUDA device: one cooperative launch, with copies on a separate stream.

_MAPPED = 2  # cudaHostRegisterMapped
_STAGED = 256 << 10  # bytes; copies of pageable memory this large go through the driver's own pinned memory
_DONE, _NOT_READY = 0, 600  # answers of a stream's query; others are errors


class CudaMachine(Machine):
    """A CUDA device.

    Everything is allocated, compiled and loaded before the queue kernel starts, and both copies were made once:
    operations that wait for an idle device (allocate, free, load) must not happen while the kernel runs.
    """

    def __init__(self, cupy: ModuleType) -> None:
        self._cupy: Any = cupy
        described = describe(cupy)
        self.device, self._name = described, described.name
        self._kernels, self._copies = (cupy.cuda.Stream(non_blocking=True) for _ in range(2))

    def allocate(self, served: Served) -> None:
        cupy = self._cupy
        self._workspace = cupy.zeros(served.workspace_bytes + ALIGNMENT, np.uint8)
        for program in served.programs:
            for name, array in program.fields.items():
                offset = served.offsets[program.name, name]
                self._workspace[offset : offset + array.nbytes].data.memset_async(array.first_byte, array.nbytes)
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
        desk, programs = self._held = self._cupy.zeros(DESK_WORDS, np.uint64), self._cupy.asarray(served.table)
        sizes = (np.int32(board.slots), np.int32(served.table.size))
        arguments = (requests, answers, pulse, desk, programs, self._workspace, *sizes)
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
        content = self._workspace[offset : offset + nbytes].get(stream=self._copies)
        self._copies.synchronize()
        return content.tobytes()

    def _refuse(self) -> None:
        """Raise BackendUnavailable if the device lacks a feature that the queue kernel needs."""
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
        if shared > kernel.max_dynamic_shared_size_bytes:  # the largest of all launches decides
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

_UNLIMITED = 1e7  # seconds of patience: a queue kernel that waits for work makes no progress; our watchdog ends it


class _EmulatedMachine(Machine):
    """The emulator, whose memory is this process's own."""

    device = Device()
    _error: Exception | None = None

    def allocate(self, served: Served) -> None:
        self._memory = np.zeros(served.workspace_bytes + ALIGNMENT, np.uint8)
        start = -self._memory.ctypes.data % ALIGNMENT
        self._workspace = self._memory[start : start + served.workspace_bytes]
        for program in served.programs:
            for name, array in program.fields.items():
                self._at(served.offsets[program.name, name], array.nbytes)[:] = array.first_byte

    def serve(self, served: Served, board: Board) -> None:
        self._error = None
        module = emulator_compile_source(served.source, shared_with(served.source), (served.entry,))
        pulse, requests, answers = map(HostBuffer, board.arrays())
        desk = np.zeros(DESK_WORDS, np.uint64)
        sizes = np.int32(board.slots), np.int32(served.table.size)
        arguments = [requests, answers, pulse, desk, served.table, HostBuffer(self._workspace), *sizes]
        launch = partial(
            module.launch,
            served.entry,
            self.device.sm_count,
            served.threads,
            arguments,
            shared_bytes=served.shared,
            cooperative=True,
            patience=_UNLIMITED,
        )
        self._thread = Thread(target=self._run, args=(launch,), daemon=True)
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
        arguments = [self._arguments(served, program, step) for step in program.steps]

        def launch() -> None:
            for step, values in zip(program.steps, arguments, strict=True):
                report = module.launch(
                    step.entry, step.grid, step.block, values, shared_bytes=step.shared, patience=_UNLIMITED
                )
                if report.findings:
                    raise BackendUnavailable(f"{step.entry} ended: {report.findings[0]}")

        return launch

    def write(self, offset: int, values: np.ndarray) -> None:
        raw = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        self._at(offset, raw.size)[:] = raw

    def read(self, offset: int, nbytes: int) -> bytes:
        return self._at(offset, nbytes).tobytes()

    def _at(self, offset: int, nbytes: int) -> np.ndarray:
        return self._workspace[offset : offset + nbytes]

    def _run(self, launch: Callable[[], LaunchReport]) -> None:
        try:
            report = launch()
            if report.findings:
                self._error = BackendUnavailable(f"the queue kernel ended: {report.findings[0]}")
        except Exception as error:  # raised by `serving`, in the thread that calls it
            self._error = error

    def _arguments(self, served: Served, program: Program, step: ServedStep) -> list[object]:
        arguments: list[object] = []
        for argument in step.arguments:
            if isinstance(argument, str):
                array = program.field(argument)
                memory = self._at(served.offsets[program.name, argument], array.nbytes)
                arguments.append(HostBuffer(memory.view(array.dtype)))
            else:
                arguments.append(argument)
        return arguments
