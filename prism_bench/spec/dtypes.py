"""Types of elements: their bits in memory and their values, also of types that NumPy lacks.

Buffers of bfloat16, of 8-bit floats and of pairs of 4-bit integers hold bits, as unsigned integers of NumPy or CuPy,
on every backend. Fills, references, golden data and comparisons have values instead: floats in float64, and pairs as
int8 along a last axis of twice the length. Arrays belong to NumPy or CuPy; callers pass the module that owns them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType, ModuleType
from typing import Any, TypeAlias

import numpy as np

from prism_bench.errors import SpecError, unknown

_Array: TypeAlias = Any  # an array of NumPy or of CuPy

# Precisions of numbers: how values are rounded to each, the type that carries their bits, and back.
#
# float16, bfloat16, e4m3 and e5m2 (4 or 5 bits of exponent, 3 or 2 of fraction) are those of IEEE 754, of Google's TPUs
# and of the OCP's 8-bit floating point specification: e4m3 ends at 448 and has no infinity. tf32 is a float32 of which
# a product uses 10 bits of the fraction, and three_bfloat16 one that is the sum of three bfloat16, exactly. NumPy has
# no bfloat16, e4m3 and e5m2: unsigned integers carry their bits.

_CODES = np.arange(127)  # of what is not negative in e4m3, in order; 127 is the NaN
_E4M3 = np.where(_CODES < 8, _CODES * 2.0**-9, (8 + _CODES % 8) * 2.0 ** (_CODES // 8 - 10.0))
_E4M3_ALL = np.concatenate([_E4M3, [np.nan], -_E4M3, [np.nan]])
_E5M2_ALL = (np.arange(256, dtype="uint16") << 8).view("float16").astype("float64")  # the upper byte of a float16
_E5M2 = np.concatenate([_E5M2_ALL[:124], [2.0**16]])  # what rounds to 2^16 is infinite
_ALL = {"e4m3": _E4M3_ALL, "e5m2": _E5M2_ALL}
_POSITIVE = {"e4m3": _E4M3, "e5m2": _E5M2}
_NAN_CODE = 127  # of both


@dataclass(frozen=True)
class Precision:
    """Format of floating-point numbers, of `digits` binary digits with the one before the point.

    `dtype` is the NumPy type that carries them, `smallest` the exponent of the smallest positive number, `largest` the
    largest finite one. A number beyond it becomes infinite, or `largest` where the format has no infinity. `eight` is
    the layout of a format of 8 bits.
    """

    name: str
    dtype: str
    digits: int
    smallest: int
    largest: float
    has_infinity: bool = True
    eight: str = ""

    @property
    def bits(self) -> int:
        """The size of a number in memory."""
        return np.dtype(self.dtype).itemsize * 8

    @property
    def carries_bits(self) -> bool:
        """Whether `dtype` is an unsigned integer."""
        return np.dtype(self.dtype).kind == "u"

    def narrowed(self, values: _Array, xp: ModuleType = np) -> _Array:
        """Return the nearest numbers of this precision, ties to even, in `dtype`."""
        if self.eight:
            return _to_eight(xp.asarray(values).astype("float64"), self.eight, xp)
        if self.name in ("bfloat16", "tf32"):
            with np.errstate(over="ignore"):
                kept = _cut(xp.asarray(values).astype("float32"), 16 if self.name == "bfloat16" else 13, xp)
            return (kept >> 16).astype("uint16") if self.name == "bfloat16" else kept.view("float32")
        with np.errstate(over="ignore"):
            return xp.asarray(values).astype(self.dtype)

    def values(self, array: _Array, xp: ModuleType = np) -> _Array:
        """Return the numbers of an array of `dtype` in float64."""
        if self.eight:
            return xp.asarray(_ALL[self.eight])[array]
        if self.carries_bits:
            array = (array.astype("uint32") << 16).view(xp.float32)
        return array.astype("float64")


_FLOAT32_LARGEST = float(np.finfo("float32").max)
_BFLOAT16_LARGEST = float(255 * 2.0**120)
PRECISIONS: Mapping[str, Precision] = MappingProxyType({
    precision.name: precision
    for precision in (
        Precision("float64", "float64", 53, -1074, float(np.finfo("float64").max)),
        Precision("float32", "float32", 24, -149, _FLOAT32_LARGEST),
        Precision("three_bfloat16", "float32", 24, -149, _FLOAT32_LARGEST),
        Precision("tf32", "float32", 11, -136, _FLOAT32_LARGEST),
        Precision("float16", "float16", 11, -24, 65504.0),
        Precision("bfloat16", "uint16", 8, -133, _BFLOAT16_LARGEST),
        Precision("float8", "uint8", 4, -9, 448.0, has_infinity=False, eight="e4m3"),  # as fusion calls e4m3
        Precision("float8_e4m3fn", "uint8", 4, -9, 448.0, has_infinity=False, eight="e4m3"),
        Precision("float8_e5m2", "uint8", 3, -16, 57344.0, eight="e5m2"),
    )
})  # fmt: skip
UNIT_ROUNDOFF = {name: 2.0**-precision.digits for name, precision in PRECISIONS.items()}


def widened(array: _Array, xp: ModuleType) -> _Array:
    """Return the values of bits, by their type (uint16: bfloat16, uint8: e4m3), and other arrays as they are."""
    name = {"uint16": "bfloat16", "uint8": "float8"}.get(array.dtype.name)
    return PRECISIONS[name].values(array, xp) if name else array


def _cut(values: _Array, bits: int, xp: ModuleType) -> _Array:
    """Return float32 bits rounded to nearest even where the last `bits` are cut off; infinities and NaN stay."""
    raw = values.view("uint32")
    odd = raw >> np.uint32(bits) & np.uint32(1)
    rounded = raw + np.uint32((1 << bits - 1) - 1) + odd
    kept = xp.where(xp.isfinite(values), rounded, raw) & ~np.uint32((1 << bits) - 1)
    return xp.where(xp.isnan(values), np.uint32(0x7FC00000), kept)


def _to_eight(values: _Array, layout: str, xp: ModuleType) -> _Array:
    table, size = xp.asarray(_POSITIVE[layout]), xp.abs(values)
    last = len(table) - 1
    above = xp.clip(xp.searchsorted(table, size), 1, last)
    up, down = table[above] - size, size - table[above - 1]
    code = xp.where((up < down) | ((up == down) & (above % 2 == 0)), above, above - 1)
    code = xp.where(size >= table[last], last, code)
    return xp.where(xp.isnan(values), _NAN_CODE, code + xp.where(xp.signbit(values), 128, 0)).astype("uint8")


# Types of elements by name.

PAIRS: Mapping[str, tuple[int, int]] = MappingProxyType({"int4x2": (-8, 7), "uint4x2": (0, 15)})
CARRIED = {"bfloat16": "uint16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"} | dict.fromkeys(PAIRS, "uint8")
DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    "complex64", "complex128", *CARRIED,
)  # fmt: skip
_OF_CPP = {
    "half": "float16", "__half": "float16", "fp16": "float16", "bf16": "bfloat16", "__nv_bfloat16": "bfloat16",
    "nv_bfloat16": "bfloat16", "fp8": "float8_e4m3fn", "float8": "float8_e4m3fn", "float8_e4m3": "float8_e4m3fn",
    "__nv_fp8_e4m3": "float8_e4m3fn", "__nv_fp8_e5m2": "float8_e5m2", "int4": "int4x2", "uint4": "uint4x2",
    "char": "int8", "signed char": "int8", "unsigned char": "uint8", "uchar": "uint8", "short": "int16",
    "unsigned short": "uint16", "unsigned int": "uint32", "unsigned": "uint32", "long long": "int64",
    "unsigned long": "uint64", "unsigned long long": "uint64", "size_t": "uint64", "ptrdiff_t": "int64",
    **{f"{kind}{bits}_t": f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
}  # fmt: skip


@cache
def storage_of(dtype: str) -> "np.dtype[Any]":
    """Return the NumPy type that holds elements of a type, the bits of one that NumPy lacks.

    Raise a SpecError that lists the known types for any other name.
    """
    if dtype in _OF_CPP:
        raise SpecError(f"dtype '{dtype}': write '{_OF_CPP[dtype]}'")
    try:
        stored = np.dtype(CARRIED.get(dtype, dtype))
    except TypeError:
        stored = np.dtype("V1")
    if stored.name not in DTYPES:
        raise SpecError(f"{unknown('dtype', str(dtype), DTYPES)}; there are {', '.join(DTYPES)}")
    return stored


def precision_of(dtype: str) -> Precision | None:
    """Return the format of a type's numbers; None for integers, complex numbers and truth values."""
    return PRECISIONS.get(dtype if dtype in CARRIED else storage_of(dtype).name)


