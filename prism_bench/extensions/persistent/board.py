"""Memory that host, worker and device share: a pulse, a ring of requests, a ring of answers; a message is one word.

It belongs to no file, and is freed with the last process that maps it.
"""

import mmap
import os
import tempfile

import numpy as np

from prism_bench.errors import UsageError
from prism_bench.extensions.persistent.layout import LINE_WORDS

PAGE = 4096


class Board:
    """`slots` (2, 4, 8 ...) of requests and answers. `words` are all of them; the three parts begin at whole lines."""

    def __init__(self, slots: int, handle: int | None = None) -> None:
        if slots < 2 or slots & (slots - 1):
            raise UsageError(f"a queue has 2, 4, 8 ... slots, not {slots}")
        self.slots = slots
        ring = max(slots, LINE_WORDS)
        self._parts = (0, LINE_WORDS, LINE_WORDS + ring, LINE_WORDS + 2 * ring)
        self.nbytes = -(-8 * self._parts[-1] // PAGE) * PAGE
        self.handle = _fresh(self.nbytes) if handle is None else handle
        self._memory = mmap.mmap(self.handle, self.nbytes)
        words = memoryview(self._memory).cast("Q")
        self.pulse, self.requests, self.answers = (
            words[a:b] for a, b in zip(self._parts, self._parts[1:], strict=False)
        )

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return pulse, requests and answers as arrays over the same memory."""
        pulse, requests, answers = (
            np.frombuffer(part, np.uint64) for part in (self.pulse, self.requests, self.answers)
        )
        return pulse, requests, answers

    def close(self) -> None:
        """Close this process's handle; the mapping is removed when nothing refers to it any more."""
        os.close(self.handle)


def _fresh(nbytes: int) -> int:
    """Return a handle of memory without a name: anonymous where the system offers that, else a removed file."""
    if hasattr(os, "memfd_create"):
        handle = os.memfd_create("prism-bench-queue")
    else:
        with tempfile.TemporaryFile() as file:
            handle = os.dup(file.fileno())
    os.ftruncate(handle, nbytes)
    return handle
