"""Shards of a folder of records: for each machine and month one, and small ones of records that came since.

    <base>/<machine>/points/2026-11.parquet               the month's records, as far as they were put together
    <base>/<machine>/points/2026-11/<record>.parquet      one record each, as runs add them

To add a record is to create one small file. To compact a month is to replace its shard by one that holds the small
files' records too, and to remove these files then. So a reader finds a record in one of the two at every moment, or in
both; where a file is gone that it has listed, it lists again. Writers of one machine's shards wait for each other.
"""

import os
import time
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from prism_bench.errors import ResultsError
from prism_bench.io.files import lock_now, opened_folder
from prism_bench.record.store import parquet
from prism_bench.record.store.parquet import ShardRecord
from prism_bench.record.store.points import NUMBERS, PointBlock

FOLDER, ENDING = "points", ".parquet"
WAIT = 30.0  # seconds until a writer gives up waiting for another one
_PAUSE = 0.05
_TRIES = 8  # listings in a row in which files were gone

Month = tuple[str, str]  # the machine's folder, and the month such as 2026-11


@dataclass(frozen=True)
class ShardEntry:
    """A record in the shard at `path`; `names` are those of all cases and metrics of that shard."""

    path: Path
    record: ShardRecord
    names: Mapping[str, list[str]]
    maker: str


@dataclass
class Listing:
    """What the shards of a folder hold: entries by the records' files, and the reason for each damaged shard."""

    entries: dict[str, ShardEntry] = field(default_factory=dict[str, ShardEntry])
    damaged: dict[Path, str] = field(default_factory=dict[Path, str])


