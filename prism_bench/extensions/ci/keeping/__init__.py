"""History of nightly runs, kept apart from the sources: on a git branch, in a folder, or in a bucket.

names        which files are kept, and by which names
merging      one content from two that changed
differences  what to do with a file that two sides have in different versions
targets      what a place offers that keeps a history
branch       a git branch: the later push of two is refused, reads again and merges
bucket       content-named files and a manifest for each keep, in a folder or at an fsspec URL
base         what this checkout and the history had in common last
history      fetch, keep and verify
configured   the history at an address, or of the project's configuration
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
