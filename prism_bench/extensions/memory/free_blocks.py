"""The free blocks of a pool: by size and stream for requests, by age for evictions."""

from collections import OrderedDict, deque
from collections.abc import Hashable, Iterator


class Block:
    """Memory of the device.

    While it is free, `freed` is the time since when, and `mark` (made at the first request) the position of its
    `stream` then; `strangers` are marks of other streams that used it last.
    """

    __slots__ = ("address", "freed", "mark", "size", "strangers", "stream")

    def __init__(self, address: int, size: int, stream: Hashable) -> None:
        self.address, self.size, self.stream = address, size, stream
        self.freed = 0.0
        self.mark: object = None
        self.strangers: list[object] = []


class _Class:
    """The free blocks of one size: a lane for each stream, the block freed last at its end."""

    __slots__ = ("count", "lanes")

    def __init__(self) -> None:
        self.count = 0
        self.lanes: dict[Hashable, deque[Block]] = {}


class FreeBlocks:
    """Free blocks. Blocks of one size and stream are in the order in which they were freed."""

    def __init__(self) -> None:
        self._by_age: OrderedDict[int, Block] = OrderedDict()
        self._classes: dict[int, _Class] = {}
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._by_age)

    def __iter__(self) -> Iterator[Block]:
        """Iterate over the blocks, beginning with the one that has been free longest."""
        return iter(self._by_age.values())

    def put(self, block: Block) -> int:
        """Add the block, the youngest of all; return how many of its size there are."""
        of_size = self._classes.get(block.size)
        if of_size is None:
            of_size = self._classes[block.size] = _Class()
        lane = of_size.lanes.get(block.stream)
        if lane is None:
            lane = of_size.lanes[block.stream] = deque()
        lane.append(block)
        of_size.count += 1
        self._by_age[block.address] = block
        self.bytes += block.size
        return of_size.count

    def take_newest(self, size: int, stream: Hashable) -> Block | None:
        """Return the block of that size that the stream freed last, which is likeliest to be in a cache."""
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
        """Return of every other stream the block of that size that has been free longest."""
        lanes = self._lanes(size)
        return [lane[0] for other, lane in lanes.items() if lane and other != stream]

    def oldest(self, size: int | None = None) -> Block | None:
        """Return the block that has been free longest, of that size if one is given."""
        if size is None:
            return next(iter(self._by_age.values()), None)
        heads = [lane[0] for lane in self._lanes(size).values() if lane]
        return min(heads, key=lambda block: block.freed, default=None)

    def take_oldest(self, block: Block) -> None:
        """Take a block that `oldest` or `oldest_of_others` showed."""
        of_size = self._classes[block.size]
        of_size.lanes[block.stream].popleft()
        of_size.count -= 1
        del self._by_age[block.address]
        self.bytes -= block.size

    def _lanes(self, size: int) -> dict[Hashable, deque[Block]]:
        of_size = self._classes.get(size)
        return of_size.lanes if of_size else {}
