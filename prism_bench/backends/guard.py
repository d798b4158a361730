"""Guards of a prepared case's outputs: spoil them before a launch, compare them with a verified launch afterwards.

A kernel can distinguish verification from timing: it can count its launches, look whether its outputs hold poison, or
keep a flag in its scratch. So a timed launch finds outputs that are right except for a few unpredictable places, or
random everywhere, and its results are compared with those of the verified launch.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

POOL = 4096  # places of an output that are remembered
SHARE = 16  # one of so many of them is spoiled before a launch
ROOM = 64  # differences that are kept for the judge


@dataclass(frozen=True)
class StrayElement:
    """An element that a timed launch left wrong: `index` in the flat output `name`, and what is there, as its bits."""

    sample: int
    name: str
    index: int
    bits: int


class OutputGuard(ABC):
    """Made right after a verified launch; `key` is random and makes the places unforeseeable.

    Everything but `strays` and `digests` is only enqueued, before and after a launch, outside of what is timed.
    """

    @abstractmethod
    def spoil(self, key: int) -> None:
        """Make some places of every output wrong, by far; what is changed in place is left to `restore`."""

    @abstractmethod
    def overwrite(self, key: int) -> None:
        """Make every byte of every output random, and every scratch as it was when the case was prepared."""

    @abstractmethod
    def clear_scratch(self) -> None:
        """Make every scratch as it was when the case was prepared."""

    @abstractmethod
    def compare(self, sample: int, key: int, *, rewritten: bool = False) -> None:
        """Note remembered places that differ from the verified launch's.

        `rewritten`: only those that still are as `spoil(key)` left them.
        """

    @abstractmethod
    def strays(self) -> list[StrayElement]:
        """Return what `compare` noted and forget it: unordered, at most `ROOM`, after all work is done."""

    @abstractmethod
    def digests(self) -> Mapping[str, int]:
        """Return a digest of the present content of every output."""

    @abstractmethod
    def nudge(self, key: int) -> bool:
        """Change one element of an input by one unit in the last place, towards zero; False where none can be.

        What was changed before is put back first.
        """

    @abstractmethod
    def mend(self) -> None:
        """Undo `nudge`."""


class HostGuard(OutputGuard):
    """The guard of outputs that are NumPy arrays, whose writes go through.

    `outputs` and `scratch` by name; `in_place` names outputs that are inputs too; `inputs` are what may be nudged.
    """

    def __init__(
        self,
        outputs: dict[str, np.ndarray],
        *,
        in_place: Collection[str] = (),
        scratch: Iterable[np.ndarray] = (),
        inputs: Iterable[np.ndarray] = (),
        key: int,
    ) -> None:
        self._outputs = {name: _words(array) for name, array in outputs.items() if array.size}
        self._in_place, self._scratch = set(in_place), list(scratch)
        self._inputs = [array.reshape(-1) for array in inputs if array.size and array.dtype.kind == "f"]
        self._places = {name: _places(words.size, key + n) for n, (name, words) in enumerate(self._outputs.items())}
        self._wanted = {name: words[self._places[name]].copy() for name, words in self._outputs.items()}
        self._noted: list[StrayElement] = []
        self._nudged: tuple | None = None

    def spoil(self, key: int) -> None:
        for name, words in self._outputs.items():
            if name not in self._in_place:
                chosen, spoiled = self._spoiled(name, key)
                words[self._places[name][chosen]] = spoiled

    def overwrite(self, key: int) -> None:
        rng = np.random.default_rng(key)
        for name, words in self._outputs.items():
            if name not in self._in_place:
                words.view(np.uint8)[:] = rng.integers(0, 256, words.nbytes, np.uint8)
        self.clear_scratch()

    def clear_scratch(self) -> None:
        for array in self._scratch:
            array[...] = 0

    def compare(self, sample: int, key: int, *, rewritten: bool = False) -> None:
        for name, words in self._outputs.items():
            if rewritten and name in self._in_place:
                continue
            places = self._places[name]
            wrong = words[places] != self._wanted[name]
            if rewritten:
                chosen, spoiled = self._spoiled(name, key)
                wrong = np.zeros_like(wrong)
                wrong[chosen] = words[places[chosen]] == spoiled
            room = ROOM - len(self._noted)
            strays = places[wrong][:room]
            self._noted += [StrayElement(sample, name, int(at), int(words[at])) for at in strays]

    def strays(self) -> list[StrayElement]:
        noted, self._noted = self._noted, []
        return noted

    def digests(self) -> dict[str, int]:
        return {
            name: int.from_bytes(blake2b(words.tobytes(), digest_size=8).digest(), "little")
            for name, words in self._outputs.items()
        }

    def nudge(self, key: int) -> bool:
        self.mend()
        turn = key % max(1, len(self._inputs))
        for array in self._inputs[turn:] + self._inputs[:turn]:
            words = _words(array)
            at = key % words.size
            odd = np.flatnonzero(words[at : at + ROOM] & 1)
            if odd.size:
                self._nudged = words, at + int(odd[0])
                words[self._nudged[1]] ^= 1
                return True
        return False

    def mend(self) -> None:
        if self._nudged:
            words, at = self._nudged
            words[at] ^= 1
            self._nudged = None

    def _spoiled(self, name: str, key: int) -> tuple[np.ndarray, np.ndarray]:
        """Which of the remembered places are spoiled, and with what."""
        wanted, rng = self._wanted[name], np.random.default_rng(key)
        chosen = rng.integers(0, SHARE, wanted.size) == 0
        chosen[key % wanted.size] = True
        masks = rng.integers(0, np.iinfo(wanted.dtype).max, wanted.size, wanted.dtype, endpoint=True)
        return chosen, (wanted ^ (masks | _far(wanted.dtype)))[chosen]


def _far(dtype: np.dtype) -> int:
    """Return the bit below the highest: the largest of a float's exponent, so that flipping it moves a value far."""
    return dtype.type(1 << (8 * dtype.itemsize - 2))


def _words(array: np.ndarray) -> np.ndarray:
    """Return the elements as flat unsigned integers in the same memory; a complex one as its two parts."""
    size = array.dtype.itemsize // (2 if array.dtype.kind == "c" else 1)
    return array.reshape(-1).view(f"u{size}")


def _places(count: int, key: int) -> np.ndarray:
    """POOL places below `count`, or all, one at random in each of as many equal parts."""
    pool = min(POOL, count)
    edges = np.arange(pool + 1, dtype=np.int64) * count // pool
    return edges[:-1] + np.random.default_rng(key).integers(0, np.diff(edges))
