"""Launch card: what a launch has to know of machine code that another compiler made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, get_args

from prism_bench.errors import SpecError
from prism_bench.units import count_text

Kind = Literal[
    "pointer", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
    "float64", "hidden",
]  # fmt: skip
KIND_BYTES: Mapping[str, int] = {
    "pointer": 8, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "uint8": 1, "uint16": 2, "uint32": 4, "uint64": 8,
    "float16": 2, "float32": 4, "float64": 8, "hidden": 8,
}  # fmt: skip


@dataclass(frozen=True)
class CardParameter:
    """One parameter of the machine code, in order.

    `value` is what is passed: the name of an argument, or a fact of one, `x.shape.0`, `x.stride.0` (in elements),
    `x.bytes.0` (stride in bytes), `x.size`, `x.itemsize` or `x.axes`; a fact of the launch, `launch.grid.0`,
    `launch.blocks`, `launch.block` (threads of one) or `launch.threads`; or a number. One without a value is zero.
    A `hidden` parameter is the compiler's own: the first of them points to the card's scratch memory where it has
    some, the others are null. One that is `joined` is the next member of the structure that the one before it began.
    """

    kind: Kind
    value: str = ""
    joined: bool = False

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise SpecError(f"launch card: a parameter is '{self.kind}'; it is one of {', '.join(get_args(Kind))}")

    @property
    def nbytes(self) -> int:
        """Its size in the parameter list."""
        return KIND_BYTES[self.kind]


@dataclass(frozen=True)
class LaunchCard:
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
        Whether the code numbers its blocks along x alone: a grid of several axes is launched as their product.
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
        """Return the card with the values of its parameters: where it names none, the arguments `names` in order.

        A SpecError where there are more or fewer of them than parameters that are not hidden.
        """
        own = [one for one in self.parameters if one.kind != "hidden"]
        if not own or any(one.value for one in own):
            return self
        if len(own) != len(names):
            raise SpecError(
                f"launch card of '{self.entry}': {count_text(len(own), 'parameter')} not hidden; "
                f"the launch passes {count_text(len(names), 'argument')}: {', '.join(names)}"
            )
        left = iter(names)
        filled = (one if one.kind == "hidden" else replace(one, value=next(left)) for one in self.parameters)
        return replace(self, parameters=tuple(filled))

    @property
    def structures(self) -> tuple[tuple[CardParameter, ...], ...]:
        """The parameters as the ELF file counts them: each alone, or with those that are joined to it."""
        found: list[list[CardParameter]] = []
        for one in self.parameters:
            if one.joined and found:
                found[-1].append(one)
            else:
                found.append([one])
        return tuple(map(tuple, found))

    @property
    def extents(self) -> tuple[tuple[int, int], ...]:
        """Where each of `structures` begins, and its bytes, all as C lays them out."""
        found: list[tuple[int, int]] = []
        end = 0
        for members in self.structures:
            align = max(one.nbytes for one in members)
            begin = _up(end, align)
            end = begin
            for one in members:
                end = _up(end, one.nbytes) + one.nbytes
            end = _up(end, align)
            found.append((begin, end - begin))
        return tuple(found)


def _up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple
