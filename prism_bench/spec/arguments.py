"""Arguments of a kernel, in the order of its CUDA signature."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from prism_bench.errors import SpecError
from prism_bench.spec.inputs import Domain, Fill, normal

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Array:
    """Device buffer. `shape` names axes (or holds numbers), separated by blanks: `"rows cols"`, `"1"`.

    The kernel `reads` it, `writes` it as an output, or has it as working memory (`scratch`).
    """

    name: str
    shape: str
    dtype: str = "float32"
    reads: ClassVar[bool] = False
    writes: ClassVar[bool] = False
    scratch: ClassVar[bool] = False

    @property
    def values(self) -> Domain | None:
        """Values that it may hold; None if nothing declares them."""
        return None

    @property
    def first_byte(self) -> int:
        """Value of every byte of the buffer before a check: zero in scratch, else a poison (NaN in floats)."""
        import numpy as np

        if self.scratch:
            return 0
        return 0xFF if np.dtype(self.dtype).kind in "fc" else 0xA5

    def extents(self, axes: Mapping[str, Any]) -> tuple[int, ...]:
        """Return the shape in numbers."""
        return tuple(self._extent(word, axes) for word in self.shape.split())

    def _extent(self, word: str, axes: Mapping[str, Any]) -> int:
        if word.isdigit():
            return int(word)
        if word not in axes:
            raise SpecError(f"{self.name}: shape '{self.shape}' names '{word}', which is no axis")
        return int(axes[word])


@dataclass(frozen=True)
class FilledArray(Array):
    """Buffer that the kernel reads; filled by `fill` (normal by default).

    `domain` gives the values for which the kernel is defined, if its fill does not.
    """

    fill: Fill = field(default_factory=normal)
    domain: Domain | None = None
    reads: ClassVar[bool] = True

    @property
    def values(self) -> Domain | None:
        """Values that it may hold: its domain or its fill's; None if neither declares one."""
        return self.domain or self.fill.domain


@dataclass(frozen=True)
class In(FilledArray):
    """Buffer that the kernel reads and never writes."""


@dataclass(frozen=True)
class Out(Array):
    """Buffer of which the kernel writes every element, whatever it held before."""

    writes: ClassVar[bool] = True


@dataclass(frozen=True)
class InOut(FilledArray):
    """Buffer that the kernel reads and writes in place."""

    writes: ClassVar[bool] = True


@dataclass(frozen=True)
class Scratch(Array):
    """Working memory: zero when the case is prepared, kept between launches, not counted among the compulsory bytes."""

    scratch: ClassVar[bool] = True


@dataclass(frozen=True)
class Scalar:
    """Number passed by value: the axis or parameter of the same name, converted to `dtype`."""

    name: str
    dtype: str = "float32"

    def value(self, axes: Mapping[str, Any]) -> "np.generic":
        """Return the NumPy scalar to pass; raise a SpecError if it does not fit."""
        import numpy as np

        if self.name not in axes:
            raise SpecError(f"scalar '{self.name}' is neither axis nor parameter")
        if not _fits(axes[self.name], np.dtype(self.dtype)):
            raise SpecError(f"{self.name}={axes[self.name]} does not fit {self.dtype}")
        return np.dtype(self.dtype).type(axes[self.name])


def _fits(value: float, dtype: "np.dtype[Any]") -> bool:
    """Return whether `dtype` holds the value: integers exactly, floats within the range."""
    import numpy as np

    if dtype.kind in "iu":
        return bool(np.iinfo(dtype).min <= value <= np.iinfo(dtype).max and int(value) == value)
    return dtype.kind != "f" or not np.isfinite(value) or abs(value) <= float(np.finfo(dtype).max)


def Size(name: str, dtype: str = "int32") -> Scalar:  # noqa: N802 - reads as a noun in specs
    """Return an axis passed by value, as a 32-bit integer unless `dtype` is another type."""
    return Scalar(name, dtype)
