"""Inputs: seeded, the same on every backend, cheap at any size.

A fill draws at most `BLOCK` values with NumPy. A larger array repeats that block, each time rotated by a seeded
amount: the distribution is the block's, no two blocks are alike, and a device can lay it out by copying, so that
the host never holds gigabytes and both sides hold the same bits.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from prism_bench.domain import Domain, interval, real, whole

BLOCK = 1 << 20


@dataclass(frozen=True)
class Fill:
    """How an array gets its values: `draw(rng, count, axes)` gives `count` values.

    `domain` holds all values that the fill may draw, and those that a kernel filled so has to take as well.
    """

    draw: Callable
    meaning: str
    domain: Domain | None = None


def normal(mean: float = 0.0, deviation: float = 1.0) -> Fill:
    """Normally distributed values."""
    return Fill(lambda rng, count, axes: rng.normal(mean, deviation, count), f"normal({mean}, {deviation})", real())


def uniform(low: float = 0.0, high: float = 1.0) -> Fill:
    """Uniformly distributed values in [low, high)."""
    return Fill(lambda rng, count, axes: rng.uniform(low, high, count), f"uniform({low}, {high})", interval(low, high))


def integers(low, high) -> Fill:
    """Integers in [low, high); a bound may be an axis's name."""

    def draw(rng, count, axes):
        return rng.integers(axes.get(low, low), axes.get(high, high), count)

    return Fill(draw, f"integers({low}, {high})", whole(low, high))


def constant(value: float) -> Fill:
    """The same value everywhere; for scalars and golden data, never for correctness."""
    return Fill(lambda rng, count, axes: np.full(count, value), f"constant({value})")


@dataclass(frozen=True)
class InputArray:
    """One input, not laid out yet: `block` repeated with `rotations` until `shape` is full."""

    block: np.ndarray
    rotations: tuple[int, ...]
    shape: tuple[int, ...]

    @property
    def dtype(self) -> np.dtype:
        return self.block.dtype

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    def on(self, xp):
        """The array laid out by `xp` (NumPy or CuPy), C-contiguous, a fresh copy each time."""
        out = xp.empty(self.shape, self.dtype)
        flat, block = out.reshape(-1), xp.asarray(self.block)
        for index, rotation in enumerate(self.rotations):
            _lay(flat[index * BLOCK : (index + 1) * BLOCK], block, rotation)
        return out


def _lay(part, block, rotation):
    head = min(part.size, block.size - rotation)
    part[:head] = block[rotation : rotation + head]
    part[head:] = block[: part.size - head]


def draw(fill: Fill, shape: tuple[int, ...], dtype: str, rng: np.random.Generator, axes) -> InputArray:
    """An input of `shape` and `dtype` drawn from `fill`."""
    count = int(np.prod(shape, dtype=np.int64))
    block = np.asarray(fill.draw(rng, min(count, BLOCK), axes)).astype(dtype).reshape(-1)
    repeats = -(-count // BLOCK)
    rotations = (0, *(int(r) for r in rng.integers(0, BLOCK, max(0, repeats - 1))))[:repeats]
    return InputArray(block, rotations, shape)


def given(array, dtype: str) -> InputArray:
    """An input whose values are given, as golden data are."""
    array = np.ascontiguousarray(array, dtype)
    flat = array.reshape(-1)
    if flat.size > BLOCK:
        raise ValueError(f"given data may hold {BLOCK} values at most, not {flat.size}")
    return InputArray(flat, (0,) if flat.size else (), array.shape)
