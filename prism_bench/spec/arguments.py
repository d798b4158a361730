"""Arguments of a kernel in the order of its CUDA signature, and call functions that ask by parameter name."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from inspect import Parameter, signature
from numbers import Real
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from prism_bench.errors import SpecError
from prism_bench.io.installation import extras_named
from prism_bench.spec.dtypes import CARRIED, PAIRS, UNIT_ROUNDOFF, precision_of, storage_of, stored, values_of
from prism_bench.spec.inputs import Domain, Fill, normal
from prism_bench.spec.kinds import Noun, require

if TYPE_CHECKING:
    import numpy as np


# Arguments of a kernel, in the order of its CUDA signature.


@dataclass(frozen=True)
class Array(Noun):
    """Device buffer. `shape` names axes (or holds numbers), separated by blanks: `"rows cols"`, `"1"`.

    `dtype` is one of `dtypes.DTYPES`: NumPy's names, bfloat16, float8_e4m3fn and float8_e5m2, and int4x2 and uint4x2
    for bytes that hold two 4-bit integers each.

    The kernel `reads` it, `writes` it as an output, or has it as working memory (`scratch`).
    """

    name: str
    shape: str
    dtype: str = "float32"
    reads: ClassVar[bool] = False
    writes: ClassVar[bool] = False
    scratch: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            storage_of(self.dtype)
        except SpecError as error:
            raise SpecError(f"argument '{self.name}': {error}") from None
        if self.dtype in PAIRS and not self.shape.split():
            raise SpecError(f"argument '{self.name}': an array of {self.dtype} needs an axis, which counts bytes")

    @property
    def storage(self) -> "np.dtype[Any]":
        """NumPy's type of the buffer: unsigned integers hold the bits of types that NumPy lacks."""
        return storage_of(self.dtype)

    @property
    def holds_bits(self) -> bool:
        """Whether NumPy lacks the type."""
        return self.dtype in CARRIED

    @property
    def values(self) -> Domain | None:
        """Values that it may hold; None if nothing declares them."""
        return None

    @property
    def first_byte(self) -> int:
        """Value of every byte of the buffer before a check: zero in scratch, else a poison (NaN in floats)."""
        if self.scratch:
            return 0
        return 0xFF if precision_of(self.dtype) or self.storage.kind == "c" else 0xA5

    def extents(self, axes: Mapping[str, Any]) -> tuple[int, ...]:
        """Return the shape in numbers."""
        names = self.shape.split()
        for name in names:
            if not name.isdigit() and name not in axes:
                raise SpecError(f"{self.name}: shape '{self.shape}' names '{name}', which is no axis")
            extent = int(name) if name.isdigit() else axes[name]
            if not isinstance(extent, Real) or extent % 1 != 0:
                raise SpecError(f"{self.name}: shape '{self.shape}': {name} is {extent!r}; it is a whole number")
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
class Constant(FilledArray):
    """Input in a `__constant__` or `__device__` variable of the source, which no launch passes.

    The variable is called as the argument or by `symbol`. It is written before the kernel runs, outside of its time.
    """

    symbol: str = ""

    @property
    def variable(self) -> str:
        """The variable's name in the source."""
        return self.symbol or self.name


@dataclass(frozen=True)
class Scalar(Noun):
    """Number passed by value: the axis or parameter of the same name, converted to `dtype`."""

    name: str
    dtype: str = "float32"

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            storage_of(self.dtype)
        except SpecError as error:
            raise SpecError(f"argument '{self.name}': {error}") from None
        if self.dtype in PAIRS:
            raise SpecError(f"argument '{self.name}': {self.dtype} is a type of arrays; pass a byte as uint8")

    @property
    def storage(self) -> "np.dtype[Any]":
        """NumPy's type of the number; an unsigned integer holds the bits of a type that NumPy lacks."""
        return storage_of(self.dtype)

    @property
    def is_rounded(self) -> bool:
        """Whether the kernel gets less than a float32 has of the value: the reference then has what the kernel gets."""
        precision = precision_of(self.dtype)
        return precision is not None and UNIT_ROUNDOFF[precision.name] > UNIT_ROUNDOFF["float32"]

    def value(self, axes: Mapping[str, Any]) -> "np.generic":
        """Return the NumPy scalar to pass, bits of a type that NumPy lacks; raise a SpecError if it does not fit."""
        if self.name not in axes:
            raise SpecError(f"scalar '{self.name}' is neither axis nor parameter")
        return _fitted(axes[self.name], self.dtype, self.name)

    def seen(self, axes: Mapping[str, Any]) -> Any:
        """Return the value that the kernel gets."""
        return float(_seen(self.value(axes), self.dtype))


