"""Records that a command has written, added to the shards of their folder where it has some."""

from collections.abc import Iterable
from pathlib import Path

from prism_bench.cli import options
from prism_bench.errors import ResultsError


def add_to_shards(paths: Iterable[Path]) -> None:
    """Add records to the shards of their runs; what cannot be added is reported, and is read from its record."""
    from prism_bench.record.store.upkeep import add_record

    for path in paths:
        try:
            add_record(path, path.parent.parent)
        except ResultsError as error:
            options.remark(f"the record is written, and is in no shard yet: {error}", "yellow")
