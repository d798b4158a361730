"""Inputs of a kernel: the values that arguments may hold, what fills them, and the arrays that are drawn.

Inputs are seeded, the same on every backend, and cheap at any size. A fill draws at most `BLOCK` values with NumPy. A
larger array repeats that block, each time rotated by a seeded amount: the distribution is the block's, no two blocks
are alike, and a device can lay it out by copying, so that the host never holds gigabytes and both sides hold the same
bits. Where a kernel could gain by knowing that, `chosen` puts the array together from values of the block that a key
chooses, so that nothing but the distribution repeats.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import inf
from threading import Lock
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from prism_bench.spec.dtypes import PAIRS, stored
from prism_bench.spec.kinds import Noun, checked

if TYPE_CHECKING:
    from numpy.typing import NDArray

AnyArray: TypeAlias = Any  # an array of NumPy or of CuPy; CuPy has no stubs
ArrayModule: TypeAlias = ModuleType  # numpy or cupy


@dataclass(frozen=True)
class Domain(Noun):
    """Values from `low` to `high`; only whole numbers with `whole`.

    A bound may be an axis's name. `most` bounds the magnitudes that are drawn where the domain itself has no end: up to
    it no term of the definition leaves the range of the type. `open_low` leaves `low` itself out. `finite` leaves
    infinities out, `numbers` leaves NaN out. `fixed` are values with a structure that only their fill knows.
    """

    low: float | str = -inf
    high: float | str = inf
    most: float | None = None
    whole: bool = False
    open_low: bool = False
    finite: bool = False
    numbers: bool = False
    fixed: bool = False

    def with_finite_numbers(self) -> "Domain":
        """Return the domain without infinities and NaN, for definitions that need an order or a distance."""
        return replace(self, finite=True, numbers=True)


def real(most: float | None = None) -> Domain:
    """Return the domain of all numbers, infinities and NaN too."""
    return Domain(most=most)


def nonnegative(most: float | None = None) -> Domain:
    """Return the domain of zero and more, such as masses and counts that need not be whole."""
    return Domain(low=0.0, most=most)


def positive(most: float | None = None) -> Domain:
    """Return the domain of what is more than zero and finite, such as variances and precisions."""
    return Domain(low=0.0, most=most, open_low=True, finite=True, numbers=True)


@checked
def interval(low: float, high: float) -> Domain:
    """Return the domain from `low` to `high`, both included."""
    return Domain(low=low, high=high, finite=True, numbers=True)


def whole(low: float | str, high: float | str) -> Domain:
    """Return the domain of whole numbers from `low` up to `high`, itself left out; a bound may be an axis's name."""
    return Domain(low=low, high=high, whole=True, finite=True, numbers=True)


def as_drawn() -> Domain:
    """Return the domain of values whose structure only their fill knows, such as permutations: it has no regimes."""
    return Domain(fixed=True)


BLOCK = 1 << 20
STEP = np.uint64(0x9E3779B97F4A7C15)  # of splitmix64
_HOST_PIECE, _DEVICE_PIECE = 1 << 16, 1 << 22  # elements chosen at a time: what is computed of them stays in a cache
MOST_BLOCKS = 24  # that are kept: at most 8 MiB each

Draw = Callable[[np.random.Generator, int, Mapping[str, Any]], Any]


@dataclass(frozen=True)
class Runs(Noun):
    """Values of a block that are drawn together: `length` neighbours, which begin at any multiple of `step`.

    Any choice among the runs of a block has its distribution, as any choice of values has where each is one.
    """

    length: int = 1
    step: int = 1

    @property
    def count(self) -> int:
        """How many runs a block has."""
        return max(0, BLOCK - self.length) // self.step + 1

    def places(self, key: int, first: int, count: int, xp: ArrayModule = np) -> AnyArray:
        """Return which element of a block each of `count` elements from the place `first` on is, chosen by the key.

        A run is the highest 32 bits of splitmix64's output, scaled to their number, as in `backends/cuda/guard.cu`.
        """
        places = xp.arange(first, first + count, dtype=np.uint64)
        runs = places // np.uint64(self.length)
        chosen = (mixed(runs + np.uint64(key)) >> np.uint64(32)) * np.uint64(self.count) >> np.uint64(32)
        return (chosen * np.uint64(self.step) + (places - runs * np.uint64(self.length))).astype(np.int64)


ONE_BY_ONE = Runs()


