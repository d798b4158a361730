"""What a worker is given to serve: a case's host plan and arrays as plain data, and all of them as one queue kernel."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from prism_bench.errors import UsageError, unknown
from prism_bench.extensions.persistent.layout import QueueStage, table
from prism_bench.io.files import default_folder
from prism_bench.spec.case import Case, Device
from prism_bench.spec.kernel import Array, Launch, Scalar, Zero

ALIGNMENT = 256
DEFAULT_THREADS = 256
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
    """Return the case's plan on `device`, or the empty item; UsageError where a plan cannot be served."""
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
    """Return all programs as one kernel; UsageError where their blocks differ, SpecError where they are too many.

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
    threads = sizes[0] if sizes else DEFAULT_THREADS
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
