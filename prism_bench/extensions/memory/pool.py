"""A pool of size classes: blocks of powers of two that are reused in the order of streams."""

import atexit
import os
import threading
import weakref
from bisect import bisect_right
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from prism_bench.errors import BackendUnavailable, UsageError
from prism_bench.units import bytes_text, count_text, share_text

ALLOCATORS = ("cupy", "size_class", "async", "none", "rmm")  # the allocators to compare; the first is the base

# The free blocks of a pool: by size and stream for requests, by age for evictions.


class Block:
    """Memory of the device.

    While it is free, `freed` is the time of its release, and `mark` (made at the first request of another stream) a
    position of its `stream`; `strangers` are marks of other streams that used it last.
    """

    __slots__ = ("address", "freed", "mark", "size", "strangers", "stream")

    def __init__(self, address: int, size: int, stream: Hashable) -> None:
        self.address, self.size, self.stream = address, size, stream
        self.freed = 0.0
        self.mark: object = None
        self.strangers: list[object] = []


class _SizeClass:
    """The free blocks of one size: a lane for each stream, the block freed last at its end."""

    __slots__ = ("count", "lanes")

    def __init__(self) -> None:
        self.count = 0
        self.lanes: dict[Hashable, deque[Block]] = {}


class _FreeBlocks:
    """Free blocks. Blocks of one size and stream are in the order in which they were freed."""

    def __init__(self) -> None:
        self._by_age: OrderedDict[int, Block] = OrderedDict()
        self._classes: dict[int, _SizeClass] = {}
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._by_age)

    def __iter__(self) -> Iterator[Block]:
        """Iterate over the blocks, beginning with the one that has been free longest."""
        return iter(self._by_age.values())

    def put(self, block: Block) -> int:
        """Add the block as the youngest; return the number of blocks of its size."""
        of_size = self._classes.get(block.size)
        if of_size is None:
            of_size = self._classes[block.size] = _SizeClass()
        lane = of_size.lanes.get(block.stream)
        if lane is None:
            lane = of_size.lanes[block.stream] = deque()
        lane.append(block)
        of_size.count += 1
        self._by_age[block.address] = block
        self.bytes += block.size
        return of_size.count

    def take_newest(self, size: int, stream: Hashable) -> Block | None:
        """Return the block of `size` bytes that the stream freed last, which is likeliest to be in a cache."""
        of_size = self._classes.get(size)
        lane = of_size.lanes.get(stream) if of_size else None
        if not of_size or not lane:
            return None
        of_size.count -= 1
        block = lane.pop()
        del self._by_age[block.address]
        self.bytes -= size
        return block

    def oldest_of_others(self, size: int, stream: Hashable) -> list[Block]:
        """Return for every other stream its block of `size` bytes that has been free longest."""
        lanes = self._lanes(size)
        return [lane[0] for other, lane in lanes.items() if lane and other != stream]

    def oldest(self, size: int | None = None) -> Block | None:
        """Return the block that has been free longest, among those of `size` bytes if it is set."""
        if size is None:
            return next(iter(self._by_age.values()), None)
        heads = [lane[0] for lane in self._lanes(size).values() if lane]
        return min(heads, key=lambda block: block.freed, default=None)

    def take_oldest(self, block: Block) -> None:
        """Remove a block that `oldest` or `oldest_of_others` returned."""
        of_size = self._classes[block.size]
        of_size.lanes[block.stream].popleft()
        of_size.count -= 1
        del self._by_age[block.address]
        self.bytes -= block.size

    def _lanes(self, size: int) -> dict[Hashable, deque[Block]]:
        of_size = self._classes.get(size)
        return of_size.lanes if of_size else {}


# Limits of a pool: the published defaults (512 MiB, 16 buffers of a class, 60 s), and a bound on its peak.

_LEAST = 512  # bytes; what CuPy aligns to, so that no class is finer than its own pool's


@dataclass(frozen=True)
class PoolLimits:
    """Limits of a pool.

    `cap`: bytes that may be free; `per_class`: free blocks of a size; `seconds`: time that a block may be free;
    `least`: the smallest class; `slack`: share by which the bytes held may exceed the peak of bytes in use; `zero`:
    blocks are filled with zeros.
    """

    cap: int = 512 << 20
    per_class: int = 16
    seconds: float = 60.0
    least: int = _LEAST
    slack: float = 0.25
    zero: bool = False

    def __post_init__(self) -> None:
        negative = [name for name in ("cap", "per_class", "seconds", "slack") if getattr(self, name) < 0]
        if negative:
            raise UsageError(f"a pool's {negative[0]} is {getattr(self, negative[0])}; it is 0 or more")
        if self.least < 1 or self.least & (self.least - 1):
            raise UsageError(f"a pool's least class is {self.least} bytes; it is a power of two")


def class_of(size: int, least: int = 1) -> int:
    """Return the bytes of the block that serves a request: the next power of two, `least` at least; 0 for 0."""
    return max(least, 1 << (size - 1).bit_length()) if size else 0