@dataclass(frozen=True)
class Fill(Noun):
    """Source of an array's values: `draw(rng, count, axes)` returns `count` of them.

    `domain` holds all values that the fill may draw, and those that a kernel filled so has to take as well. With
    `is_common`, fills of the same `meaning` draw the same values from the same generator, whatever the axes are. `runs`
    are what of a whole block belongs together, by the axes where these decide it; None if unknown.
    """

    draw: Draw
    meaning: str
    domain: Domain | None = None
    is_common: bool = False
    runs: Runs | Callable[[Mapping[str, Any]], Runs] | None = None

    def known_runs(self, axes: Mapping[str, Any]) -> Runs | None:
        """Return what of a block belongs together for these axes; None where that is unknown, or more than a block."""
        runs = self.runs(axes) if callable(self.runs) else self.runs
        return runs if runs and runs.length <= BLOCK else None


@checked
def normal(mean: float = 0.0, deviation: float = 1.0) -> Fill:
    """Return a fill of normally distributed values."""
    meaning = f"normal({mean}, {deviation})"
    return Fill(
        lambda rng, count, axes: rng.normal(mean, deviation, count), meaning, real(), is_common=True, runs=ONE_BY_ONE
    )


@checked
def uniform(low: float = 0.0, high: float = 1.0) -> Fill:
    """Return a fill of uniformly distributed values in [low, high)."""
    meaning, domain = f"uniform({low}, {high})", interval(low, high)
    return Fill(
        lambda rng, count, axes: rng.uniform(low, high, count), meaning, domain, is_common=True, runs=ONE_BY_ONE
    )


@checked
def integers(low: int | str, high: int | str) -> Fill:
    """Return a fill of integers in [low, high); a bound may be an axis's name."""

    def draw(rng: np.random.Generator, count: int, axes: Mapping[str, Any]) -> "NDArray[np.int64]":
        first, end = (axes[bound] if isinstance(bound, str) else bound for bound in (low, high))
        return rng.integers(first, end, count)

    return Fill(draw, f"integers({low}, {high})", whole(low, high), runs=ONE_BY_ONE)


@checked
def constant(value: float) -> Fill:
    """Return a fill of one value everywhere; for scalars and golden data, never for correctness."""
    return Fill(lambda rng, count, axes: np.full(count, value), f"constant({value})", runs=ONE_BY_ONE)


@dataclass(frozen=True)
class InputArray:
    """Input that is not laid out yet: `block` repeated with `rotations` until `shape` is full.

    With a `key`, it consists of `runs` of the block instead, each chosen by the key and its place.
    """

    block: "NDArray[Any]"
    rotations: tuple[int, ...]
    shape: tuple[int, ...]
    runs: Runs | None = None
    key: int | None = None

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
        if self.key is not None and self.runs:
            piece = _HOST_PIECE if xp is np else _DEVICE_PIECE
            for first in range(0, flat.size, piece):
                part = flat[first : first + piece]
                part[:] = block[self.runs.places(self.key, first, part.size, xp)]
            return out
        for index, rotation in enumerate(self.rotations):
            part = flat[index * BLOCK : (index + 1) * BLOCK]
            head = min(part.size, block.size - rotation)
            part[:head] = block[rotation : rotation + head]
            part[head:] = block[: part.size - head]
        return out

    def chosen(self, key: int) -> "InputArray":
        """Return the input whose runs the key chooses, where it is larger than a block and its runs are known."""
        return replace(self, key=key) if self.runs and len(self.rotations) > 1 else self


def mixed(values: AnyArray) -> AnyArray:
    """Return the output of splitmix64 (Steele, Lea and Flood, OOPSLA 2014) for an array of states of 64 bits."""
    values = values + STEP
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def draw(
    fill: Fill, shape: tuple[int, ...], dtype: str, rng: np.random.Generator, axes: Mapping[str, Any]
) -> InputArray:
    """Return an input of `shape` and `dtype` drawn from `fill`."""
    count = int(np.prod(shape, dtype=np.int64))
    block = _kept_block(fill, dtype, rng, axes) if count >= BLOCK else _block(fill, count, dtype, rng, axes)
    repeats = -(-count // BLOCK)
    rotations = (0, *(int(r) for r in rng.integers(0, BLOCK, max(0, repeats - 1))))[:repeats]
    return InputArray(block, rotations, shape, fill.known_runs(axes))


def _block(fill: Fill, count: int, dtype: str, rng: np.random.Generator, axes: Mapping[str, Any]) -> "NDArray[Any]":
    drawn = np.asarray(fill.draw(rng, 2 * count if dtype in PAIRS else count, axes)).reshape(-1)
    return stored(drawn, dtype)


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


def input_of(array: object, dtype: str) -> InputArray:
    """Return an input with the values of `array`, such as golden data."""
    values = np.ascontiguousarray(stored(np.asarray(array), dtype))
    flat = values.reshape(-1)
    if flat.size > BLOCK:
        raise ValueError(f"given data may hold {BLOCK} values at most, not {flat.size}")
    return InputArray(flat, (0,) if flat.size else (), values.shape)
