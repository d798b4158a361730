"""Free memory of an allocator, from the addresses it returns: chunks of the device, and pieces in use.

CuPy's pool cuts chunks into pieces and joins neighbours again, so its largest free piece is the widest gap of a chunk.
"""

from bisect import bisect_right
from collections.abc import Iterator


class Extents:
    """Chunks that came from the device and the pieces of them that are in use."""

    def __init__(self) -> None:
        self._chunks: dict[int, int] = {}
        self._used: dict[int, int] = {}

    def came(self, address: int, size: int) -> None:
        """Add a chunk that came from the device; forget chunks in its place."""
        gone = [at for at, length in self._chunks.items() if at < address + size and address < at + length]
        for at in gone:
            del self._chunks[at]
        self._chunks[address] = size

    def used(self, address: int, size: int) -> None:
        """Note that the piece is in use."""
        self._used[address] = size

    def given(self, address: int) -> None:
        """Note that the piece is no longer in use."""
        self._used.pop(address, None)

    def fragmentation(self) -> float | None:
        """Return the share of the free memory that is not in its largest piece; None where nothing is free."""
        gaps = self.gaps()
        return 1 - max(gaps) / sum(gaps) if gaps else None

    def gaps(self) -> list[int]:
        """Return the bytes of every free piece."""
        starts = sorted(self._used)
        return [gap for at, size in self._chunks.items() for gap in self._gaps_of(at, size, starts) if gap > 0]

    def _gaps_of(self, chunk: int, size: int, starts: list[int]) -> Iterator[int]:
        reached = chunk
        for start in starts[bisect_right(starts, chunk - 1) :]:
            if start >= chunk + size:
                break
            yield start - reached
            reached = start + self._used[start]
        yield chunk + size - reached
