"""A source without a device: addresses that are only numbers, one stream whose work is always done.

What the size-class pool would do for a trace is known without a GPU: its hits, peak and rounding follow from order
and size alone. What it takes is not.
"""

from collections.abc import Hashable
from itertools import count

from prism_bench.extensions.memory.limits import PoolLimits
from prism_bench.extensions.memory.pool import SizeClassPool
from prism_bench.extensions.memory.state import PoolState
from prism_bench.extensions.memory.trace import Trace


class CountingSource:
    """Source that counts bytes; its time does not advance."""

    def __init__(self) -> None:
        self.held: dict[int, int] = {}
        self._addresses = count(1 << 20, 1 << 40)

    def allocate(self, size: int) -> int:
        address = next(self._addresses)
        self.held[address] = size
        return address

    def release(self, address: int) -> None:
        del self.held[address]

    def stream(self) -> Hashable:
        return 0

    def mark(self, stream: Hashable) -> object:
        return None

    def passed(self, mark: object) -> bool:
        return True

    def wait(self, stream: Hashable, mark: object) -> None:
        """Do nothing: there is nothing to wait for."""

    def clear(self, address: int, size: int, stream: Hashable) -> None:
        """Do nothing: there is nothing to clear."""

    def now(self) -> float:
        return 0.0


def planned(trace: Trace, limits: PoolLimits | None = None) -> PoolState:
    """Return the pool's counts after the trace, if all of it were on one stream and took no time."""
    pool, live = SizeClassPool(CountingSource(), limits), {}
    for event in trace.events:
        if event.size:
            live[event.id] = pool.allocate(event.size)
        else:
            pool.free(live.pop(event.id))
    return pool.state()
