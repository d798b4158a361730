"""What a pool stands on: a device that gives memory, and streams whose order says when memory may be used again."""

from collections.abc import Hashable
from typing import Protocol


class Source(Protocol):
    """A device as a pool needs it. Streams are known by whatever `stream` returns."""

    def allocate(self, size: int) -> int:
        """The address of `size` new bytes; MemoryError where there are none."""

    def release(self, address: int) -> None:
        """Give the memory back, after the work that may still use it."""

    def stream(self) -> Hashable:
        """The stream that the caller's work goes to."""

    def mark(self, stream: Hashable) -> object:
        """The end of what was enqueued on the stream so far."""

    def passed(self, mark: object) -> bool:
        """Whether the device has come to the mark."""

    def wait(self, stream: Hashable, mark: object) -> None:
        """What is enqueued on the stream from now on begins after the mark; the host does not wait."""

    def clear(self, address: int, size: int, stream: Hashable) -> None:
        """Enqueue on the stream: fill with zeros."""

    def now(self) -> float:
        """Seconds on a clock that never goes back."""
