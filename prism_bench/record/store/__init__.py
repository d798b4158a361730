"""Run records on disk: one at a time, or all of them as one table of points."""

from prism_bench.record.store.history import (
    History,
    all_points,
    newest_commit,
    points_in_parts,
    read_history,
    unusable_newest,
)
from prism_bench.record.store.records import (
    RecordPlace,
    add_once,
    load,
    newest,
    numbered,
    path_for,
    read,
    readable,
    records_in,
    save,
    table,
)

__all__ = [
    "History", "RecordPlace", "add_once", "all_points", "load", "newest", "newest_commit", "numbered", "path_for",
    "points_in_parts", "read", "read_history", "readable", "records_in", "save", "table", "unusable_newest",
]  # fmt: skip