def values_of(array: _Array, dtype: str, xp: ModuleType = np) -> _Array:
    """Return the values of a buffer of that type: floats in float64, pairs one by one, other types as they are."""
    if dtype in PAIRS:
        return unpacked(array, xp, signed=dtype == "int4x2")
    precision = precision_of(dtype)
    return precision.values(array, xp) if precision else array


def stored(values: _Array, dtype: str, xp: ModuleType = np) -> _Array:
    """Return values as a buffer of that type holds them, rounded to the nearest; a SpecError where no pair can."""
    if dtype in PAIRS:
        return packed(values, xp, signed=dtype == "int4x2")
    precision = precision_of(dtype)
    return precision.narrowed(values, xp) if precision else xp.asarray(values).astype(storage_of(dtype))


def values_shape(shape: tuple[int, ...], dtype: str) -> tuple[int, ...]:
    """Return the shape of the values of a buffer of that shape: of pairs the last axis is twice as long."""
    return (*shape[:-1], 2 * shape[-1]) if dtype in PAIRS else shape


def unpacked(array: _Array, xp: ModuleType = np, *, signed: bool = True) -> _Array:
    """Return the 4-bit integers of bytes as int8 (uint8 unless `signed`), along a last axis of twice the length.

    The first of a byte is in its lower half.
    """
    kind, octets = "int8" if signed else "uint8", array.view("uint8")
    halves = xp.stack([octets << 4, octets & 0xF0], axis=-1).view(kind) >> 4
    return halves.reshape(*array.shape[:-1], 2 * array.shape[-1])


def packed(values: _Array, xp: ModuleType = np, *, signed: bool = True) -> _Array:
    """Return 4-bit integers as bytes, two neighbours of the last axis in each; a SpecError where they are none."""
    array, (low, high) = xp.asarray(values), PAIRS["int4x2" if signed else "uint4x2"]
    if array.shape[-1] % 2 or not bool(((array >= low) & (array <= high) & (array == xp.floor(array))).all()):
        raise SpecError(
            f"no pairs of 4-bit integers: an array of shape {tuple(array.shape)} with values other than whole numbers "
            f"from {low} to {high}, or of odd length; fill=integers({low}, {high + 1}) draws such"
        )
    halves = (array.astype("int16") & 15).astype("uint8").reshape(*array.shape[:-1], array.shape[-1] // 2, 2)
    return halves[..., 0] | halves[..., 1] << 4
