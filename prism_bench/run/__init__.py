"""Runs: verify and measure cases in worker processes, and build run records of the results."""

from prism_bench.run.catalogue_run import run
from prism_bench.run.ceilings import with_ceilings
from prism_bench.run.driver import Progress
from prism_bench.run.forecast import Forecast, forecast, known_code, verification_seconds
from prism_bench.run.lanes import lanes_for
from prism_bench.run.merge import merge
from prism_bench.run.settings import PROTOCOL, Settings, Watching
from prism_bench.run.share import share
from prism_bench.run.verification import verify

__all__ = [
    "PROTOCOL",
    "Forecast",
    "Progress",
    "Settings",
    "Watching",
    "forecast",
    "known_code",
    "lanes_for",
    "merge",
    "run",
    "share",
    "verification_seconds",
    "verify",
    "with_ceilings",
]