# Sources of memory for a pool: a device, and streams whose order determines when memory may be reused.


class Source(Protocol):
    """A device for a pool. Streams are identified by the values of `stream`."""

    def allocate(self, size: int) -> int:
        """Return the address of `size` new bytes; MemoryError if the device has no more."""
        ...

    def release(self, address: int) -> None:
        """Release the memory, after the work that may still use it."""

    def stream(self) -> Hashable:
        """Return the stream of the caller's work."""
        ...

    def mark(self, stream: Hashable) -> object:
        """Return the end of the work that is enqueued on the stream so far."""
        ...

    def passed(self, mark: object) -> bool:
        """Return whether the device has reached the mark."""
        ...

    def wait(self, stream: Hashable, mark: object) -> None:
        """Make later work of the stream wait for the mark; the host does not wait."""

    def clear(self, address: int, size: int, stream: Hashable) -> None:
        """Enqueue a fill with zeros on the stream."""

    def now(self) -> float:
        """Return seconds on a clock that never goes back."""
        ...


# State of a pool: counts and bytes at one moment, and rates derived from them.


@dataclass(frozen=True)
class PoolState:
    """Bytes in use as requested (`asked`) and with the rounding of their classes (`live`), bytes `free`; their peaks.

    `evictions` are by cause: too old (`age`), too many bytes free (`cap`), too many blocks of a `class` or a size
    without a class, many more bytes held than at the peak of use (`slack`), the device out of `memory`, or `cleared` by
    the user. `waits` are hits that waited for another stream, `refused` second releases where no error could be raised.
    """

    releases: int = 0
    hits: int = 0
    misses: int = 0
    waits: int = 0
    refused: int = 0
    evictions: Mapping[str, int] = field(default_factory=dict)
    asked: int = 0
    live: int = 0
    free: int = 0
    free_blocks: int = 0
    largest_free: int = 0
    peak_asked: int = 0
    peak_live: int = 0
    peak_held: int = 0

    @property
    def requests(self) -> int:
        """Allocations that were served."""
        return self.hits + self.misses

    @property
    def held(self) -> int:
        """Bytes of the device that the pool has."""
        return self.live + self.free

    @property
    def hit_rate(self) -> float | None:
        """The share of requests that a free block served; None before the first."""
        return self.hits / self.requests if self.requests else None

    @property
    def internal_fragmentation(self) -> float | None:
        """The share of the memory in use that rounding to classes adds."""
        return 1 - self.asked / self.live if self.live else None

    @property
    def external_fragmentation(self) -> float | None:
        """The share of the free memory that is not in its largest piece."""
        return 1 - self.largest_free / self.free if self.free else None

    def __str__(self) -> str:
        return (
            f"{bytes_text(self.asked)} in use in blocks of {bytes_text(self.live)}, "
            f"{count_text(self.free_blocks, 'block')} of "
            f"{bytes_text(self.free)} free, {bytes_text(self.peak_held)} held at "
            f"most; {count_text(self.requests, 'request')}, "
            f"{share_text(self.hit_rate)} served again, {count_text(sum(self.evictions.values()), 'eviction')}"
        )

    def plain(self) -> dict[str, Any]:
        """Return JSON values, the published keys first, without the key of savings, which counted nothing."""
        return {
            "allocate_requests": self.requests,
            "deallocate_requests": self.releases,
            "pool_hits": self.hits,
            "pool_misses": self.misses,
            "hit_rate_percent": None if self.hit_rate is None else 100 * self.hit_rate,
            "buffers_in_pool": self.free_blocks,
            "pooled_bytes": self.free,
            **{key: value for key, value in asdict(self).items() if key not in _PUBLISHED},
            "held": self.held,
            "internal_fragmentation": self.internal_fragmentation,
            "external_fragmentation": self.external_fragmentation,
        }


_PUBLISHED = ("releases", "hits", "misses", "free_blocks", "free")


# A pool of size classes: blocks of powers of two that are reused in the order of their streams.
#
# A block belongs to the stream of its allocation. Freed there, it may be reused there at once, since the stream's own
# order keeps the uses apart. Another stream gets the block only when the device has finished the work that the block's
# stream had at the other stream's first request. A block that is freed on another stream waits for that stream too.
#
# The lock is never waited for in `free`, because Python may collect an array, and free its memory, in the middle of any
# operation of the pool: such a release is queued, and processed when the lock is released.

_BITS = 65  # of a size in bytes, and one more


class Lease:
    """Memory in use until `free` takes it back: `asked` bytes at `address`, in a block of `held` bytes."""

    __slots__ = ("_block", "address", "asked", "held")

    def __init__(self, block: Block | None, asked: int) -> None:
        self._block, self.asked = block, asked
        self.address, self.held = (block.address, block.size) if block else (0, 0)


