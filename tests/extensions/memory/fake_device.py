"""A device that only keeps the books: bytes up to a capacity, streams that work when told, a clock set by hand."""

from itertools import count

from prism_bench.extensions.memory import PoolLimits, SizeClassPool


class FakeDevice:
    """`done[s]` is how far stream s has worked, `enqueued[s]` how much it was given; `waits` what it must wait for."""

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
        """Enqueue one piece of work; its place on the stream."""
        stream = self.current if stream is None else stream
        self.enqueued[stream] = self.enqueued.get(stream, 0) + 1
        return self.enqueued[stream]

    def finish(self, stream):
        """All work of the stream is done."""
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


def pool_on(device=None, **limits):
    """A device and a pool on it."""
    device = device or FakeDevice()
    return device, SizeClassPool(device, PoolLimits(**limits))
