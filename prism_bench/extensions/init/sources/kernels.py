"""Kernels and operators in source files, as typed data in which each guess is marked."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Literal, TypeVar

_Value = TypeVar("_Value")

Language = Literal["cuda", "triton"]
Role = Literal["input", "output", "in_out", "size", "scalar", "constexpr", "struct", "unknown"]
# What limits the error of the outputs: one rounding or few for each element, functions such as exp, a sum of terms, a
# sum by which each element is divided or shifted, a sum of products, such a sum in TF32 or half precision; a function
# of an angle that grows with an index.
Arithmetic = Literal[
    "elementwise", "functions", "reduction", "normalising", "product", "tf32_product", "half_product", "angle"
]


@dataclass(frozen=True)
class Guess(Generic[_Value]):
    """A guessed value that the source does not state, and the reason for the guess. A person has to confirm it."""

    value: _Value
    reason: str


@dataclass(frozen=True)
class Unread:
    """A part of a file that could not be read: its line and the reason."""

    path: Path
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.reason}"


@dataclass(frozen=True)
class FoundParameter:
    """A parameter of a kernel.

    `type` is written as in the source. `dtype` is NumPy's name of the number or of the elements behind a pointer, None
    for other types. `shape` names a buffer's axes as a spec does (`"rows cols"`). `below` is what elements that are
    indices have to be below, empty for others. `is_rounded` is whether it gets floats rounded to integers. `fields`
    are those of a structure passed by value, with NumPy's types.
    """

    name: str
    type: str
    dtype: str | None
    role: Guess[Role]
    shape: Guess[str] | None = None
    is_pointer: bool = False
    is_const: bool = False
    is_restrict: bool = False
    default: str | None = None
    below: str = ""
    is_rounded: bool = False
    fields: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class TemplateParameter:
    """A template parameter: `kind` is `typename` or the type of its value, `default` as in the source."""

    name: str
    kind: str
    default: str | None = None


@dataclass(frozen=True)
class FoundLaunch:
    """A launch of a kernel. Every expression is Python over axes and `names`; None if it could not be read.

    `grid` and `block` have one to three expressions. `names` are names in the expressions that are no parameters of the
    kernel, with a guess for each. `template_arguments` are as a spec's entry has them, empty where the source has no
    value. `passed` are numbers that the launch passes for parameters, `derived` expressions for parameters that depend
    on names of the launch. `constants` are a Triton launch's constants and compiler options as expressions, `zeroed`
    the buffers that the host sets to zero before it.
    """

    path: Path
    line: int
    grid: tuple[str, ...] | None
    block: tuple[str, ...] | None
    shared: str | None = "0"
    template_arguments: tuple[str, ...] = ()
    names: tuple[tuple[str, Guess[int]], ...] = ()
    passed: tuple[tuple[str, Guess[float]], ...] = ()
    derived: tuple[tuple[str, str], ...] = ()
    is_cooperative: bool = False
    unread: tuple[Unread, ...] = ()
    constants: tuple[tuple[str, str], ...] = ()
    zeroed: tuple[str, ...] = ()

    @property
    def is_read(self) -> bool:
        """Whether grid, block and shared memory are all known."""
        return None not in (self.grid, self.block, self.shared)


@dataclass(frozen=True)
class FoundKernel:
    """A `__global__` function of CUDA C++, or a function under `@triton.jit`.

    `namespace` is `outer::inner`, or empty. `launch_bounds` are the numbers or names in `__launch_bounds__`.

    `arithmetic` is what the tolerance has to allow for, and `depth` the number of terms of a sum as an expression over
    axes, empty where it is not known; of an angle it is the most that the index has. `derived` has expressions of names
    in shapes that are no axes. `proposed` has NumPy's expression of each output, or is empty. `tune` has values of
    names that may vary, the default first. `tuned_together` has the combinations of these values that the source lists,
    if not all. `limits` has the least and the most of an axis that blocks allow. `helper_of` is the kernel that calls
    or launches this one: it gets no spec. `missing` are reasons why no spec can be complete, `notes` remarks for the
    person who completes it.
    """

    language: Language
    name: str
    path: Path
    line: int
    parameters: tuple[FoundParameter, ...]
    namespace: str = ""
    template_parameters: tuple[TemplateParameter, ...] = ()
    launch_bounds: tuple[str, ...] = ()
    dynamic_shared: bool = False
    launches: tuple[FoundLaunch, ...] = ()
    decorators: tuple[str, ...] = ()
    arithmetic: Guess[Arithmetic] | None = None
    depth: str = ""
    derived: tuple[tuple[str, str], ...] = ()
    proposed: tuple[tuple[str, str], ...] = ()
    tune: tuple[tuple[str, tuple[int | float | str | None, ...]], ...] = ()
    tuned_together: tuple[tuple[int | float | str | None, ...], ...] = ()
    limits: tuple[tuple[str, int | None, int | None], ...] = ()
    helper_of: str = ""
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def sizes(self) -> list[str]:
        """The whole numbers that the kernel takes by value, in structures too."""
        names: list[str] = []
        for parameter in self.parameters:
            names += [parameter.name] if parameter.role.value == "size" else []
            names += [name for name, dtype in parameter.fields if dtype.startswith(("int", "uint"))]
        return names

    @property
    def qualified_name(self) -> str:
        """The name with its namespace, as a spec's `entry` has it without template arguments."""
        return f"{self.namespace}::{self.name}" if self.namespace else self.name

    @property
    def launch(self) -> FoundLaunch | None:
        """The first launch that was read completely, else the first launch, else None."""
        return next((launch for launch in self.launches if launch.is_read), next(iter(self.launches), None))


