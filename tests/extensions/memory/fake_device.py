"""A device that only counts: bytes up to a capacity, streams that work on command, a clock that tests set."""

from itertools import count

from prism_bench.extensions.memory import PoolLimits, SizeClassPool


class FakeDevice:
    """`done[s]` is the finished work of stream s, `enqueued[s]` its enqueued work; `waits` are its waits for marks."""

    def __init__(self, capacity=1 << 40):
        self.capacity, self.blocks = capacity, {}
        self._addresses = count(1 << 20, 1 << 30)
        self.current, self.time = 0, 0.0
        self.enqueued, self.done, self.waits = {}, {}, []
        self.cleared, self.failures = [], 0

    @property
    def held(self):
        return sum(self.blocks.values())

    def work(self, stream=None):
        """Enqueue a piece of work; return its place on the stream."""
        stream = self.current if stream is None else stream
        self.enqueued[stream] = self.enqueued.get(stream, 0) + 1
        return self.enqueued[stream]

    def finish(self, stream):
        """Finish all work of the stream."""
        self.done[stream] = self.enqueued.get(stream, 0)

    def allocate(self, size):
        if self.held + size > self.capacity:
            self.failures += 1
            raise MemoryError(f"out of memory allocating {size} bytes")
        address = next(self._addresses)
        self.blocks[address] = size
        return address

    def release(self, address):
        del self.blocks[address]

    def stream(self):
        return self.current

    def mark(self, stream):
        return stream, self.enqueued.get(stream, 0)

    def passed(self, mark):
        stream, place = mark
        return self.done.get(stream, 0) >= place

    def wait(self, stream, mark):
        self.waits.append((stream, mark))

    def clear(self, address, size, stream):
        self.cleared.append((address, size, stream))

    def now(self):
        return self.time


class Held:
    """An allocation of a pool that is freed with this object."""

    def __init__(self, pool, size):
        self._pool, self._lease = pool, pool.allocate(size)

    def __del__(self):
        self._pool.free(self._lease)


def pool_on(device=None, **limits):
    """Return a device and a pool on it."""
    device = device or FakeDevice()
    return device, SizeClassPool(device, PoolLimits(**limits))
