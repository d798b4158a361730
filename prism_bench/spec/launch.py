"""Launches: the steps of a host plan, the compiled instances that they request, and the cards of foreign code.

A launch card describes machine code that another compiler made.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from numbers import Integral
from pathlib import Path
from typing import Literal

import numpy as np

from prism_bench.errors import SpecError
from prism_bench.spec.kinds import Noun, listed
from prism_bench.units import count_text

Constant = bool | int | float | str | None
Fact = Literal["", "16", "1"]  # what is known of a parameter: nothing, a multiple of 16, equal to 1

_PLAIN = {"": "", "16": ":16", "1": "=1"}


@dataclass(frozen=True)
class Passed:
    """An argument as a compiler sees it: its name in the spec, its type, and what is known of its value.

    `dtype` is a NumPy type's name: of the elements where it is a `pointer`. A pointer that is a multiple of 16 is the
    usual one: every buffer begins at a multiple of 256. `dimensions` is how many axes an array has.
    """

    name: str
    dtype: str
    pointer: bool = False
    fact: Fact = ""
    dimensions: int = 0

    def __str__(self) -> str:
        if self.pointer:
            return "" if self.dtype == "float32" else f"{self.name}:{self.dtype}"
        return f"{self.name}{_PLAIN[self.fact]}" if self.fact else ""


@dataclass(frozen=True)
class Instance:
    """A kernel `function` for arguments of these types, with `constants` that are fixed when it is compiled.

    Constants are values of the function's own parameters and options of the compiler, such as `num_warps`. Of a
    function in CUDA C++ the name is all: `softmax<32, 4>`.
    """

    function: str
    passed: tuple[Passed, ...] = ()
    constants: Mapping[str, Constant] = field(default_factory=dict[str, Constant])

    def __hash__(self) -> int:
        return hash((self.function, self.passed, tuple(self.constants.items())))

    def __str__(self) -> str:
        """Return a text that no other instance has: `softmax<BLOCK=1024, num_warps=4; cols:16>`."""
        constants = ", ".join(f"{name}={value}" for name, value in self.constants.items())
        known = ", ".join(filter(None, map(str, self.passed)))
        inside = "; ".join(filter(None, (constants, known)))
        return f"{self.function}<{inside}>" if inside else self.function


# What every CUDA device launches at most: blocks of a grid and threads of a block, along x, y and z and in all.
LARGEST_GRID, LARGEST_BLOCK = (2**31 - 1, 65_535, 65_535), (1024, 1024, 64)
MOST_THREADS = 1024
# The largest shared memory of a block by compute capability: CUDA C++ Programming Guide, 16.2, and ptxas 13.
SHARED_KB = {
    70: 96, 75: 64, 80: 163, 86: 99, 87: 163, 89: 99, 90: 227, 100: 227, 103: 227, 107: 227, 110: 227, 120: 99,
    121: 99,
}  # fmt: skip
PORTABLE_CLUSTER = 8  # blocks of a cluster; more need an attribute of the kernel, which no launch here sets
BLOCK_REGISTERS = 65_536
COMPILERS_BLOCK = 0  # as `block`: the compiler decides how many threads a block has
MAP_BYTES = 128  # of a line of a tensor map's box
POINTER_BYTES = 8
_PIECE = 16  # bytes: addresses, pitches and the lines of a box are multiples
_MOST_EXTENT, _MOST_PITCH = 2**32, 2**40 - 1
MAP_TYPE = np.dtype([("map", np.uint64, 16)])  # a CUtensorMap, which a kernel takes by value


@dataclass(frozen=True)
class TensorMap(Noun):
    """Array argument that a launch passes as a tensor map, by value, instead of as a pointer.

    The kernel has it as `const __grid_constant__ TensorMap` (tensor_cores/tensor_map.cuh) and copies boxes of `lines`
    rows of 128 bytes of the buffer as a matrix; 16-byte pieces are swizzled within the lines of a box. With `tf32`
    floats are rounded to TF32 on the way. `box` has the elements of a box along each of the array's dimensions;
    pieces are swizzled only where the rows of a box are 128 bytes.
    """

    name: str
    lines: int = 64
    tf32: bool = False
    box: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.lines <= 256:
            raise SpecError(f"TensorMap: {self.name}: a box has 1 to 256 lines, not {self.lines}")
        if len(self.box) > 5 or not all(1 <= extent <= 256 for extent in self.box):
            raise SpecError(
                f"TensorMap: {self.name}: a box has 1 to 256 elements in up to 5 dimensions, not {self.box}"
            )

    def of(self, shape: tuple[int, ...], itemsize: int, address: int = 0) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the extents and the box of the map of an array, the outermost dimension first.

        Raise a SpecError where the driver makes no such map: the requirements of cuTensorMapEncodeTiled in the
        CUDA Driver API, for a map without interleaving.
        """
        box = self.box or (self.lines, MAP_BYTES // itemsize)
        if self.box and len(box) != len(shape):
            raise SpecError(
                f"{self.name}: boxes of {box} are none of an array of {count_text(len(shape), 'dimension')}"
            )
        extents = shape if self.box else (prod(shape[:-1]), *shape[-1:])
        pitches = [prod(extents[axis:]) * itemsize for axis in range(1, len(extents))]
        row, line = prod(extents[-1:]) * itemsize, box[-1] * itemsize
        problems = (
            (itemsize not in (1, 2, 4), f"elements of 1, 2 or 4 bytes, not {itemsize}"),
            (self.tf32 and itemsize != 4, f"floats to round to TF32, not elements of {count_text(itemsize, 'byte')}"),
            (address % _PIECE, f"an address that is a multiple of {_PIECE}, not of {address & -address}"),
            (min(extents) < 1 or max(extents) > _MOST_EXTENT, f"1 to {_MOST_EXTENT:,} elements along each dimension"),
            (pitches and row % _PIECE, f"rows of whole {_PIECE} bytes, not {row:,}"),
            (max(pitches, default=0) > _MOST_PITCH, f"at most {_MOST_PITCH:,} bytes from one row or plane to the next"),
            (line % _PIECE, f"lines of a box of whole {_PIECE} bytes, not {line}"),
        )
        for breaks, need in problems:
            if breaks:
                raise SpecError(f"{self.name}: a tensor map needs {need}; the array has the shape {shape}")
        return extents, box


@dataclass(frozen=True)
class Launch(Noun):
    """One launch. `entry` and `arguments` (names) default to the spec's; a zero in `grid` means nothing to launch.

    `maps` are the arguments that are passed as tensor maps: a device of compute capability 9.0 copies by them, and the
    emulator.
    `constants` are fixed when the kernel is compiled, in languages in which the entry is a function's bare name: values
    of the function's parameters and the compiler's own options, such as `num_warps`. There the compiler may choose the
    threads of a block, too, which is what a launch without `block` leaves to it.
    With `overlaps` it may begin while the launch before it ends, where the device can: its kernel waits for that one
    by `await_last_launch()` of launches/launch_overlap.cuh before it touches memory that the other one uses.
    """

    grid: int | tuple[int, ...]
    block: int | tuple[int, ...] = COMPILERS_BLOCK
    shared: int = 0
    entry: str | None = None
    arguments: tuple[str, ...] | None = None
    cooperative: bool = False
    maps: tuple[TensorMap, ...] = ()
    overlaps: bool = False
    constants: Mapping[str, Constant] = field(default_factory=dict[str, Constant], hash=False)

    def __post_init__(self) -> None:
        for name in ("grid", "block"):
            if isinstance(extent := getattr(self, name), Collection):
                object.__setattr__(self, name, listed(extent))
        _require_extent("grid", self.grid, least=0)
        if self.block != COMPILERS_BLOCK:
            _require_extent("block", self.block, least=1)
        super().__post_init__()

    @property
    def is_empty(self) -> bool:
        """Whether the grid has no block."""
        return 0 in self.extents[0]

    @property
    def extents(self) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """Grid and block, each as three numbers."""
        return triple(self.grid), triple(self.block)


def triple(extent: int | tuple[int, ...]) -> tuple[int, int, int]:
    """Return an extent as three numbers: `256` is (256, 1, 1)."""
    x, y, z = (int(size) for size in (*(extent if isinstance(extent, tuple) else (extent,)), 1, 1)[:3])
    return x, y, z


def _require_extent(what: str, value: int | tuple[int, ...], *, least: int) -> None:
    """Raise a SpecError unless `value` is a whole number, or a tuple of one to three, each of at least `least`."""
    extents = value if isinstance(value, tuple) else (value,)
    whole = not any(type(extent) is bool or not isinstance(extent, Integral) for extent in extents)
    if not (whole and 1 <= len(extents) <= 3 and min(extents) >= least):
        raise SpecError(
            f"Launch: {what} is {value!r}; it is a whole number of at least {least}, or a tuple of one to three"
        )


def beyond_devices(grid: Sequence[int], block: Sequence[int]) -> str | None:
    """Return which extent of a launch exceeds every device, `grid (1, 70000, 1) has 70,000 in y; ...`, or None."""
    for what, extents, largest in (("grid", grid, LARGEST_GRID), ("block", block, LARGEST_BLOCK)):
        for axis, extent, most in zip("xyz", extents, largest, strict=True):
            if not 1 <= extent <= most:
                return f"{what} {tuple(extents)} has {extent:,} in {axis}; a launch has 1 to {most:,} there"
    threads = prod(block)
    if threads > MOST_THREADS:
        return f"block {tuple(block)} has {count_text(threads, 'thread')}; a block has at most {MOST_THREADS:,}"
    return None


def most_warps(registers: int) -> int:
    """Return the warps of a multiprocessor whose threads have that many registers each.

    A thread has them in units of 8, and a quarter of the warps shares a quarter of the 65,536 registers.
    """
    return 4 * (BLOCK_REGISTERS // 4 // (32 * _up(registers, 8)))


# Of a multiprocessor where it is not 64 and 32: CUDA Programming Guide, compute capabilities, and cuda_occupancy.h.
_RESIDENT_WARPS = {75: 32, 86: 48, 87: 48, 89: 48, 110: 48, 120: 48, 121: 48}
_RESIDENT_BLOCKS = {75: 16, 86: 16, 87: 16, 89: 24, 107: 16, 110: 24, 120: 24, 121: 24}


def resident_blocks(threads: int, shared_bytes: int, registers: int = 0, capability: int = 90) -> int:
    """Return the blocks that a multiprocessor holds at a time.

    `shared_bytes` are static and dynamic; a block takes 1 KB more from 8.0 on. Without `registers` they are no limit.
    """
    warps, reserved = _up(threads, 32) // 32, 1024 if capability >= 80 else 0
    most, shared = _RESIDENT_BLOCKS.get(capability, 32), shared_bytes + reserved
    by_shared = (SHARED_KB.get(capability, 227) * 1024 + reserved) // shared if shared else most
    by_registers = most
    if registers:  # a block starts only where four partitions had room for it; the warps of several share them
        by_registers = most_warps(registers) // warps if most_warps(registers) >= _up(warps, 4) else 0
    return min(most, _RESIDENT_WARPS.get(capability, 64) // warps, by_shared, by_registers)


def most_resident(threads: int, shared_bytes: int, registers: int = 0) -> int:
    """Return the blocks that an H200 holds at a time, on 132 multiprocessors; see `resident_blocks`."""
    return 132 * resident_blocks(threads, shared_bytes, registers)


def beyond_residence(grid: Sequence[int], most: int, device: str = "an H200 (132 multiprocessors)") -> str | None:
    """Return why a cooperative launch does not start where a device holds `most` blocks at a time, or None."""
    if prod(grid) <= most:
        return None
    return (
        f"a cooperative grid of {prod(grid):,} blocks; {device} holds {most:,} of them at a time: "
        f"launch at most those, and let each do more"
    )


@dataclass(frozen=True)
class Zero(Noun):
    """Step of a host plan: fill the named buffer with zero bytes, asynchronously."""

    name: str


@dataclass(frozen=True)
class Requirement(Noun):
    """Instructions (`what`, in words) that only one compute capability has, such as 90."""

    what: str
    compute_capability: int


Kind = Literal[
    "pointer", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
    "float64", "hidden",
]  # fmt: skip
_KIND_BYTES: Mapping[str, int] = {
    "pointer": 8, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "uint8": 1, "uint16": 2, "uint32": 4, "uint64": 8,
    "float16": 2, "float32": 4, "float64": 8, "hidden": 8,
}  # fmt: skip


@dataclass(frozen=True)
class CardParameter(Noun):
    """One parameter of the machine code, in order.

    `value` is what is passed: the name of an argument, or a fact of one, `x.shape.0`, `x.stride.0` (in elements),
    `x.bytes.0` (stride in bytes), `x.size`, `x.itemsize` or `x.axes`; a fact of the launch, `launch.grid.0`,
    `launch.blocks`, `launch.block` (threads of one) or `launch.threads`; or a number. One without a value is zero.
    A `hidden` parameter is the compiler's own: the first of them points to the card's scratch memory where it has
    some, the others are null. A `joined` parameter is the next member of the structure that the parameter before it
    is in.
    """

    kind: Kind
    value: str = ""
    joined: bool = False

    @property
    def nbytes(self) -> int:
        """Its size in the parameter list."""
        return _KIND_BYTES[self.kind]


@dataclass(frozen=True)
class LaunchCard(Noun):
    """Card of one entry of a cubin.

    Parameters
    ----------
    entry : str
        The function's symbol in the cubin.
    architecture : str
        The architecture that the cubin is for, `90`.
    parameters : tuple of CardParameter
        All parameters in order, hidden ones too. They are checked against the ELF's own list.
    block : tuple of int
        Threads of a block. With zeros the launch of the spec decides.
    cluster : tuple of int
        Blocks of a cluster.
    shared : int
        Bytes of dynamic shared memory.
    scratch_bytes, scratch_align : int
        Global memory for each block of the grid that the first hidden parameter points to.
    linear : bool
        Whether the code numbers its blocks along x only: a grid of several axes is launched as their product.
    attributes : mapping
        What else the compiler reports of the code.
    cubin : Path, optional
        The file, relative to the spec's folder. A compiler of this package fills it in.
    """

    entry: str
    architecture: str
    parameters: tuple[CardParameter, ...]
    block: tuple[int, int, int] = (0, 0, 0)
    cluster: tuple[int, int, int] = (1, 1, 1)
    shared: int = 0
    scratch_bytes: int = 0
    scratch_align: int = 1
    linear: bool = False
    attributes: Mapping[str, bool | int | float | str | None] = field(
        default_factory=dict[str, "bool | int | float | str | None"]
    )
    cubin: Path | None = None

    def __hash__(self) -> int:
        return hash((self.entry, self.architecture, self.parameters, self.cubin))

    def passing(self, names: Sequence[str]) -> "LaunchCard":
        """Return the card with the arguments `names` in order as its parameters' values, unless it names values itself.

        A SpecError where the names are more or fewer than the parameters that are not hidden.
        """
        shown = [parameter for parameter in self.parameters if parameter.kind != "hidden"]
        if not shown or any(parameter.value for parameter in shown):
            return self
        if len(shown) != len(names):
            raise SpecError(
                f"launch card of '{self.entry}': {count_text(len(shown), 'parameter')} not hidden; "
                f"the launch passes {count_text(len(names), 'argument')}: {', '.join(names)}"
            )
        left = iter(names)
        filled = tuple(
            parameter if parameter.kind == "hidden" else replace(parameter, value=next(left))
            for parameter in self.parameters
        )
        return replace(self, parameters=filled)

    @property
    def structures(self) -> tuple[tuple[CardParameter, ...], ...]:
        """The parameters as the ELF file counts them: each with the parameters that are joined to it."""
        structures: list[list[CardParameter]] = []
        for parameter in self.parameters:
            if parameter.joined and structures:
                structures[-1].append(parameter)
            else:
                structures.append([parameter])
        return tuple(map(tuple, structures))

    @property
    def extents(self) -> tuple[tuple[int, int], ...]:
        """Where each of `structures` begins, and its bytes, all as C lays them out."""
        extents: list[tuple[int, int]] = []
        end = 0
        for members in self.structures:
            align = max(member.nbytes for member in members)
            begin = end = _up(end, align)
            for member in members:
                end = _up(end, member.nbytes) + member.nbytes
            end = _up(end, align)
            extents.append((begin, end - begin))
        return tuple(extents)


def _up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple
