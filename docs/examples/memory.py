"""Replay a program's allocations on a pool of size classes, and print what the pool saved and what it cost.

The trace here is made up. On a GPU `prism-bench memory` records those of real programs, and compares allocators by
what the programs then take. The source of memory is the device through CuPy where one answers, else plain bookkeeping.
"""

import itertools
import time

from prism_bench.backends import open_backend
from prism_bench.errors import BackendUnavailable
from prism_bench.extensions.memory import PoolLimits, SizeClassPool
from prism_bench.extensions.memory.trace import random_trace
from prism_bench.units import bytes_text, ratio_text, share_text


class BookSource:
    """Addresses without memory behind them: one stream, whose work is always done."""

    def __init__(self):
        self._next, self.asked = itertools.count(1 << 20, 1 << 30), 0

    def allocate(self, size):
        self.asked += 1
        return next(self._next)

    def release(self, address):
        """Nothing was held."""

    def stream(self):
        return 0

    def mark(self, stream):
        return stream

    def passed(self, mark):
        return True

    def wait(self, stream, mark):
        """There is nothing to wait for."""

    def clear(self, address, size, stream):
        """Nothing to fill."""

    def now(self):
        return time.monotonic()


def source():
    """Return the device where one answers."""
    try:
        open_backend("cuda")
    except BackendUnavailable:
        return BookSource()
    from prism_bench.extensions.memory.cupy_pool import CudaSource

    return CudaSource()


def main() -> None:
    """Run the example."""
    trace = random_trace(allocations=2000)
    tracked = trace.tracked()
    pool, live = SizeClassPool(source(), PoolLimits(cap=256 << 20)), {}
    for event in trace.events:
        if event.size:
            live[event.id] = pool.allocate(event.size)
        else:
            pool.free(live.pop(event.id))
    state = pool.state()
    print(f"{tracked.allocations} allocations, {bytes_text(tracked.peak)} in use at most")
    print(f"{share_text(state.hit_rate)} served by blocks that were free; {state.misses} went to the device")
    print(f"{bytes_text(state.peak_held)} held at most, {ratio_text(state.peak_held / tracked.peak)} what was in use")
    pool.clear()


if __name__ == "__main__":
    main()
