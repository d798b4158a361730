"""Alerts: which were sent already, and the webhooks that carry them. Nothing here fails a run."""
