"""Telling people: what an alert is, which alerts were told already, and the webhooks that carry them.

Whoever finds something (the gate, a monitor) makes an `Alert`; `tell` delivers what is new. Nothing here fails a run.
"""

from prism_bench.alerts.alert import Alert
from prism_bench.alerts.tell import Occasion, Outcome, tell
from prism_bench.alerts.webhook import Destination, destinations

__all__ = ["Alert", "Destination", "Occasion", "Outcome", "destinations", "tell"]
