"""The hall where case, backend and loop meet: verify a case, measure it, run the catalogue in several processes."""

from prism_bench.workbench.lanes import lanes_for
from prism_bench.workbench.merge import merge
from prism_bench.workbench.run import Progress, run
from prism_bench.workbench.settings import PROTOCOL, Settings, Watching
from prism_bench.workbench.share import share
from prism_bench.workbench.verification import verify

__all__ = ["PROTOCOL", "Progress", "Settings", "Watching", "lanes_for", "merge", "run", "share", "verify"]
