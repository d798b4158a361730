"""Device memory: who asks for how much how often (tracker), blocks that are used again (pool), and traces of both."""

from prism_bench.memory.limits import Limits
from prism_bench.memory.pool import Lease, SizeClassPool
from prism_bench.memory.source import Source
from prism_bench.memory.state import PoolState
from prism_bench.memory.trace import Event, Trace
from prism_bench.memory.tracker import Tracker

__all__ = ["Event", "Lease", "Limits", "PoolState", "SizeClassPool", "Source", "Trace", "Tracker"]
