"""Arguments of a kernel in the order of its CUDA signature, and call functions that ask by parameter name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from inspect import Parameter, signature
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from prism_bench.errors import SpecError
from prism_bench.io.installation import extras_named
from prism_bench.spec.inputs import Domain, Fill, normal

if TYPE_CHECKING:
    import numpy as np


# Arguments of a kernel, in the order of its CUDA signature.


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
        names = self.shape.split()
        for name in names:
            if not name.isdigit() and name not in axes:
                raise SpecError(f"{self.name}: shape '{self.shape}' names '{name}', which is no axis")
        return tuple(int(name if name.isdigit() else axes[name]) for name in names)


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


# Call functions of a spec, which ask for what they need by parameter name.

_Result = TypeVar("_Result")


def wanted(function: Callable[..., object]) -> tuple[str, ...]:
    """Return the names that `function` asks for."""
    return tuple(_parameters(function))


def call(function: Callable[..., _Result], offered: Mapping[str, Any], where: str) -> _Result:
    """Call `function` with the offered values that it names; raise a SpecError for a name that is not offered.

    An exception of the function gets a note with the line of the spec that raised it.
    """
    bound = bind(function, offered, where)
    try:
        with extras_named():
            return bound()
    except Exception as error:
        code = _code(function)
        line = line_in(error, code.co_filename) if code else None
        note = f"{Path(code.co_filename).name} line {line}" if code and line else f"in {function!r}"
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)
        raise


def bind(function: Callable[..., _Result], offered: Mapping[str, Any], where: str) -> Callable[[], _Result]:
    """Return `function` with the offered values that it names; raise a SpecError for a name that is not offered."""
    arguments: dict[str, Any] = {}
    for name, parameter in _parameters(function).items():
        if name in offered:
            arguments[name] = offered[name]
        elif parameter.default is Parameter.empty:
            raise SpecError(f"{where} asks for '{name}', which is none of: {', '.join(sorted(offered))}")
    return partial(function, **arguments)


def defined_at(function: Callable[..., object]) -> str:
    """Return where the function was written, `softmax.py line 12`; its name if it has no Python source."""
    code = _code(function)
    return f"{Path(code.co_filename).name} line {code.co_firstlineno}" if code else repr(function)


def line_in(error: BaseException, file: str) -> int | None:
    """Return the innermost line of `file` at which the error was raised; None if it was raised elsewhere."""
    line, trace = None, error.__traceback__
    while trace:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _code(function: Callable[..., object]) -> CodeType | None:
    """Return the code of a function, also of one that a `functools.partial` holds."""
    return getattr(getattr(function, "func", function), "__code__", None)


@lru_cache(maxsize=4096)
def _parameters(function: Callable[..., object]) -> Mapping[str, Parameter]:
    """Return the parameters; kept, since reading a signature takes longer than most of these functions."""
    return signature(function).parameters