@dataclass(frozen=True)
class Struct(Scalar):
    """Structure passed by value, such as parameters or a functor; without `dtype` it is an object without members.

    `dtype` has the fields in order as NumPy takes them, `[("scale", "float32"), ("taps", "int32", 3)]`; a field may be
    a list of fields itself. They are laid out as C++ aligns them, or without gaps if `packed`. A field has the value of
    the axis, parameter or derived size of its name. Where one has the structure's own name, it has all fields: a dict
    or a tuple. The reference gets that name as a dict of the values that the kernel gets.
    """

    dtype: Any = ()
    packed: bool = False

    def __post_init__(self) -> None:
        Noun.__post_init__(self)
        try:
            known = self.storage
        except (TypeError, ValueError, SpecError) as error:
            raise SpecError(
                f"structure '{self.name}': {error}; fields are pairs of a name and a dtype: [('scale', 'float32')]"
            ) from None
        if known.hasobject:
            raise SpecError(f"structure '{self.name}': a field holds Python objects, which no kernel takes")

    @property
    def is_rounded(self) -> bool:
        """Whether the reference has what the kernel gets: always, by its field."""
        return True

    @property
    def storage(self) -> "np.dtype[Any]":
        """NumPy's type of the structure; of an object without members its one byte."""
        return _layout(self.dtype, aligned=not self.packed)

    def value(self, axes: Mapping[str, Any]) -> "np.generic":
        """Return the structure to pass; raise a SpecError where a field is absent or does not fit."""
        import numpy as np

        record = np.zeros((), self.storage)
        fields = _fields(self.dtype)
        if fields:
            passed = axes[self.name] if self.name in axes else {n: axes[n] for n in fields if n in axes}
            _fill_record(record, fields, passed, self.name)
        return record[()]  # pyright: ignore[reportReturnType]  # of an array without axes, a scalar

    def seen(self, axes: Mapping[str, Any]) -> Any:
        """Return the values of the fields that the kernel gets, by name."""
        return _seen_fields(self.value(axes), _fields(self.dtype))


def _fields(dtype: Any) -> dict[str, Any]:
    """Return the types of a structure's fields by name: a name of a type, or the fields of a structure inside."""
    import numpy as np

    if isinstance(dtype, np.dtype):
        known: Mapping[str, Any] = dtype.fields or {}  # pyright: ignore[reportAssignmentType]  # by any text
        inside = {name: known[name][0].base for name in dtype.names or ()}
        return {name: kind if kind.names else kind.name for name, kind in inside.items()}
    return {field[0]: field[1] for field in dtype}


def _layout(dtype: Any, *, aligned: bool) -> "np.dtype[Any]":
    import numpy as np

    if isinstance(dtype, np.dtype):
        return cast("np.dtype[Any]", dtype)
    fields = [
        (name, storage_of(kind) if isinstance(kind, str) else _layout(kind, aligned=aligned), *shape)
        for name, kind, *shape in dtype
    ]
    return np.dtype(fields, align=aligned) if fields else np.dtype("V1")


def _fill_record(record: Any, fields: Mapping[str, Any], passed: Any, where: str) -> None:
    """Write the fields of a record; `passed` is a mapping or a tuple in their order."""
    values: Mapping[str, Any] = {}
    if isinstance(passed, Mapping):
        values = cast("Mapping[str, Any]", passed)
    elif isinstance(passed, tuple | list):
        listed = cast("Sequence[Any]", passed)
        values = dict(zip(fields, listed, strict=False)) if len(listed) == len(fields) else {}
    if set(values) != set(fields):
        present = ", ".join(values) or str(cast("object", passed) or "")
        raise SpecError(
            f"structure '{where}' has the fields {', '.join(fields)}, each an axis, a parameter or a derived size, or "
            f"all in a dict or tuple called '{where}'; there is {present or 'none of them'}"
        )
    for name, kind in fields.items():
        if isinstance(kind, str):
            record[name] = _fitted(values[name], kind, f"{where}.{name}", record[name].shape)
        else:
            _fill_record(record[name], _fields(kind), values[name], f"{where}.{name}")


def _seen_fields(record: Any, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _seen(record[name], kind) if isinstance(kind, str) else _seen_fields(record[name], _fields(kind))
        for name, kind in fields.items()
    }


def _fitted(value: Any, dtype: str, where: str, shape: tuple[int, ...] = ()) -> Any:
    """Return a value, or an array of them, as the type stores it; raise a SpecError if it does not fit."""
    import numpy as np

    storage, precision = storage_of(dtype), precision_of(dtype)
    numbers = np.asarray(value)
    if numbers.shape != shape:
        raise SpecError(f"{where} has the shape {numbers.shape}, not {shape}")
    for number in numbers.reshape(-1).tolist():
        require(where, number, complex)
        whole = storage.kind in "iu" and precision is None
        if whole and not (np.iinfo(storage).min <= number <= np.iinfo(storage).max and int(number) == number):
            raise SpecError(f"{where}={number} does not fit {dtype}")
        if precision and np.isfinite(number) and abs(number) > precision.largest:
            raise SpecError(f"{where}={number} does not fit {dtype}")
    return stored(numbers, dtype)[()]


def _seen(value: Any, dtype: str) -> Any:
    """Return stored numbers as Python's."""
    import numpy as np

    return values_of(np.asarray(value), dtype).tolist()


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


def defined_at(function: Callable[..., object] | str) -> str:
    """Return where the function was written, `softmax.py line 12`; its name if it has no Python source."""
    code = None if isinstance(function, str) else _code(function)
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
