"""Runs: verify and measure cases in worker processes, and build run records of the results."""

from prism_bench.run.carrying import Carrier, PassResults
from prism_bench.run.controls import controls_of
from prism_bench.run.forecast import Forecast, forecast, known_code, verification_seconds
from prism_bench.run.job import merge, run
from prism_bench.run.pool import Progress, lanes_for
from prism_bench.run.settings import PROTOCOL, Settings, Watching, share, with_ceilings
from prism_bench.run.verification import verify

__all__ = [
    "PROTOCOL",
    "Carrier",
    "Forecast",
    "PassResults",
    "Progress",
    "Settings",
    "Watching",
    "controls_of",
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
