"""A pool of size classes: blocks of powers of two that are reused in the order of their streams.

A block belongs to the stream it was handed out on. Freed there, it may be handed out there at once, since the stream's
own order keeps the uses apart. Another stream gets it only when the device has passed what its own stream held when the
other one first asked. Freed on another stream, it waits for that stream too.

The lock is never waited for in `free`, because Python may collect an array, and free its memory, in the middle of any
operation of the pool: what comes then is put aside and taken up when the lock is given back.
"""

import atexit
import os
import threading
import weakref
from collections import Counter, deque
from collections.abc import Callable, Hashable

from prism_bench.errors import BackendUnavailable, UsageError
from prism_bench.extensions.memory.free_blocks import Block, FreeBlocks
from prism_bench.extensions.memory.limits import PoolLimits, class_of
from prism_bench.extensions.memory.source import Source
from prism_bench.extensions.memory.state import PoolState

_BITS = 65  # of a size in bytes, and one more


class Lease:
    """Memory in use until it is given to `free`: `asked` bytes at `address`, in a block of `held`."""

    __slots__ = ("_block", "address", "asked", "held")

    def __init__(self, block: Block | None, asked: int) -> None:
        self._block, self.asked = block, asked
        self.address, self.held = (block.address, block.size) if block else (0, 0)


