"""Inputs that are launched, compared, and launched again: drawn once, while the device has the ones before."""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

from prism_bench.spec.inputs import InputArray

KEPT_BYTES = 512 << 20  # of a case's inputs, the latest
AHEAD = 2  # seeds whose inputs are drawn before they are needed, by default
_Inputs = Mapping[str, InputArray]


class DrawnInputs:
    """The inputs of a case by seed, as `draw` makes them; a context, whose threads draw so many `ahead`."""

    def __init__(self, draw: Callable[[int], _Inputs], ahead: int = AHEAD) -> None:
        self._draw, self._bytes, self._ahead = draw, 0, ahead
        self._kept = OrderedDict[int, _Inputs]()
        self._pool = ThreadPoolExecutor(ahead)
        self._expected = deque[int]()
        self._coming = dict[int, Future[_Inputs]]()

    def __enter__(self) -> "DrawnInputs":
        return self

    def __exit__(self, *exception: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def expect(self, seeds: Iterable[int]) -> None:
        """Say which seeds come next, in order."""
        self._expected = deque(seeds)
        self._draw_ahead()

    def __call__(self, seed: int) -> _Inputs:
        """Return the inputs of a seed: the very ones of the last time, unless too many others came between."""
        if seed not in self._kept:
            coming = self._coming.pop(seed, None)
            self._kept[seed] = coming.result() if coming else self._draw(seed)
            self._bytes += _size(self._kept[seed])
            while self._bytes > KEPT_BYTES and len(self._kept) > 1:
                self._bytes -= _size(self._kept.popitem(last=False)[1])
        self._kept.move_to_end(seed)
        self._draw_ahead()
        return self._kept[seed]

    def _draw_ahead(self) -> None:
        while self._expected and len(self._coming) < self._ahead:
            seed = self._expected.popleft()
            if seed not in self._kept and seed not in self._coming:
                self._coming[seed] = self._pool.submit(self._draw, seed)


def _size(inputs: _Inputs) -> int:
    return sum(one.block.nbytes for one in inputs.values())
