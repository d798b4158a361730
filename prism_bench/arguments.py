"""The arguments of a kernel, in the order of its CUDA signature."""

from dataclasses import dataclass, field

from prism_bench.domain import Domain
from prism_bench.errors import SpecError
from prism_bench.inputs import Fill, normal


@dataclass(frozen=True)
class Array:
    """A device buffer. `shape` names axes (or holds numbers), separated by blanks: `"rows cols"`, `"1"`."""

    name: str
    shape: str
    dtype: str = "float32"

    reads = False
    writes = False
    scratch = False
    domain = None

    @property
    def values(self) -> Domain | None:
        """The values that it may hold: its own domain or its fill's; None where neither declares one."""
        return self.domain or (self.fill.domain if self.reads else None)

    @property
    def first_byte(self) -> int:
        """What every byte of the buffer is before a check: zero in scratch, else a poison (NaN in floats)."""
        import numpy as np

        if self.scratch:
            return 0
        return 0xFF if np.dtype(self.dtype).kind in "fc" else 0xA5

    def extents(self, axes) -> tuple[int, ...]:
        """The shape in numbers."""
        return tuple(self._extent(word, axes) for word in self.shape.split())

    def _extent(self, word, axes):
        if word.isdigit():
            return int(word)
        if word not in axes:
            raise SpecError(f"{self.name}: shape '{self.shape}' names '{word}', which is no axis")
        return int(axes[word])


@dataclass(frozen=True)
class In(Array):
    """Read by the kernel, never written; filled by `fill` (normal by default).

    `domain` says for which values the kernel is defined, where its fill does not.
    """

    fill: Fill = field(default_factory=normal)
    domain: Domain | None = None
    reads = True


@dataclass(frozen=True)
class Out(Array):
    """Written by the kernel: every element, whatever stood there."""

    writes = True


@dataclass(frozen=True)
class InOut(Array):
    """Read and written in place; `fill` and `domain` as in In."""

    fill: Fill = field(default_factory=normal)
    domain: Domain | None = None
    reads = True
    writes = True


@dataclass(frozen=True)
class Scratch(Array):
    """Working memory of the kernel's own: zero when the case is prepared, left alone between launches, not counted
    among the compulsory bytes."""

    scratch = True


@dataclass(frozen=True)
class Scalar:
    """A number passed by value: the axis or parameter of the same name, converted to `dtype`."""

    name: str
    dtype: str = "float32"

    def value(self, axes):
        """The NumPy scalar to pass; a SpecError where it does not fit."""
        import numpy as np

        if self.name not in axes:
            raise SpecError(f"scalar '{self.name}' is neither axis nor parameter")
        if not _fits(axes[self.name], np.dtype(self.dtype)):
            raise SpecError(f"{self.name}={axes[self.name]} does not fit {self.dtype}")
        return np.dtype(self.dtype).type(axes[self.name])


def _fits(value, dtype):
    """Whether `dtype` holds the value: integers exactly, floats within the range."""
    import numpy as np

    if dtype.kind in "iu":
        return np.iinfo(dtype).min <= value <= np.iinfo(dtype).max and int(value) == value
    return dtype.kind != "f" or not np.isfinite(value) or abs(value) <= float(np.finfo(dtype).max)


def Size(name: str, dtype: str = "int32") -> Scalar:  # noqa: N802 - reads as a noun in specs
    """An axis passed by value, as a 32-bit integer unless `dtype` says otherwise."""
    return Scalar(name, dtype)
