"""CuPy's own pool seen through its hooks: where its free memory lies."""

from contextlib import contextmanager

import cupy

from prism_bench.extensions.memory.extents import Extents


class Addresses(cupy.cuda.MemoryHook):
    """Tells extents what CuPy's own pool does; other allocators do not call hooks."""

    name = "prism-bench extents"

    def __init__(self, extents):
        self._extents = extents

    def alloc_postprocess(self, **told):
        if told["mem_ptr"]:  # else the device had no more
            self._extents.came(told["mem_ptr"], told["mem_size"])

    def malloc_postprocess(self, **told):
        if told["mem_ptr"]:
            self._extents.used(told["mem_ptr"], told["mem_size"])

    def free_postprocess(self, **told):
        self._extents.given(told["mem_ptr"])


@contextmanager
def watched_extents():
    """Gives a function: how fragmented the free memory of the chunks is that came since; None while nothing is free."""
    extents = Extents()
    with Addresses(extents):
        yield extents.fragmentation
