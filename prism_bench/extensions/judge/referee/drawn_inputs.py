"""Inputs that are launched, compared, and launched again: drawn once."""

from collections import OrderedDict
from collections.abc import Callable, Mapping

from prism_bench.inputs import InputArray

KEPT_BYTES = 512 << 20  # of a case's inputs, the latest


class DrawnInputs:
    """The inputs of a case by seed, as `draw` makes them."""

    def __init__(self, draw: Callable[[int], Mapping[str, InputArray]]) -> None:
        self._draw, self._bytes = draw, 0
        self._kept = OrderedDict[int, Mapping[str, InputArray]]()

    def __call__(self, seed: int) -> Mapping[str, InputArray]:
        """Return the inputs of a seed: the very ones of the last time, unless too many others came between."""
        if seed not in self._kept:
            self._kept[seed] = self._draw(seed)
            self._bytes += _size(self._kept[seed])
            while self._bytes > KEPT_BYTES and len(self._kept) > 1:
                self._bytes -= _size(self._kept.popitem(last=False)[1])
        self._kept.move_to_end(seed)
        return self._kept[seed]


def _size(inputs: Mapping[str, InputArray]) -> int:
    return sum(one.block.nbytes for one in inputs.values())