class ShardFolder:
    """The shards below `base`. `maker` is kept in those that it writes: which code read the records."""

    def __init__(self, base: Path, maker: str = "") -> None:
        self.base, self._maker = base, maker

    def exists(self, machine: str) -> bool:
        """Return whether the machine's folder has shards."""
        return (self.base / machine / FOLDER).is_dir()

    def is_used(self) -> bool:
        """Return whether any machine's folder has shards."""
        return any(self.base.glob(f"*/{FOLDER}"))

    def paths(self) -> list[Path]:
        """Return the paths of all shards: those of months first, then the small ones."""
        months = sorted(self.base.glob(f"*/{FOLDER}/*{ENDING}"))
        return [*months, *sorted(self.base.glob(f"*/{FOLDER}/*/*{ENDING}"))]

    def listing(self, report: Callable[[int, int], None] | None = None) -> Listing:
        """Return what all shards hold; of a record that two hold, the newer content."""
        for _ in range(_TRIES):
            with suppress(FileNotFoundError):
                return self._listing(self.paths(), report)
        raise ResultsError(f"{self.base}: its shards change faster than they are read; run the command again")

    def _listing(self, paths: Sequence[Path], report: Callable[[int, int], None] | None) -> Listing:
        listing = Listing()
        for done, path in enumerate(paths, 1):
            try:
                header = parquet.header_of(path)
            except ResultsError as error:
                listing.damaged[path] = str(error)
                continue
            for record in header.records:
                listing.entries[record.facts.file] = ShardEntry(path, record, header.names, header.maker)
            if report:
                report(done, len(paths))
        return listing

    def points(
        self, wanted: Mapping[str, str], known: Mapping[str, Path], numbers: Collection[str] = tuple(NUMBERS)
    ) -> dict[str, PointBlock]:
        """Return the points of records, files by their seals, by file; `known` are the shards that held them.

        Where a shard was compacted meanwhile, the records are looked up again. Raise a ResultsError for a damaged one,
        or for a record that no shard holds any more.
        """
        blocks: dict[str, PointBlock] = {}
        places = dict(known)
        for _ in range(_TRIES):
            left = {file: seal for file, seal in wanted.items() if file not in blocks}
            for path in dict.fromkeys(places[file] for file in left if file in places):
                with suppress(FileNotFoundError):
                    blocks |= parquet.points_of(path, left, numbers)
            if len(blocks) == len(wanted):
                return blocks
            places = {file: entry.path for file, entry in self.listing().entries.items()}
        gone = next(file for file in wanted if file not in blocks)
        raise ResultsError(f"{self.base / gone}: its shard was removed while it was read; run the command again")

    def add(self, blocks: Sequence[PointBlock], drop: Iterable[str] = (), *, together: bool = False) -> list[Path]:
        """Add records; return the files written. One of a month gets a small file, several go into the month's shard.

        Where they shall be `together`, one goes there too. Records `drop` are left out of the shards of months that are
        written. Raise an OSError where nothing can be written, or a ResultsError as `compact` does.
        """
        written: list[Path] = []
        months: dict[Month, list[PointBlock]] = {}
        for block in blocks:
            months.setdefault(_month(block), []).append(block)
        for month, of_month in months.items():
            if len(of_month) == 1 and not together:
                name = Path(of_month[0].file).name.removesuffix(".json.gz")
                path = self.base / month[0] / FOLDER / month[1] / f"{name}{ENDING}"
                parquet.write_shard(path, [parquet.part_of(of_month[0])], self._maker)
                written.append(path)
            else:
                written += [path for path in [self.compact(month, of_month, drop)] if path]
        return written

    def compact(self, month: Month, more: Sequence[PointBlock] = (), drop: Iterable[str] = ()) -> Path | None:
        """Put the month's records, and `more`, into its shard; return its path, None where there was nothing to do.

        Raise a ResultsError, and change nothing, where a shard of the month is damaged or another writer is at it.
        """
        folder = self.base / month[0] / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder):
            target, small = folder / f"{month[1]}{ENDING}", self.small(month)
            dropped = set(drop)
            if not small and not more and not dropped:
                return None
            parts = {
                part.record.facts.file: part
                for path in [target, *small]
                if path.exists()
                for part in parquet.parts_of(path)
            }
            parts |= {block.file: parquet.part_of(block) for block in more}
            kept = [part for file, part in parts.items() if file not in dropped]
            if kept:
                kept.sort(key=lambda part: (part.record.facts.created, part.record.facts.file))
                parquet.write_shard(target, kept, self._maker)
            else:
                target.unlink(missing_ok=True)
            for path in small:
                path.unlink(missing_ok=True)
            with suppress(OSError):
                (folder / month[1]).rmdir()
        return target

    def small(self, month: Month) -> list[Path]:
        """Return the paths of the small shards of a month."""
        return sorted((self.base / month[0] / FOLDER / month[1]).glob(f"*{ENDING}"))

    def months(self) -> list[Month]:
        """Return every month of every machine that has a shard, oldest first."""
        months = {month_of(path) for path in self.paths()}
        return sorted(months, key=lambda month: (month[1], month[0]))


def month_of(path: Path) -> Month:
    """Return the machine's folder and the month of a shard at `path`."""
    folder = path.parent
    return (folder.parent.name, path.stem) if folder.name == FOLDER else (folder.parent.parent.name, folder.name)


def _month(block: PointBlock) -> Month:
    if block.facts is None:
        raise ValueError(f"{block.file} has no facts: {block.problem}")
    return block.file.rpartition("/")[0], block.facts.created[:7]


@contextmanager
def _locked(folder: Path) -> Generator[None]:
    """Hold the folder's lock, which ends with its process; raise a ResultsError where another one has it for long."""
    descriptor = opened_folder(folder)
    try:
        ends = time.monotonic() + WAIT
        while True:
            with suppress(BlockingIOError):
                lock_now(descriptor)
                break
            if time.monotonic() >= ends:
                raise ResultsError(f"{folder}: another process has been writing these shards for {WAIT:g} s; try later")
            time.sleep(_PAUSE)
        yield
    finally:
        os.close(descriptor)