class SizeClassPool:
    """See the module. Safe to use from several threads; useless in a forked child, where CUDA is."""

    def __init__(self, source: Source, limits: PoolLimits | None = None) -> None:
        self._source, self.limits = source, limits or PoolLimits()
        self._lock = threading.Lock()
        self._late: deque[tuple[Lease, Hashable]] = deque()
        self._free = FreeBlocks()
        self._evictions: Counter[str] = Counter()
        self._hits = self._misses = self._releases = self._waits = self._refused = 0
        self._asked = self._live = self._peak_asked = self._peak_live = self._peak_held = 0
        self._zero = self.limits.zero
        self._classes = [class_of(1 << bits, self.limits.least) for bits in range(_BITS)]
        self._owner: int | None = os.getpid()
        self._look_again = 0.0
        _POOLS.add(self)

    def allocate(self, size: int, lease: Callable = Lease) -> Lease:
        """Return `size` bytes on the current stream, as a Lease (or what else `lease` makes of a block and the size).

        MemoryError (the device's own, with the pool's state as a note) where neither the pool nor the device has them,
        even after all free blocks were given back.
        """
        if size <= 0 or self._owner is None:
            return lease(self._nothing(size), 0)
        stream, wanted = self._source.stream(), self._classes[(size - 1).bit_length()]
        with self._lock:
            if self._late:
                self._take_late()
            block = self._free.take_newest(wanted, stream)
            if block is None:
                block = self._from_elsewhere(wanted, stream, size)
            else:
                self._hits += 1
            if block.strangers:
                self._after_strangers(block, stream)
            block.mark = None
            self._asked += size
            self._live += block.size
            if self._asked > self._peak_asked:
                self._peak_asked = self._asked
            if self._live > self._peak_live:
                self._peak_live = self._live
        if self._zero:
            self._source.clear(block.address, size, stream)
        if self._late:
            self._settle()
        return lease(block, size)

    def free(self, lease: Lease) -> None:
        """Let the memory of the lease be used again, after the work that the current stream has now.

        Raise a UsageError for a second release, which changes nothing. In a forked child nothing happens: the memory is
        the parent's.
        """
        if self._owner is None or not lease.address:
            return
        if lease._block is None:
            raise UsageError(f"{lease.asked} bytes at {lease.address:#x} were freed twice; an allocation is freed once")
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
        """Release what has been free for too long; return how many blocks that was."""
        with self._lock:
            self._take_late()
            return self._expire()

    def clear(self) -> int:
        """Release every free block; return how many that was."""
        with self._lock:
            self._take_late()
            return self._evict_all("cleared")

    def state(self) -> PoolState:
        """Return counts and bytes now."""
        with self._lock:
            self._take_late()
            return self._state()

    def _state(self) -> PoolState:
        free = self._free
        return PoolState(
            releases=self._releases, hits=self._hits, misses=self._misses, waits=self._waits, refused=self._refused,
            evictions=dict(self._evictions), asked=self._asked, live=self._live, free=free.bytes,
            free_blocks=len(free), largest_free=max((block.size for block in free), default=0),
            peak_asked=self._peak_asked, peak_live=self._peak_live, peak_held=self._peak_held,
        )  # fmt: skip

    def _nothing(self, size: int) -> None:
        """Return no block, for no bytes."""
        if size < 0:
            raise UsageError(f"{size} bytes were requested; a size is 0 or more")
        if size:
            raise BackendUnavailable(
                "this pool's memory belongs to the process that this one was forked from, and CUDA does not survive a "
                "fork: start processes with 'spawn', or make another pool there before it uses the device"
            )

    def _from_elsewhere(self, size: int, stream: Hashable, asked: int) -> Block:
        """Return a block that another stream is done with, else a new one."""
        self._expire()
        block = self._from_another(size, stream)
        if block:
            self._hits += 1
            return block
        block = self._grown(size, stream, asked)
        self._misses += 1
        self._peak_held = max(self._peak_held, self._live + self._free.bytes + block.size)
        return block

    def _from_another(self, size: int, stream: Hashable) -> Block | None:
        for block in self._free.oldest_of_others(size, stream):
            if block.mark is None:
                block.mark = self._source.mark(block.stream)
            if all(self._source.passed(mark) for mark in (block.mark, *block.strangers)):
                self._free.take_oldest(block)
                block.stream, block.strangers = stream, []
                return block
        return None

    def _grown(self, size: int, stream: Hashable, asked: int) -> Block:
        """Return a new block; older ones go first where more would be held than the limits allow."""
        most = (1 + self.limits.slack) * max(self._peak_live, self._live + size)
        while self._free.bytes and self._live + self._free.bytes + size > most:
            self._evict(self._free.oldest(), "slack")
        try:
            return Block(self._source.allocate(size), size, stream)
        except MemoryError:
            self._evict_all("memory")
        return self._grown_exactly(asked, stream)

    def _grown_exactly(self, asked: int, stream: Hashable) -> Block:
        """Try once more with the requested size: a class may be too large for a device that could serve the request."""
        size = -(-asked // self.limits.least) * self.limits.least
        try:
            return Block(self._source.allocate(size), size, stream)
        except MemoryError as error:
            error.add_note(f"size-class pool: {self._state()}; it released everything free and tried again")
            raise

    def _after_strangers(self, block: Block, stream: Hashable) -> None:
        """Order what the stream does with the block after what others did with it last."""
        for mark in block.strangers:
            self._source.wait(stream, mark)
        self._waits += 1
        block.strangers = []

    def _take_back(self, lease: Lease, stream: Hashable) -> None:
        block, lease._block = lease._block, None
        if block is None:
            self._refused += 1
            return
        if stream != block.stream:
            block.strangers = [self._source.mark(stream)]
        block.freed = self._source.now()
        self._releases += 1
        self._asked -= lease.asked
        self._live -= block.size
        if self._free.put(block) > self.limits.per_class or not (block.size & (block.size - 1) == 0):
            self._evict(self._free.oldest(block.size), "class")
        while self._free.bytes > self.limits.cap:
            self._evict(self._free.oldest(), "cap")
        if block.freed > self._look_again:
            self._expire()

    def _take_late(self) -> None:
        while self._late:
            self._take_back(*self._late.popleft())

    def _settle(self) -> None:
        """Take up what was put aside; a thread that holds the lock now does the same when it is here."""
        while self._late and self._lock.acquire(blocking=False):
            try:
                self._take_late()
            finally:
                self._lock.release()

    def _expire(self) -> int:
        now, gone = self._source.now(), 0
        while (block := self._free.oldest()) and block.freed < now - self.limits.seconds:
            self._evict(block, "age")
            gone += 1
        self._look_again = now + self.limits.seconds / 10
        return gone

    def _evict_all(self, cause: str) -> int:
        count = len(self._free)
        for _ in range(count):
            self._evict(self._free.oldest(), cause)
        return count

    def _evict(self, block: Block | None, cause: str) -> None:
        if block is None:
            return
        self._free.take_oldest(block)
        self._evictions[cause] += 1
        self._source.release(block.address)

    def _forget_everything(self) -> None:
        """Forget all memory, since there is no CUDA any more; in a forked child the lock may have been held."""
        self._owner, self._lock = None, threading.Lock()
        self._late.clear()


_POOLS: "weakref.WeakSet[SizeClassPool]" = weakref.WeakSet()


def _without_cuda() -> None:
    for pool in list(_POOLS):
        pool._forget_everything()


os.register_at_fork(after_in_child=_without_cuda)
atexit.register(_without_cuda)  # what is still in use then goes with the process, and CUDA may have gone before it
