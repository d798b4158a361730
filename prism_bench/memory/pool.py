"""A pool of size classes: blocks of powers of two that are handed out again in the order of their streams.

A block belongs to the stream it was handed out on. Freed there, it may be handed out there at once, since the stream's
own order keeps the uses apart. Another stream gets it only when the device has passed what its own stream held when the
other one first asked. Freed on another stream, it waits for that stream too.

The lock is never waited for in `free`, because Python may collect an array, and free its memory, in the middle of any
operation of the pool: what comes then is put aside and taken up when the lock is given back.
"""

import os
import threading
import weakref
from collections import Counter, deque
from collections.abc import Hashable

from prism_bench.errors import BackendUnavailable, UsageError
from prism_bench.memory.limits import Limits, class_of
from prism_bench.memory.shelf import Block, Shelf
from prism_bench.memory.source import Source
from prism_bench.memory.state import PoolState


class Lease:
    """Memory in use: `size` bytes at `address` in a block of `held`, until it is given to `free`."""

    __slots__ = ("_block", "address", "held", "size")

    def __init__(self, block: Block | None, size: int):
        self._block, self.size = block, size
        self.address, self.held = (block.address, block.size) if block else (0, 0)


class SizeClassPool:
    """See the module. Safe to use from several threads; useless in a forked child, where CUDA is."""

    def __init__(self, source: Source, limits: Limits | None = None):
        self._source, self.limits = source, limits or Limits()
        self._lock, self._late = threading.Lock(), deque()
        self._shelf, self._evictions = Shelf(), Counter()
        self._requests = self._releases = self._hits = self._waits = self._refused = self._reused = 0
        self._asked = self._live = self._peak_asked = self._peak_live = self._peak_held = 0
        self._owner = os.getpid()
        _POOLS.add(self)

    def allocate(self, size: int) -> Lease:
        """`size` bytes on the current stream; MemoryError (the device's own, with the pool's state as a note) where
        neither the pool nor the device has them, even after all free blocks were given back.
        """
        if size <= 0:
            return self._nothing(size)
        if self._owner is None:
            raise BackendUnavailable(
                "this pool's memory belongs to the process that this one was forked from, and CUDA does not survive a "
                "fork: start processes with 'spawn', or make a pool of their own before they use the device"
            )
        stream, wanted = self._source.stream(), class_of(size, self.limits.least)
        with self._lock:
            self._take_late()
            self._expire()
            block = self._shelf.take_newest(wanted, stream) or self._from_another(wanted, stream)
            self._hits += block is not None
            self._reused += wanted if block else 0
            block = block or self._grown(wanted, stream)
            self._hand_out(block, size, stream)
        if self.limits.zero:
            self._source.clear(block.address, size, stream)
        if self._late:
            self._settle()
        return Lease(block, size)

    def free(self, lease: Lease) -> None:
        """The lease's memory may be used again, after what the current stream holds now. UsageError for a second time,
        which changes nothing. In a forked child nothing happens: the memory is the parent's.
        """
        if self._owner is None or not lease.address:
            return
        if lease._block is None:
            raise UsageError(f"{lease.size} bytes at {lease.address:#x} were freed twice; an allocation is freed once")
        stream = self._source.stream()
        if not self._lock.acquire(blocking=False):
            self._late.append((lease, stream))
        else:
            try:
                self._take_back(lease, stream)
            finally:
                self._lock.release()
        self._settle()

    def sweep(self) -> int:
        """Give back what has been free for too long; how many blocks that was."""
        with self._lock:
            self._take_late()
            return self._expire()

    def clear(self) -> int:
        """Give back every free block; how many that was."""
        with self._lock:
            self._take_late()
            return self._evict_all("cleared")

    def state(self) -> PoolState:
        """Counts and bytes now."""
        with self._lock:
            self._take_late()
            return self._state()

    def _state(self):
        shelf = self._shelf
        return PoolState(
            requests=self._requests, releases=self._releases, hits=self._hits, misses=self._requests - self._hits,
            waits=self._waits, refused=self._refused, evictions=dict(self._evictions), asked=self._asked,
            live=self._live, free=shelf.bytes, free_blocks=len(shelf),
            largest_free=max((block.size for block in shelf), default=0), reused=self._reused,
            peak_asked=self._peak_asked, peak_live=self._peak_live, peak_held=self._peak_held,
        )  # fmt: skip

    def _nothing(self, size):
        if size < 0:
            raise UsageError(f"{size} bytes were asked for; a size is 0 or more")
        return Lease(None, 0)

    def _from_another(self, size, stream):
        """A block of another stream that the device is done with."""
        for block in self._shelf.oldest_of_others(size, stream):
            if block.mark is None:
                block.mark = self._source.mark(block.stream)
            if all(self._source.passed(mark) for mark in (block.mark, *block.strangers)):
                self._shelf.take_oldest(block)
                block.stream, block.strangers = stream, []
                return block
        return None

    def _grown(self, size, stream):
        """A new block; older ones go first where more would be held than the limits allow."""
        most = (1 + self.limits.slack) * max(self._peak_live, self._live + size)
        while self._shelf.bytes and self._live + self._shelf.bytes + size > most:
            self._evict(self._shelf.oldest(), "slack")
        return Block(self._from_device(size), size, stream)

    def _from_device(self, size):
        try:
            return self._source.allocate(size)
        except MemoryError:
            self._evict_all("memory")
        try:
            return self._source.allocate(size)
        except MemoryError as error:
            error.add_note(f"size-class pool: {self._state()}; it gave everything free back and tried again")
            raise

    def _hand_out(self, block, size, stream):
        for mark in block.strangers:
            self._source.wait(stream, mark)
        self._waits += bool(block.strangers)
        block.mark, block.strangers = None, []
        self._requests += 1
        self._asked += size
        self._live += block.size
        self._peak_asked = max(self._peak_asked, self._asked)
        self._peak_live = max(self._peak_live, self._live)
        self._peak_held = max(self._peak_held, self._live + self._shelf.bytes)

    def _take_back(self, lease, stream: Hashable):
        block, lease._block = lease._block, None
        if block is None:
            self._refused += 1
            return
        if stream != block.stream:
            block.strangers = [self._source.mark(stream)]
        block.freed = self._source.now()
        self._releases += 1
        self._asked -= lease.size
        self._live -= block.size
        self._shelf.put(block)
        if self._shelf.count(block.size) > self.limits.per_class:
            self._evict(self._shelf.oldest(block.size), "class")
        while self._shelf.bytes > self.limits.cap:
            self._evict(self._shelf.oldest(), "cap")

    def _take_late(self):
        while self._late:
            self._take_back(*self._late.popleft())

    def _settle(self):
        """Take up what was put aside; whoever holds the lock now does the same when it comes here."""
        while self._late and self._lock.acquire(blocking=False):
            try:
                self._take_late()
            finally:
                self._lock.release()

    def _expire(self):
        limit, gone = self._source.now() - self.limits.seconds, 0
        while (block := self._shelf.oldest()) and block.freed < limit:
            self._evict(block, "age")
            gone += 1
        return gone

    def _evict_all(self, cause):
        count = len(self._shelf)
        for _ in range(count):
            self._evict(self._shelf.oldest(), cause)
        return count

    def _evict(self, block, cause):
        self._shelf.take_oldest(block)
        self._evictions[cause] += 1
        self._source.release(block.address)

    def _forget_everything(self):
        """In a forked child: nothing here may be given to a CUDA that is not there; a lock may have been held."""
        self._owner, self._lock = None, threading.Lock()
        self._late.clear()


_POOLS: "weakref.WeakSet[SizeClassPool]" = weakref.WeakSet()


def _after_fork():
    for pool in list(_POOLS):
        pool._forget_everything()


os.register_at_fork(after_in_child=_after_fork)
