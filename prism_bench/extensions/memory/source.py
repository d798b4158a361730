"""Sources of memory for a pool: a device, and streams whose order decides when memory may be used again."""

from collections.abc import Hashable
from typing import Protocol


class Source(Protocol):
    """A device as a pool needs it. Streams are known by whatever `stream` returns."""

    def allocate(self, size: int) -> int:
        """Return the address of `size` new bytes; MemoryError where there are none."""
        ...

    def release(self, address: int) -> None:
        """Give the memory back, after the work that may still use it."""

    def stream(self) -> Hashable:
        """Return the stream that the caller's work goes to."""
        ...

    def mark(self, stream: Hashable) -> object:
        """Return the end of what was enqueued on the stream so far."""
        ...

    def passed(self, mark: object) -> bool:
        """Return whether the device has reached the mark."""
        ...

    def wait(self, stream: Hashable, mark: object) -> None:
        """Let work that is enqueued on the stream from now on begin after the mark; the host does not wait."""

    def clear(self, address: int, size: int, stream: Hashable) -> None:
        """Enqueue on the stream: fill with zeros."""

    def now(self) -> float:
        """Return seconds on a clock that never goes back."""
        ...
