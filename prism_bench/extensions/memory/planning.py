"""A source without a device: addresses that are only numbers, one stream whose work is always done.

What the size-class pool would do for a trace is known without a GPU: its hits, peak and rounding follow from order
and size alone. What it takes is not.
"""

from itertools import count

from prism_bench.extensions.memory.limits import Limits
from prism_bench.extensions.memory.pool import SizeClassPool
from prism_bench.extensions.memory.state import PoolState
from prism_bench.extensions.memory.trace import Trace


class CountingSource:
    """Counts bytes; time stands still."""

    def __init__(self):
        self.held, self._addresses = {}, count(1 << 20, 1 << 40)

    def allocate(self, size):
        address = next(self._addresses)
        self.held[address] = size
        return address

    def release(self, address):
        del self.held[address]

    def stream(self):
        return 0

    def mark(self, stream):
        return None

    def passed(self, mark):
        return True

    def wait(self, stream, mark):
        """There is nothing to wait for."""

    def clear(self, address, size, stream):
        """There is nothing to clear."""

    def now(self):
        return 0.0


def planned(trace: Trace, limits: Limits | None = None) -> PoolState:
    """What the pool's books say after the trace, were all of it on one stream and in no time."""
    pool, live = SizeClassPool(CountingSource(), limits), {}
    for event in trace.events:
        if event.size:
            live[event.id] = pool.allocate(event.size)
        else:
            pool.free(live.pop(event.id))
    return pool.state()
