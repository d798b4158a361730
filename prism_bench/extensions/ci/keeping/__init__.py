"""History of nightly runs, kept apart from the sources: on a git branch, in a folder, or in a bucket.

names        which files are kept, and by which names
merging      one content from two that changed
differences  what to do with a file that two sides have in different versions
targets      where a history is kept, opened by its address
branch       a git branch: the later push of two is refused, reads again and merges
bucket       content-named files and a manifest for each keep, in a folder or at an fsspec URL
base         what this checkout and the history had in common last
history      fetch, keep and verify
"""

from prism_bench.extensions.ci.keeping.configured import checkout_of, history_keys, history_target
from prism_bench.extensions.ci.keeping.history import Checkout, Fetched, KeptHistory, fetch, keep, verified
from prism_bench.extensions.ci.keeping.targets import HistoryTarget, Keep, opened

__all__ = [
    "Checkout", "Fetched", "HistoryTarget", "Keep", "KeptHistory", "checkout_of", "fetch", "history_keys",
    "history_target", "keep", "opened", "verified",
]  # fmt: skip
