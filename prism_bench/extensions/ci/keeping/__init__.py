"""History of nightly runs, kept apart from the sources: on a git branch, in a folder, or in a bucket.

storage   names of the kept files, and buckets: content-named files and a manifest for each keep
branch    a git branch: of two pushes the later is refused, reads again and merges
actions   `prism-bench store fetch`, `keep`, `list` and `verify --to`
history   fetch, keep and verify; merging two versions; the configured history
"""

from prism_bench.extensions.ci.keeping.history import (
    Checkout,
    Fetched,
    KeptHistory,
    checkout_of,
    fetch,
    history_keys,
    history_target,
    keep,
    opened,
    verified,
)
from prism_bench.extensions.ci.keeping.storage import HistoryTarget, Keep

__all__ = [
    "Checkout", "Fetched", "HistoryTarget", "Keep", "KeptHistory", "checkout_of", "fetch", "history_keys",
    "history_target", "keep", "opened", "verified",
]  # fmt: skip