@dataclass(frozen=True)
class FoundOperator:
    """A PyTorch custom operator: `ns::name`, its schema (None where annotations give it), and the function behind it.

    `language` is `python` for `torch.library.custom_op` and `triton_op`, `cpp` for `TORCH_LIBRARY`. Of a Python
    function `arguments` and `returns` are its annotations, `defaults` its defaults as written, `written` the arguments
    that it changes, and `keywords` those that are given by name.
    """

    name: str
    schema: str | None
    path: Path
    line: int
    language: Literal["python", "cpp"]
    function: str | None = None
    arguments: tuple[tuple[str, str], ...] = ()
    returns: str = ""
    defaults: Mapping[str, str] = field(default_factory=dict[str, str])
    written: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scan:
    """Kernels and operators below a folder, and parts of files that could not be read."""

    kernels: tuple[FoundKernel, ...] = ()
    operators: tuple[FoundOperator, ...] = ()
    unread: tuple[Unread, ...] = ()

    def __add__(self, other: "Scan") -> "Scan":
        return Scan(self.kernels + other.kernels, self.operators + other.operators, self.unread + other.unread)


@dataclass(frozen=True)
class Skeleton:
    """Text of a spec file for a kernel or operator, for a person to complete.

    `file_name` is the spec's file in the folder of a family. `loads` is whether the text is a complete spec: launch,
    types and shapes were read or guessed. `open_points` name what a person has to write or to confirm, the reasons of a
    draft first.
    """

    file_name: str
    text: str
    loads: bool
    open_points: tuple[str, ...] = ()


NOT_IN_SPECS = ("xp", "special", "device", "self")  # names that references and launches may ask for

# C++ types of kernel parameters, as NumPy names them.

_DTYPES = {
    "float32": "float",
    "float64": "double",
    "float16": "half __half at::Half c10::Half nv_half",
    "bfloat16": "__nv_bfloat16 nv_bfloat16 at::BFloat16 c10::BFloat16",
    "float8_e4m3fn": "__nv_fp8_e4m3 c10::Float8_e4m3fn",
    "float8_e5m2": "__nv_fp8_e5m2 c10::Float8_e5m2",
    "bool": "bool",
    "int8": "int8_t char|signed",
    "uint8": "uint8_t char|unsigned std::byte byte uchar",
    "int16": "int16_t short int|short",
    "uint16": "uint16_t short|unsigned int|short|unsigned",
    "int32": "int int32_t signed int|signed",
    "uint32": "uint32_t unsigned int|unsigned uint unsigned|int",
    "int64": "int64_t long long|long int|long int|long|long ptrdiff_t",
    "uint64": "uint64_t size_t long|unsigned long|long|unsigned int|long|unsigned int|long|long|unsigned",
    "complex64": "cuFloatComplex cuComplex float2|complex",
    "complex128": "cuDoubleComplex",
}
_BY_NAME = {tuple(sorted(name.split("|"))): dtype for dtype, names in _DTYPES.items() for name in names.split()}
_VECTORS = {
    f"{base}{lanes}": (dtype, lanes)
    for base, dtype in (("float", "float32"), ("double", "float64"), ("int", "int32"), ("uint", "uint32"),
                        ("half", "float16"), ("__half", "float16"), ("__nv_bfloat16", "bfloat16"),
                        ("nv_bfloat16", "bfloat16"), ("char", "int8"),
                        ("uchar", "uint8"), ("short", "int16"), ("ushort", "uint16"), ("long", "int64"),
                        ("ulong", "uint64"), ("longlong", "int64"), ("ulonglong", "uint64"))
    for lanes in (2, 3, 4)
}  # fmt: skip
_BYTES = {
    **dict.fromkeys(("bool", "int8", "uint8", "float8_e4m3fn", "float8_e5m2"), 1),
    **dict.fromkeys(("int16", "uint16", "float16", "bfloat16"), 2),
    **dict.fromkeys(("int32", "uint32", "float32"), 4),
    **dict.fromkeys(("int64", "uint64", "float64", "complex64"), 8),
    "complex128": 16,
}
_DROPPED = {"const", "volatile", "__restrict__", "__restrict", "restrict", "register", "static", "struct", "typename"}


def dtype_of(type_text: str) -> str | None:
    """Return NumPy's name of a C++ scalar type or of a vector type's elements; None for any other type."""
    vector = _vector(type_text)
    return vector[0] if vector else _BY_NAME.get(tuple(sorted(_words(type_text))))


def lanes_of(type_text: str) -> int:
    """Return the number of elements of a vector type, `float4` has 4; 1 for other types."""
    vector = _vector(type_text)
    return vector[1] if vector else 1


def bytes_of(type_text: str) -> int | None:
    """Return the size of a C++ type in memory; None for what is no number, vector or pointer."""
    if "*" in type_text:
        return 8
    dtype, lanes = dtype_of(type_text), lanes_of(type_text)
    return _BYTES[dtype] * lanes if dtype else None


def _vector(type_text: str) -> tuple[str, int] | None:
    parts = _words(type_text)
    return _VECTORS.get(parts[0]) if len(parts) == 1 else None


def _words(type_text: str) -> list[str]:
    plain = type_text.replace("*", " ").replace("&", " ").replace("std::", "")
    return [part for part in plain.split() if part not in _DROPPED]
