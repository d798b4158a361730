"""Upkeep of the shards of a folder of records: add what is new, put months together, verify, and drop raw samples."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Protocol

from prism_bench.errors import ResultsError
from prism_bench.io.installation import is_installed
from prism_bench.record.store import cache, parquet
from prism_bench.record.store.columns import PointBlock
from prism_bench.record.store.commits import CommitOrder
from prism_bench.record.store.history import listed, read_block, seals_of
from prism_bench.record.store.processes import in_processes
from prism_bench.record.store.records import records_in
from prism_bench.record.store.shards import Listing, Month, ShardFolder

_BATCH = 256  # records whose points are in memory at once
Report = Callable[[int, int], None]


@dataclass(frozen=True)
class Migrated:
    """How many records were added to shards, the shards written, and the reason for each record that was left out."""

    records: int
    written: tuple[Path, ...]
    problems: tuple[str, ...]


def migrate(root: Path, report: Report | None = None) -> Migrated:
    """Add every record below `root` that no shard has to the shards; the records stay as they are.

    `report` is called with how many of the new records are done. Raise a ResultsError where shards cannot be written.
    """
    folder, seals = ShardFolder(root), seals_of(root)
    listing = listed(folder)
    new = [file for file, seal in seals.items() if not _holds(listing, file, seal)]
    written: dict[Path, None] = {}
    problems = [f"{reason}" for reason in listing.damaged.values()]
    done = 0
    for batch in _batches(new):
        blocks = list(in_processes(partial(read_block, None, detailed=True), [(root / f, f, seals[f]) for f in batch]))
        good = [one for one in blocks if one.facts]
        problems += [one.problem for one in blocks if one.problem]
        written |= dict.fromkeys(_added(folder, good, together=True))
        done += len(batch)
        if report:
            report(done, len(new))
    count = len(new) - sum(problem not in listing.damaged.values() for problem in problems)
    return Migrated(count, tuple(written), tuple(problems))


def add_record(path: Path, root: Path) -> Path | None:
    """Add the record at `path` to the shards below `root`, as one small file; return that file.

    Return None where the folder has no shards, where the record is not below it, and without pyarrow: a reader finds
    the record all the same. Raise a ResultsError for a record that cannot be read, or a place that cannot be written.
    """
    folder = ShardFolder(root)
    if path.parent.parent != root or not folder.is_used() or not is_installed("pyarrow"):
        return None
    file = path.relative_to(root).as_posix()
    block = read_block(None, (path, file, cache.seal_of(path)), detailed=True)
    if block.problem:
        raise ResultsError(block.problem)
    return _added(folder, [block])[0]


def _added(folder: ShardFolder, blocks: list[PointBlock], *, together: bool = False) -> list[Path]:
    try:
        return folder.add(blocks, together=together)
    except OSError as error:
        raise ResultsError(f"cannot write shards below {folder.base}: {error.strerror or error}") from error


def _batches(files: list[str]) -> Iterator[list[str]]:
    return (files[first : first + _BATCH] for first in range(0, len(files), _BATCH))


def _holds(listing: Listing, file: str, seal: str) -> bool:
    entry = listing.entries.get(file)
    return entry is not None and entry.record.seal == seal


def compact(root: Path, report: Report | None = None) -> list[Path]:
    """Put the small shards of every month into the month's shard; return the shards written."""
    folder = ShardFolder(root)
    listed(folder)
    months = [month for month in folder.months() if folder.small(month)]
    written: list[Path] = []
    for done, month in enumerate(months, 1):
        written += [path for path in [_compacted(folder, month)] if path]
        if report:
            report(done, len(months))
    return written


def _compacted(folder: ShardFolder, month: Month) -> Path | None:
    try:
        return folder.compact(month)
    except OSError as error:
        raise ResultsError(f"cannot write shards below {folder.base}: {error.strerror or error}") from error


