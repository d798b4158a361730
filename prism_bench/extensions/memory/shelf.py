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


class _Class:
    """The free blocks of one size: a lane for each stream, the block freed last at its end."""

    __slots__ = ("count", "lanes")

    def __init__(self):
        self.count, self.lanes = 0, {}


class Shelf:
    """Free blocks. Blocks of one size and stream lie in the order in which they were freed."""

    def __init__(self):
        self._by_age: OrderedDict[int, Block] = OrderedDict()
        self._classes: dict[int, _Class] = {}
        self.bytes = 0

    def __len__(self):
        return len(self._by_age)

    def __iter__(self) -> Iterator[Block]:
        """From the one that has been free longest."""
        return iter(self._by_age.values())

    def put(self, block: Block) -> int:
        """The block is free, the youngest of all; how many of its size are."""
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
        """The block of that size that the stream freed last, which is likeliest to be in a cache."""
        of_size = self._classes.get(size)
        lane = of_size.lanes.get(stream) if of_size else None
        if not lane:
            return None
        of_size.count -= 1
        block = lane.pop()
        del self._by_age[block.address]
        self.bytes -= size
        return block

    def oldest_of_others(self, size: int, stream: Hashable) -> list[Block]:
        """Of every other stream the block of that size that has been free longest."""
        lanes = self._lanes(size)
        return [lane[0] for other, lane in lanes.items() if lane and other != stream]

    def oldest(self, size: int | None = None) -> Block | None:
        """The block that has been free longest, of that size if one is given."""
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

    def _lanes(self, size):
        of_size = self._classes.get(size)
        return of_size.lanes if of_size else {}
