"""Alerts: what they contain, which were sent already, and the webhooks that carry them.

A package that finds something (`check`, the monitor) makes an `Alert`; `tell` delivers what is new. Nothing here fails
a run.
"""

from prism_bench.record.alert import Alert
from prism_bench.extensions.ci.alerts.tell import Occasion, Outcome, tell
from prism_bench.extensions.ci.alerts.webhook import Destination, destinations

__all__ = ["Alert", "Destination", "Occasion", "Outcome", "destinations", "tell"]