@dataclass(frozen=True)
class Verified:
    """What the shards hold: their number, records, points and bytes; how many records have their raw samples here.

    `problems` are damaged shards and records that differ from what their shard holds; `missing` are the records that
    no shard has.
    """

    shards: int
    records: int
    points: int
    bytes: int
    raw: int
    problems: tuple[str, ...]
    missing: tuple[str, ...]


def verify(root: Path, report: Report | None = None) -> Verified:
    """Read every shard below `root` whole, with its checksums, and compare its records' seals with the records."""
    folder = ShardFolder(root)
    listing, seals = listed(folder), seals_of(root)
    paths, problems = folder.paths(), dict(listing.damaged)
    for done, path in enumerate(paths, 1):
        try:
            if path not in problems:
                parquet.parts_of(path)
        except ResultsError as error:
            problems[path] = str(error)
        except FileNotFoundError:
            pass  # compacted meanwhile
        if report:
            report(done, len(paths))
    changed = [f"{root / file}: not the record that {entry.path.name} holds; 'prism-bench store migrate' reads it anew"
               for file, entry in listing.entries.items()
               if file in seals and seals[file] != entry.record.seal]  # fmt: skip
    records = [entry.record for entry in listing.entries.values()]
    return Verified(
        len(paths), len(records), sum(one.rows for one in records), _size(paths), len(seals),
        (*problems.values(), *changed), tuple(file for file in seals if file not in listing.entries),
    )  # fmt: skip


def _size(paths: Iterable[Path]) -> int:
    return sum(path.stat().st_size for path in paths if path.exists())


def removable(root: Path, before: str, used: Mapping[str, str]) -> tuple[list[Path], dict[str, str]]:
    """Return the records that were made before a time (ISO 8601, UTC) and are in shards, and why others stay, by file.

    Of each machine, backend and environment the record of the newest commit and the last one measured stay, and what is
    `used`: reasons by the file's name.
    """
    listing, seals = listed(ShardFolder(root)), seals_of(root)
    records = sorted((entry.record.facts for entry in listing.entries.values()), key=lambda one: one.created)
    order, _ = CommitOrder.around(records, (root, Path())).sorted(records)
    last = {one.owner: one.file for one in records}
    newest = {*last.values(), *{records[place].owner: records[place].file for place in order}.values()}
    found: list[Path] = []
    stay: dict[str, str] = {}
    for path in records_in(root):
        file = path.relative_to(root).as_posix()
        if not _holds(listing, file, seals.get(file, "")):
            stay[file] = "no shard has it: 'prism-bench store migrate' adds it"
        elif path.name in used:
            stay[file] = used[path.name]
        elif file in newest:
            stay[file] = "the newest record of its machine and backend"
        elif listing.entries[file].record.facts.created < before:
            found.append(path)
    return found, stay


@dataclass(frozen=True)
class Pruned:
    """Records that were removed, or would be; why others that are old enough stay, by file; the bytes of the former."""

    removed: tuple[str, ...]
    stay: Mapping[str, str]
    bytes: int


class KeptElsewhere(Protocol):
    """Where copies of records are kept, such as the project's history."""

    def problems(self, paths: Sequence[Path]) -> Iterator[str | None]:
        """Yield for each record why it may not be removed; None where its copy is there and the same."""
        ...


def prune(root: Path, before: str, used: Mapping[str, str], kept: KeptElsewhere | None, *, remove: bool) -> Pruned:
    """Remove the records below `root` from before a time (ISO 8601, UTC) that shards hold; only count without `remove`.

    Those that are `used` stay, by their names, and with `kept` those whose copy in this history is not the same.
    """
    found, stay = removable(root, before, used)
    removed: list[str] = []
    size = 0
    problems = repeat(None) if kept is None else kept.problems(found)
    for path, problem in zip(found, problems, strict=False):
        file = path.relative_to(root).as_posix()
        if problem:
            stay[file] = problem
            continue
        removed.append(file)
        size += path.stat().st_size
        if remove:
            path.unlink(missing_ok=True)
    return Pruned(tuple(removed), stay, size)
