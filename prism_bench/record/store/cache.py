"""Cache of what was read of records: shards in the user's cache, never older than the records.

A record's seal holds its size and a checksum of its content: that at the end of a compressed record, a digest of any
other. Points that were kept count only while the seal is the same to the last digit, and while the code that made them
is the same. A new record adds one small file; a month is put together when it has MANY of them. The cache may be
deleted at any time; a damaged shard is made again. Without pyarrow nothing is kept.
"""

import hashlib
import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import cache
from io import BufferedReader
from pathlib import Path

from prism_bench.errors import ResultsError
from prism_bench.io.files import cache_folder
from prism_bench.io.installation import is_installed
from prism_bench.record.store.columns import PointBlock
from prism_bench.record.store.shards import Listing, ShardFolder

MANY = 16  # small shards of a month
_GZIP = b"\x1f\x8b"
_CHECKSUM = 8  # bytes at the end of a gzip file: CRC-32 and size of its content


def seal_of(path: Path) -> str:
    """Return what changes whenever the content does, wherever the file is; an OSError where it cannot be read."""
    with path.open("rb") as file:
        return _seal(file)


def _seal(file: BufferedReader) -> str:
    """Return the file's size with the checksum of its content, if it is compressed, else with a digest."""
    size = os.fstat(file.fileno()).st_size
    if file.read(len(_GZIP)) == _GZIP:
        file.seek(max(0, size - _CHECKSUM))
        return f"{size} {file.read().hex()}"
    file.seek(0)
    return f"{size} {hashlib.file_digest(file, 'sha256').hexdigest()}"


def place_for(root: Path) -> Path:
    """Return the folder of the cache of the records below `root`."""
    return cache_folder("history") / hashlib.sha256(str(root.resolve()).encode()).hexdigest()[:16]


def folder_for(root: Path) -> ShardFolder:
    """Return the shards that the cache of the records below `root` consists of."""
    return ShardFolder(place_for(root), _maker())


def kept(folder: ShardFolder) -> Listing:
    """Return what the cache holds that this code has made; damaged shards are removed, to be made again."""
    if not is_installed("pyarrow"):
        return Listing()
    try:
        found = folder.listing()
        for path in found.damaged:
            path.unlink(missing_ok=True)
    except (OSError, ResultsError):
        return Listing()
    return Listing({file: entry for file, entry in found.entries.items() if entry.maker == _maker()})


def keep(folder: ShardFolder, blocks: Sequence[PointBlock], stale: Collection[str]) -> None:
    """Keep the blocks for the next time, and those of `stale` records no longer.

    Where nothing can be kept, the next reading takes longer, and that is all.
    """
    if not is_installed("pyarrow"):
        return
    with suppress(OSError, ResultsError):
        folder.add([one for one in blocks if one.facts], stale)
        for month in folder.months():
            if stale or len(folder.small(month)) >= MANY:
                folder.compact(month, drop=stale)


@cache
def _maker() -> str:
    """Return a digest of the code that makes blocks: another reading makes other points."""
    here = Path(__file__).parent
    readers = ("record/run_record", "record/schema", "io/documents")
    sources = [here / "points.py", here / "columns.py", here / "parquet.py"]
    sources += [here.parents[1] / f"{name}.py" for name in readers]
    return hashlib.sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()[:16]
