"""Device memory: counts of allocations (tracker), a pool that reuses blocks, and traces to compare allocators on."""

from prism_bench.extension import Extension, SitePage
from prism_bench.extensions.memory.pool import Lease, PoolLimits, PoolState, SizeClassPool, Source
from prism_bench.extensions.memory.trace import Event, Trace, Tracker

__all__ = ["EXTENSION", "Event", "Lease", "PoolLimits", "PoolState", "SizeClassPool", "Source", "Trace", "Tracker"]

EXTENSION = Extension(
    "memory",
    commands={"memory": "command"},
    pages=(SitePage("memory", "Memory", "report:page", "guides/memory.html"),),
    checks=("command:checks",),
    reads={"memory": "trace:trace_title"},
)
