"""Free memory of CuPy's own pool, observed through its hooks."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import cupy

from prism_bench.extensions.memory.extents import Extents


class Addresses(cupy.cuda.MemoryHook):
    """Hook that reports to extents what CuPy's own pool does; other allocators do not call hooks."""

    name = "prism-bench extents"

    def __init__(self, extents: Extents) -> None:
        self._extents = extents

    def alloc_postprocess(self, **facts: Any) -> None:
        if facts["mem_ptr"]:  # else the device had no more
            self._extents.came(facts["mem_ptr"], facts["mem_size"])

    def malloc_postprocess(self, **facts: Any) -> None:
        if facts["mem_ptr"]:
            self._extents.used(facts["mem_ptr"], facts["mem_size"])

    def free_postprocess(self, **facts: Any) -> None:
        self._extents.given(facts["mem_ptr"])


@contextmanager
def watched_extents() -> Iterator[Callable[[], float | None]]:
    """Yield a function for the fragmentation of free memory in chunks that came since; it returns None if none is."""
    extents = Extents()
    with Addresses(extents):
        yield extents.fragmentation
