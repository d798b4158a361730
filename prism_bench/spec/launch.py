"""Steps of a host plan: launches and zero fills, and what a launch may require of the device."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral

from prism_bench.errors import SpecError
from prism_bench.spec.instance import Constant

COMPILERS_BLOCK = 0  # as `block`: the compiler decides how many threads a block has
MAP_BYTES = 128  # of a line of a tensor map's box


@dataclass(frozen=True)
class TensorMap:
    """Array argument that a launch passes as a tensor map, by value, instead of as a pointer.

    The kernel has it as `const __grid_constant__ TensorMap` (tensor_map.cuh) and copies boxes of `lines` rows of 128
    bytes of the buffer as a matrix; 16-byte pieces are swizzled within the lines of a box. With `tf32` floats are
    rounded to TF32 on the way. With `box`, boxes have so many elements along each of the array's dimensions; pieces are
    swizzled only where the rows of a box are 128 bytes.
    """

    name: str
    lines: int = 64
    tf32: bool = False
    box: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= self.lines <= 256:
            raise SpecError(f"TensorMap: {self.name}: a box has 1 to 256 lines, not {self.lines}")
        if len(self.box) > 5 or not all(1 <= extent <= 256 for extent in self.box):
            raise SpecError(
                f"TensorMap: {self.name}: a box has 1 to 256 elements in up to 5 dimensions, not {self.box}"
            )


@dataclass(frozen=True)
class Launch:
    """One launch. `entry` and `arguments` (names) default to the spec's; a zero in `grid` means nothing to launch.

    `maps` are the arguments that are passed as tensor maps, which only a device can copy by.
    `constants` are fixed when the kernel is compiled, in languages in which the entry is a function's bare name: values
    of the function's parameters and the compiler's own options, such as `num_warps`. There the compiler may choose the
    threads of a block, too, which is what a launch without `block` leaves to it.
    With `overlaps` it may begin while the launch before it ends, where the device can: its kernel waits for that one
    by `await_last_launch()` of launch_overlap.cuh before it touches memory that the other one uses.
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
        _require_extent("grid", self.grid, least=0)
        if self.block != COMPILERS_BLOCK:
            _require_extent("block", self.block, least=1)
        for name, value in self.constants.items():
            _require_constant(name, value)

    @property
    def is_empty(self) -> bool:
        """Whether the grid has no block."""
        return 0 in (self.grid if isinstance(self.grid, tuple) else (self.grid,))


def _require_constant(name: str, value: object) -> None:
    """Raise a SpecError unless `value` is one that is written in the same way everywhere."""
    if not isinstance(value, bool | int | float | str | None):
        raise SpecError(f"Launch: constant {name} is {value!r}; it is a number, a truth value, a text or None")


def _require_extent(what: str, value: int | tuple[int, ...], *, least: int) -> None:
    """Raise a SpecError unless `value` is a whole number, or a tuple of one to three, each of at least `least`."""
    extents = value if isinstance(value, tuple) else (value,)
    whole = not any(type(extent) is bool or not isinstance(extent, Integral) for extent in extents)
    if not (whole and 1 <= len(extents) <= 3 and min(extents) >= least):
        raise SpecError(
            f"Launch: {what} is {value!r}; it is a whole number of at least {least}, or a tuple of one to three"
        )


@dataclass(frozen=True)
class Zero:
    """Step of a host plan: fill the named buffer with zero bytes, asynchronously."""

    name: str


@dataclass(frozen=True)
class Requirement:
    """Instructions (`what`, in words) that one compute capability alone has, such as 90."""

    what: str
    compute_capability: int