class SizeClassPool:
    """Pool of free blocks by size class. Several threads may use it; a forked child cannot, as it cannot use CUDA."""

    def __init__(self, source: Source, limits: PoolLimits | None = None) -> None:
        self._source, self.limits = source, limits or PoolLimits()
        self._lock = threading.Lock()
        self._late: deque[tuple[Lease, Hashable]] = deque()
        self._free = _FreeBlocks()
        self._evictions: Counter[str] = Counter()
        self._hits = self._misses = self._releases = self._waits = self._refused = 0
        self._asked = self._live = self._peak_asked = self._peak_live = self._peak_held = 0
        self._zero = self.limits.zero
        self._classes = [class_of(1 << bits, self.limits.least) for bits in range(_BITS)]
        self._owner: int | None = os.getpid()
        self._look_again = 0.0
        _POOLS.add(self)

    def allocate(self, size: int, lease: Callable = Lease) -> Lease:
        """Return `size` bytes on the current stream, as a Lease (or what `lease` returns for a block and the size).

        MemoryError (the device's own, with the pool's state as a note) where neither the pool nor the device has them,
        even after the release of all free blocks.
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
                for mark in block.strangers:
                    self._source.wait(stream, mark)
                self._waits += 1
                block.strangers = []
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
        """Take the memory of the lease back; it is reused after the current work of the current stream.

        Raise UsageError for a second release, which changes nothing. Do nothing in a forked child: the memory is the
        parent's.
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
        """Release the blocks that have been free for too long; return their number."""
        with self._lock:
            self._take_late()
            return self._expire()

    def clear(self) -> int:
        """Release every free block; return their number."""
        with self._lock:
            self._take_late()
            return self._evict_all("cleared")

    def state(self) -> PoolState:
        """Return the current counts and bytes."""
        with self._lock:
            self._take_late()
            return self._state()

    def _state(self) -> PoolState:
        free = self._free
        return PoolState(
            releases=self._releases,
            hits=self._hits,
            misses=self._misses,
            waits=self._waits,
            refused=self._refused,
            evictions=dict(self._evictions),
            asked=self._asked,
            live=self._live,
            free=free.bytes,
            free_blocks=len(free),
            largest_free=max((block.size for block in free), default=0),
            peak_asked=self._peak_asked,
            peak_live=self._peak_live,
            peak_held=self._peak_held,
        )

    def _nothing(self, size: int) -> None:
        """Return None for 0 bytes; UsageError below 0, BackendUnavailable in a forked child."""
        if size < 0:
            raise UsageError(f"{size} bytes were requested; a size is 0 or more")
        if size:
            raise BackendUnavailable(
                "this pool's memory belongs to the process that this one was forked from, and CUDA does not survive a "
                "fork: start processes with 'spawn', or make another pool there before it uses the device"
            )

    def _from_elsewhere(self, size: int, stream: Hashable, asked: int) -> Block:
        """Return a block that another stream has finished with, else a new block."""
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
        size = -(-asked // self.limits.least) * self.limits.least  # the class may not fit where the request does
        try:
            return Block(self._source.allocate(size), size, stream)
        except MemoryError as error:
            error.add_note(f"size-class pool: {self._state()}; it released everything free and tried again")
            raise

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
        """Process late releases; a thread that holds the lock now does so at its end."""
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


_POOLS: "weakref.WeakSet[SizeClassPool]" = weakref.WeakSet()


def _without_cuda() -> None:
    for pool in list(_POOLS):
        pool._owner, pool._lock = None, threading.Lock()  # in a forked child the old lock may be held
        pool._late.clear()


os.register_at_fork(after_in_child=_without_cuda)
atexit.register(_without_cuda)  # memory in use ends with the process, and CUDA may end earlier


# Free memory of an allocator, from the addresses it returns: chunks of the device, and pieces in use.
#
# CuPy's pool cuts chunks into pieces and joins neighbours again, so its largest free piece is the widest gap of a
# chunk.


class Extents:
    """Chunks of the device and their pieces in use."""

    def __init__(self) -> None:
        self._chunks: dict[int, int] = {}
        self._used: dict[int, int] = {}

    def add_chunk(self, address: int, size: int) -> None:
        """Add a chunk from the device; forget chunks in its place."""
        gone = [at for at, length in self._chunks.items() if at < address + size and address < at + length]
        for at in gone:
            del self._chunks[at]
        self._chunks[address] = size

    def use(self, address: int, size: int) -> None:
        """Note that the piece is in use."""
        self._used[address] = size

    def release(self, address: int) -> None:
        """Note that the piece is no longer in use."""
        self._used.pop(address, None)

    def fragmentation(self) -> float | None:
        """Return the share of the free memory that is not in its largest piece; None if nothing is free."""
        gaps = self.gaps()
        return 1 - max(gaps) / sum(gaps) if gaps else None

    def gaps(self) -> list[int]:
        """Return the bytes of every free piece."""
        starts, gaps = sorted(self._used), list[int]()
        for chunk, size in self._chunks.items():
            reached = chunk
            for start in starts[bisect_right(starts, chunk - 1) :]:
                if start >= chunk + size:
                    break
                gaps.append(start - reached)
                reached = start + self._used[start]
            gaps.append(chunk + size - reached)
        return [gap for gap in gaps if gap > 0]
