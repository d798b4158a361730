"""Precisions of numbers: how values are rounded to each, the type that carries their bits, and back.

float16, bfloat16 and e4m3 (`float8`: 4 bits of exponent, 3 of fraction, largest value 448, no infinity) are those of
IEEE 754, of Google's TPUs and of the OCP's 8-bit floating point specification; tf32 is a float32 of which a product
uses 10 bits of the fraction, and three_bfloat16 one that is the sum of three bfloat16, exactly. NumPy has neither
bfloat16 nor e4m3: unsigned integers carry their bits.
"""

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from prism_bench.spec.inputs import AnyArray, ArrayModule

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CODES = np.arange(127)  # of what is not negative in e4m3, in order; 127 is the NaN
_E4M3 = np.where(_CODES < 8, _CODES * 2.0**-9, (8 + _CODES % 8) * 2.0 ** (_CODES // 8 - 10.0))
_E4M3_ALL = np.concatenate([_E4M3, [np.nan], -_E4M3, [np.nan]])


@dataclass(frozen=True)
class Precision:
    """Format of numbers. `dtype` is the NumPy type that carries them, `bits` is the size of one in memory."""

    name: str
    dtype: str
    bits: int

    def narrowed(self, values: "NDArray[Any]") -> "NDArray[Any]":
        """Return the nearest numbers of this precision, ties to even, in `dtype`; e4m3 stops at its largest."""
        if self.name == "float8":
            return _to_e4m3(np.asarray(values, "float64"))
        if self.name in ("bfloat16", "tf32"):
            kept = _cut(np.asarray(values, "float32"), 16 if self.name == "bfloat16" else 13)
            return (kept >> 16).astype("uint16") if self.name == "bfloat16" else kept.view("float32")
        with np.errstate(over="ignore"):
            return np.asarray(values).astype(self.dtype)


PRECISIONS = MappingProxyType({
    name: Precision(name, dtype, np.dtype(dtype).itemsize * 8)
    for name, dtype in (("float64", "float64"), ("float32", "float32"),
                        ("three_bfloat16", "float32"), ("tf32", "float32"), ("float16", "float16"),
                        ("bfloat16", "uint16"), ("float8", "uint8"))
})  # fmt: skip


def widened(array: AnyArray, xp: ArrayModule) -> AnyArray:
    """Return the values of bits, by their type (uint16: bfloat16, uint8: e4m3), and other arrays as they are."""
    if array.dtype == np.uint16:
        return (array.astype("uint32") << 16).view(xp.float32).astype("float64")
    return xp.asarray(_E4M3_ALL)[array] if array.dtype == np.uint8 else array


def _cut(values: "NDArray[np.float32]", bits: int) -> "NDArray[np.uint32]":
    """Return float32 bits rounded to nearest even where the last `bits` are cut off; infinities and NaN stay."""
    raw = values.view("uint32")
    odd = raw >> np.uint32(bits) & np.uint32(1)
    rounded = raw + np.uint32((1 << bits - 1) - 1) + odd
    kept = np.where(np.isfinite(values), rounded, raw) & ~np.uint32((1 << bits) - 1)
    return np.where(np.isnan(values), np.uint32(0x7FC00000), kept)


def _to_e4m3(values: "NDArray[np.float64]") -> "NDArray[np.uint8]":
    size = np.abs(values)
    above = np.clip(np.searchsorted(_E4M3, size), 1, 126)
    up, down = _E4M3[above] - size, size - _E4M3[above - 1]
    code = np.where((up < down) | ((up == down) & (above % 2 == 0)), above, above - 1)
    code = np.where(size >= _E4M3[-1], 126, code)
    return np.where(np.isnan(values), 127, code + np.where(np.signbit(values), 128, 0)).astype("uint8")
