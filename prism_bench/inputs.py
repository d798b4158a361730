"""Inputs: seeded, the same on every backend, cheap at any size.

A fill draws at most `BLOCK` values with NumPy. A larger array repeats that block, each time rotated by a seeded
amount: the distribution is the block's, no two blocks are alike, and a device can lay it out by copying, so that
the host never holds gigabytes and both sides hold the same bits.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from prism_bench.array_types import AnyArray, ArrayModule
from prism_bench.domain import Domain, interval, real, whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

BLOCK = 1 << 20
MOST_BLOCKS = 24  # that are kept: at most 8 MiB each

Draw = Callable[[np.random.Generator, int, Mapping[str, Any]], Any]


@dataclass(frozen=True)
class Fill:
    """Source of an array's values: `draw(rng, count, axes)` returns `count` of them.

    `domain` holds all values that the fill may draw, and those that a kernel filled so has to take as well. With
    `is_common`, fills of the same `meaning` draw the same values from the same generator, whatever the axes are.
    """

    draw: Draw
    meaning: str
    domain: Domain | None = None
    is_common: bool = False


def normal(mean: float = 0.0, deviation: float = 1.0) -> Fill:
    """Return a fill of normally distributed values."""
    meaning = f"normal({mean}, {deviation})"
    return Fill(lambda rng, count, axes: rng.normal(mean, deviation, count), meaning, real(), is_common=True)


def uniform(low: float = 0.0, high: float = 1.0) -> Fill:
    """Return a fill of uniformly distributed values in [low, high)."""
    meaning, domain = f"uniform({low}, {high})", interval(low, high)
    return Fill(lambda rng, count, axes: rng.uniform(low, high, count), meaning, domain, is_common=True)


def integers(low: int | str, high: int | str) -> Fill:
    """Return a fill of integers in [low, high); a bound may be an axis's name."""

    def draw(rng: np.random.Generator, count: int, axes: Mapping[str, Any]) -> "NDArray[np.int64]":
        first, end = (axes[bound] if isinstance(bound, str) else bound for bound in (low, high))
        return rng.integers(first, end, count)

    return Fill(draw, f"integers({low}, {high})", whole(low, high))


def constant(value: float) -> Fill:
    """Return a fill of one value everywhere; for scalars and golden data, never for correctness."""
    return Fill(lambda rng, count, axes: np.full(count, value), f"constant({value})")


@dataclass(frozen=True)
class InputArray:
    """Input that is not laid out yet: `block` repeated with `rotations` until `shape` is full."""

    block: "NDArray[Any]"
    rotations: tuple[int, ...]
    shape: tuple[int, ...]

    @property
    def dtype(self) -> "np.dtype[Any]":
        return self.block.dtype

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    def on(self, xp: ArrayModule) -> AnyArray:
        """Return the array laid out by `xp` (NumPy or CuPy), C-contiguous, a fresh copy each time."""
        out = xp.empty(self.shape, self.dtype)
        flat, block = out.reshape(-1), xp.asarray(self.block)
        for index, rotation in enumerate(self.rotations):
            part = flat[index * BLOCK : (index + 1) * BLOCK]
            head = min(part.size, block.size - rotation)
            part[:head] = block[rotation : rotation + head]
            part[head:] = block[: part.size - head]
        return out


def draw(
    fill: Fill, shape: tuple[int, ...], dtype: str, rng: np.random.Generator, axes: Mapping[str, Any]
) -> InputArray:
    """Return an input of `shape` and `dtype` drawn from `fill`."""
    count = int(np.prod(shape, dtype=np.int64))
    block = _kept_block(fill, dtype, rng, axes) if count >= BLOCK else _block(fill, count, dtype, rng, axes)
    repeats = -(-count // BLOCK)
    rotations = (0, *(int(r) for r in rng.integers(0, BLOCK, max(0, repeats - 1))))[:repeats]
    return InputArray(block, rotations, shape)


def _block(fill: Fill, count: int, dtype: str, rng: np.random.Generator, axes: Mapping[str, Any]) -> "NDArray[Any]":
    return np.asarray(fill.draw(rng, count, axes)).astype(dtype).reshape(-1)


def _kept_block(fill: Fill, dtype: str, rng: np.random.Generator, axes: Mapping[str, Any]) -> "NDArray[Any]":
    """Return a whole block; those of common fills are kept, since most large cases begin with the same ones.

    The generator goes on behind the block, whether it was drawn or kept.
    """
    if not fill.is_common:
        return _block(fill, BLOCK, dtype, rng, axes)
    key = fill.meaning, str(dtype), repr(rng.bit_generator.state)
    with _LOCK:
        kept = _KEPT.get(key)
    if kept:
        rng.bit_generator.state = kept[1]
    else:
        block = _block(fill, BLOCK, dtype, rng, axes)
        block.flags.writeable = False  # several inputs share it
        kept = block, rng.bit_generator.state
    with _LOCK:
        _KEPT[key] = kept
        _KEPT.move_to_end(key)
        if len(_KEPT) > MOST_BLOCKS:
            _KEPT.popitem(last=False)
    return kept[0]


_KEPT: "OrderedDict[tuple[str, str, str], tuple[NDArray[Any], Any]]" = OrderedDict()
_LOCK = Lock()  # threads may draw the next inputs


def given(array: object, dtype: str) -> InputArray:
    """Return an input with given values, as golden data are."""
    values = np.ascontiguousarray(array, dtype)
    flat = values.reshape(-1)
    if flat.size > BLOCK:
        raise ValueError(f"given data may hold {BLOCK} values at most, not {flat.size}")
    return InputArray(flat, (0,) if flat.size else (), values.shape)
