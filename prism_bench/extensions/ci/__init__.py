"""Continuous integration: nightly runs, histories of records, comments on pull requests, digests, and alerts.

nightly   the nightly run of a catalogue, in parts, after which a killed job goes on
keeping   the history of records: a branch, a folder or a bucket
asv_runs  the same samples handed over to asv
comment, forges   the comment on a pull request, and where it is posted
digest    what changed since a day, for comment --since
alerts    webhooks, each alert once
"""

from prism_bench.extension import Extension

EXTENSION = Extension(
    "ci",
    commands={
        "comment": "commands.comment",
        "nightly": "commands.nightly",
    },
    offers={
        "alert delivery": "alerts:AlertDelivery",
        "raw samples": "raw_samples:kept_raw",
        "history actions": "keeping.actions:act",
    },
)
