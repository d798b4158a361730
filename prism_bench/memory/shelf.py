"""The free blocks of a pool: by size and stream for who wants one, by age for who has to go."""

from collections import OrderedDict, deque
from collections.abc import Hashable, Iterator


class Block:
    """Memory of the device. While it is free, `freed` says since when, and `mark` (made when somebody first asks)
    where its `stream` stood; `strangers` are marks of other streams that used it last.
    """

    __slots__ = ("address", "freed", "mark", "size", "strangers", "stream")

    def __init__(self, address: int, size: int, stream: Hashable):
        self.address, self.size, self.stream = address, size, stream
        self.freed, self.mark, self.strangers = 0.0, None, []


class Shelf:
    """Free blocks. Blocks of one size and stream lie in the order in which they were freed."""

    def __init__(self):
        self._by_age: OrderedDict[int, Block] = OrderedDict()
        self._lanes: dict[int, dict[Hashable, deque[Block]]] = {}
        self._counts: dict[int, int] = {}
        self.bytes = 0

    def __len__(self):
        return len(self._by_age)

    def __iter__(self) -> Iterator[Block]:
        """From the one that has been free longest."""
        return iter(self._by_age.values())

    def count(self, size: int) -> int:
        """How many blocks of that size are free."""
        return self._counts.get(size, 0)

    def put(self, block: Block) -> None:
        """The block is free, the youngest of all."""
        self._lanes.setdefault(block.size, {}).setdefault(block.stream, deque()).append(block)
        self._by_age[block.address] = block
        self._counts[block.size] = self._counts.get(block.size, 0) + 1
        self.bytes += block.size

    def take_newest(self, size: int, stream: Hashable) -> Block | None:
        """The block of that size that the stream freed last, which is likeliest to be in a cache."""
        lanes = self._lanes.get(size)
        lane = lanes.get(stream) if lanes else None
        if not lane:
            return None
        block = lane.pop()
        self._forget(block)
        return block

    def oldest_of_others(self, size: int, stream: Hashable) -> list[Block]:
        """Of every other stream the block of that size that has been free longest."""
        lanes = self._lanes.get(size) or {}
        return [lane[0] for other, lane in lanes.items() if lane and other != stream]

    def oldest(self, size: int | None = None) -> Block | None:
        """The block that has been free longest, of that size if one is given."""
        if size is None:
            return next(iter(self._by_age.values()), None)
        heads = [lane[0] for lane in self._lanes.get(size, {}).values() if lane]
        return min(heads, key=lambda block: block.freed, default=None)

    def take_oldest(self, block: Block) -> None:
        """Take a block that `oldest` or `oldest_of_others` showed."""
        self._lanes[block.size][block.stream].popleft()
        self._forget(block)

    def _forget(self, block):
        del self._by_age[block.address]
        self._counts[block.size] -= 1
        self.bytes -= block.size
