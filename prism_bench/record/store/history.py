"""History: all records below a folder as one table of points, its cache and the upkeep of its shards."""

import gc
import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from prism_bench.errors import ExtraMissing, ResultsError
from prism_bench.io.documents import is_present
from prism_bench.io.files import cache_folder
from prism_bench.io.installation import is_installed, without
from prism_bench.io.workers import end_with_parent
from prism_bench.record.identity import Owner
from prism_bench.record.run_record import RunRecord, encode
from prism_bench.record.schema import checked
from prism_bench.record.store import parquet
from prism_bench.record.store.points import (
    NUMBERS,
    WORDS,
    Facts,
    PointBlock,
    PointTable,
    block,
    details_in,
    points_in,
    together,
    utc,
)
from prism_bench.record.store.records import CommitOrder, in_order, newest, path_for, records_in, text_at
from prism_bench.record.store.shards import Listing, ShardEntry, ShardFolder, month_of
from prism_bench.units import count_text

if TYPE_CHECKING:
    import pandas


# Cache of what was read of records: shards in the user's cache, never older than the records.
#
# A record's seal holds its size and a checksum of its content: that at the end of a compressed record, a digest of any
# other. Points that were kept count only while the seal is the same to the last digit, and while the code that made
# them is the same. A new record adds one small file; a month is put together when it has MANY of them. The cache may be
# deleted at any time; a damaged shard is made again. Without pyarrow nothing is kept.

MANY = 16  # small shards of a month
_GZIP = b"\x1f\x8b"
_CHECKSUM = 8  # bytes at the end of a gzip file: CRC-32 and size of its content


def seal_of(path: Path) -> str:
    """Return a text that changes with the content of the file: its size with its checksum or a digest.

    Raise an OSError where the file cannot be read.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if file.read(len(_GZIP)) == _GZIP:
            file.seek(max(0, size - _CHECKSUM))
            return f"{size} {file.read().hex()}"
        file.seek(0)
        return f"{size} {hashlib.file_digest(file, 'sha256').hexdigest()}"


def folder_for(root: Path) -> ShardFolder:
    """Return the shards that the cache of the records below `root` consists of."""
    return ShardFolder(
        cache_folder("history") / hashlib.sha256(str(root.resolve()).encode()).hexdigest()[:16], _maker()
    )


def cache_kept(folder: ShardFolder) -> Listing:
    """Return what the cache holds that this code has made; damaged shards are removed, to be made again."""
    if not is_installed("pyarrow"):
        return Listing()
    try:
        listing = folder.listing()
        for path in listing.damaged:
            path.unlink(missing_ok=True)
    except (OSError, ResultsError):
        return Listing()
    return Listing({file: entry for file, entry in listing.entries.items() if entry.maker == _maker()})


def keep(folder: ShardFolder, blocks: Sequence[PointBlock], stale: Collection[str]) -> None:
    """Keep the blocks for the next time, and those of `stale` records no longer.

    Where the cache cannot be written, the next reading takes longer.
    """
    if not is_installed("pyarrow"):
        return
    with suppress(OSError, ResultsError):
        folder.add([block for block in blocks if block.facts], stale)
        for month in folder.months():
            if stale or len(folder.small(month)) >= MANY:
                folder.compact(month, drop=stale)


@cache
def _maker() -> str:
    """Return a digest of the code that makes blocks: another reading makes other points."""
    here = Path(__file__).parent
    readers = ("record/run_record", "record/schema", "io/documents")
    sources = [here / "points.py", here / "parquet.py"]
    sources += [here.parents[1] / f"{name}.py" for name in readers]
    return hashlib.sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()[:16]


# Several processes read many files.

FEW = 48  # files that one process has read before others have started

_File = TypeVar("_File")
_Found = TypeVar("_Found")


def in_processes(work: Callable[[_File], _Found], files: Sequence[_File]) -> Iterator[_Found]:
    """Yield the result of `work`, a function of a module, for each file, in their order."""
    workers = min(os.cpu_count() or 1, len(files) // FEW)
    if workers < 2:
        yield from map(work, files)
        return
    with ProcessPoolExecutor(workers, get_context("spawn"), _begin) as pool:
        yield from pool.map(work, files, chunksize=8)


def _begin() -> None:
    """Prepare a process of the pool: it makes no reference cycles, and ends with its parent."""
    gc.disable()
    end_with_parent()


# History: all records below a folder as one table of points, in the order of their commits (see `commits`).
#
# A history knows its records; their points are read when they are needed, of all records or of a part of them.

_Run = tuple[str | None, ...]


@dataclass(frozen=True)
class HistoryProblem:
    """A file that the history leaves out, and why; `double` where another file has the same run."""

    file: str
    reason: str
    double: bool = False


@dataclass(frozen=True, eq=False)
class StoredPoints:
    """Where one record's points are: in memory, or in the shard at `path` of `folder`; `rows` is how many there are.

    `seal` changes with the record's content, and is empty without a file. `names` are those of the cases and metrics
    that the points may have.
    """

    facts: Facts
    seal: str
    rows: int
    names: Mapping[str, list[str]]
    block: PointBlock | None = None
    folder: ShardFolder | None = None
    path: Path | None = None


@dataclass(frozen=True, eq=False)
class History:
    """The facts of each record, `records`, that of the oldest commit first, where its points are, and `problems`.

    Of the points, which are `stored`, only those of `cases` and `metrics` count; None means all of them. `order` is
    what was known of the commits; `undated` are the files of records whose commit has no known date.
    """

    records: tuple[Facts, ...]
    stored: tuple[StoredPoints, ...]
    problems: tuple[HistoryProblem, ...]
    cases: frozenset[str] | None = None
    metrics: frozenset[str] | None = None
    order: CommitOrder = CommitOrder()
    undated: frozenset[str] = frozenset()

    def before(self, record: RunRecord) -> list[Facts]:
        """Return the records of the same owner that come before the record, whether the history holds it or not."""
        owned = self.of(record.owner).records
        for place, facts in enumerate(owned):
            if (facts.created, facts.commit) == (utc(record.created), record.commit):
                return list(owned[:place])
        every = [*owned, *filter(None, [_imported(record).facts])]
        order, _ = CommitOrder.around(every, self.order.folders).sorted(every)
        return [every[place] for place in order[: order.index(len(owned))]]

    @property
    def unordered(self) -> str | None:
        """What a reader should know of the order where records are not in that of their commits; else None."""
        count, total = sum(facts.file in self.undated for facts in self.records), len(self.records)
        if not count or total < 2:
            return None
        some = f"{count} of {count_text(total, 'record')} {'is' if count == 1 else 'are'}"
        which = "all records are" if count == total else some
        return f"{which} in the order of measuring: neither a repository here nor the record knows the commit's date"

    @cached_property
    def table(self) -> PointTable:
        """The points of all records as columns, without the numbers of samples; see `points`."""
        return self.read(("value", "clock"))

    def read(self, numbers: Collection[str]) -> PointTable:
        """Return the points of all records with these numbers, read anew."""
        points = together(_blocks_of(self.stored, numbers), numbers, sum(stored.rows for stored in self.stored))
        keep = points.rows_with({"case": self.cases, "metric": self.metrics})
        return points if keep.all() else points.chosen(keep)

    @cached_property
    def points(self) -> "pandas.DataFrame":
        """The points of all records: a row for each measurement with samples and each single value; see also `part`.

        Columns: `record` (the place in `records`), `case`, `metric`, `subject`, `code`, `build` (language, compiler and
        source, as JSON), `doubt` (categories), `value` (median, in the metric's unit), `clock` (mean SM clock, Hz; 0
        if unread), `samples`, `throttled`. `doubt` is empty where the point can be trusted. Raise a ResultsError for a
        shard that is damaged.
        """
        import pandas

        table = self.read(tuple(NUMBERS))
        texts = {
            word: pandas.Categorical.from_codes(table.columns[word], pandas.Index(table.vocabulary[word]))
            for word in WORDS
        }
        return pandas.DataFrame(
            {"record": table.columns["record"], **texts, **{name: table.columns[name] for name in NUMBERS}}, copy=False
        )

    def part(self, places: Sequence[int]) -> "History":
        """Return the history of the records at these places, in their order; without problems."""
        records, stored = ([known[place] for place in places] for known in (self.records, self.stored))
        return replace(self, records=tuple(records), stored=tuple(stored), problems=())

    def of(self, owner: Owner) -> "History":
        """Return the history of one owner, with all problems."""
        places = [place for place, facts in enumerate(self.records) if facts.owner == owner]
        return self if len(places) == len(self.records) else replace(self.part(places), problems=self.problems)

    def names(self, word: str) -> list[str]:
        """Return the known names of cases or of metrics (`word`), each once."""
        lists = {id(stored.names[word]): stored.names[word] for stored in self.stored}
        return list(dict.fromkeys(name for known in lists.values() for name in known))


def _blocks_of(stored: Sequence[StoredPoints], numbers: Collection[str] = tuple(NUMBERS)) -> Iterator[PointBlock]:
    """Yield the points of the records, in their order, with these numbers.

    The records of one shard are read at once, when the first of them is next.
    """
    wanted: dict[tuple[ShardFolder, Path | None], list[StoredPoints]] = {}
    for record in stored:
        if record.folder:
            wanted.setdefault((record.folder, record.path), []).append(record)
    read: dict[tuple[ShardFolder, str], PointBlock] = {}
    for record in stored:
        if record.block:
            yield record.block
        elif record.folder:
            if of_shard := wanted.pop((record.folder, record.path), None):
                seals = {entry.facts.file: entry.seal for entry in of_shard}
                paths = {entry.facts.file: entry.path for entry in of_shard if entry.path}
                blocks = record.folder.points(seals, paths, numbers)
                read |= {(record.folder, file): block for file, block in blocks.items()}
                del blocks
            yield read.pop((record.folder, record.facts.file))


def read_history(
    root: Path | str,
    report: Callable[[int, int], None] | None = None,
    more: Iterable[RunRecord] = (),
) -> History:
    """Return the history of all records below `root`, and of `more`, in the order of their commits.

    What shards hold is not read from records, which may be gone, unless a record changed since; what else was read
    before comes from a cache. A record that cannot be read, or that is there twice, is one problem more and harms no
    other; so is a shard. Many new records are read by several processes, which import the caller's main module: a
    script of yours needs its `if __name__ == "__main__":`. `report` is called with how many of the new files have been
    read.
    """
    root = Path(root)
    folder = ShardFolder(root)
    listing, kept_folder = listed(folder), folder_for(root)
    kept = cache_kept(kept_folder)
    seals = _seals_of(root)
    durable = {
        file: _in_shard(entry, folder)
        for file, entry in listing.entries.items()
        if seals.get(file, entry.record.seal) == entry.record.seal
    }
    known = durable | {
        file: _in_shard(entry, kept_folder)
        for file, entry in kept.entries.items()
        if file not in durable and seals.get(file) == entry.record.seal
    }
    changed = [(root / file, file, seal) for file, seal in seals.items() if file not in known]
    blocks: list[PointBlock] = []
    for done, points in enumerate(in_processes(_read_block, changed), 1):
        blocks.append(points)
        if report:
            report(done, len(changed))
    stale = {file for file in kept.entries if file not in seals or file in durable}
    if blocks or stale:
        keep(kept_folder, blocks, stale)
    stored = [
        *known.values(),
        *map(_in_memory, [points for points in [*blocks, *map(_imported, more)] if points.facts]),
    ]
    problems = [HistoryProblem(points.file, points.problem) for points in blocks if points.problem]
    problems += [HistoryProblem(path.relative_to(root).as_posix(), reason) for path, reason in listing.damaged.items()]
    return _ordered(stored, problems, (root, Path()))


def listed(folder: ShardFolder) -> Listing:
    """Return what the shards of the folder hold; raise an ExtraMissing where they cannot be read without pyarrow."""
    if not is_installed("pyarrow"):
        if paths := folder.paths():
            raise ExtraMissing(f"{paths[0]}: a shard of records; {without('pyarrow')}")
        return Listing()
    return folder.listing()


def _seals_of(root: Path) -> dict[str, str]:
    """Return the seals of all records below `root`, by file relative to it, oldest first."""
    seals: dict[str, str] = {}
    for path in records_in(root):
        try:
            seals[path.relative_to(root).as_posix()] = seal_of(path)
        except OSError:
            continue  # gone since it was listed
    return seals


def _in_shard(entry: ShardEntry, folder: ShardFolder) -> StoredPoints:
    record = entry.record
    return StoredPoints(record.facts, record.seal, record.rows, entry.names, folder=folder, path=entry.path)


def _in_memory(points: PointBlock) -> StoredPoints:
    if points.facts is None:
        raise ValueError(f"{points.file} has no facts: {points.problem}")
    return StoredPoints(points.facts, points.seal, points.rows, points.vocabulary, block=points)


def newest_commit(root: Path | str) -> Path:
    """Return the record of the newest commit below `root`, of the owner of the record that was measured last.

    A ResultsError where there is no record.
    """
    last = newest(root)
    history = read_history(root)
    owner = next((facts.owner for facts in history.records if root / Path(facts.file) == last), None)
    files = [Path(root) / facts.file for facts in history.of(owner).records] if owner else []
    return next((path for path in reversed(files) if is_present(path)), last)


def unusable_newest(history: History) -> list[HistoryProblem]:
    """Return the unreadable files that would be the newest record of their machine: their content is unknown."""
    latest: dict[str, str] = {}
    problems = {problem.file: problem for problem in history.problems if not problem.double}
    if not problems:
        return []
    for file in [*(facts.file for facts in history.records), *problems]:
        machine = file.partition("/")[0]
        latest[machine] = max(latest.get(machine, file), file, key=_order_of)
    return [problems[file] for file in latest.values() if file in problems]


def _order_of(file: str) -> tuple[str, int]:
    """Return the key that sorts records and shards: a shard's last record may be as new as the end of its month."""
    path = Path(file)
    return in_order(path) if path.suffix == ".gz" else (month_of(path)[1].replace("-", "") + "32", 1)


def _read_block(changed: tuple[Path, str, str], *, detailed: bool = False) -> PointBlock:
    """Return the points of one record, with details if wanted; a block with a problem where it is damaged."""
    path, file, seal = changed
    try:
        record = checked(text_at(path), str(path))
        points = block(file, seal, *points_in(record, file))
    except ResultsError as error:
        return block(file, seal, None, {}, problem=str(error))
    return replace(points, details=details_in(record)) if detailed else points


def _imported(record: RunRecord) -> PointBlock:
    """Return the block of a record without a file."""
    name = path_for(record, Path()).as_posix()
    return block(name, "", *points_in(checked(encode(record), name), name))


def history_of(blocks: Sequence[PointBlock]) -> History:
    """Return the history of all blocks together."""
    problems = [HistoryProblem(block.file, block.problem) for block in blocks if block.problem]
    return _ordered([_in_memory(block) for block in blocks if block.facts], problems)


def _ordered(
    unordered: Iterable[StoredPoints], problems: Sequence[HistoryProblem], folders: Sequence[Path] = ()
) -> History:
    """Return the history in the order of the commits, as far as the repositories around `folders` know them."""
    kept, doubles = _once(sorted(unordered, key=lambda entry: (entry.facts.created, entry.facts.file)))
    known = CommitOrder.around([entry.facts for entry in kept], folders)
    records = list(known.dated(entry.facts for entry in kept))
    order, undated = known.sorted(records)
    stored = [
        kept[place] if records[place] is kept[place].facts else replace(kept[place], facts=records[place])
        for place in order
    ]
    return History(
        tuple(entry.facts for entry in stored),
        tuple(stored),
        (*problems, *doubles),
        order=known,
        undated=frozenset(records[place].file for place in undated),
    )


def _once(records: Sequence[StoredPoints]) -> tuple[list[StoredPoints], list[HistoryProblem]]:
    """Return the records, of two of one run the record with more points, and a problem for each file that was left out.

    A file that was read twice, in its folder and by its name, is not left out.
    """
    names = [record.facts.software.get("env_name") for record in records]
    named = {_run(record.facts): name for record, name in zip(records, names, strict=True) if name}
    runs = [
        (*_run(record.facts), name or named.get(_run(record.facts)))
        for record, name in zip(records, names, strict=True)
    ]
    best: dict[_Run, StoredPoints] = {}
    for run, record in zip(runs, records, strict=True):
        other = best.get(run)
        if other is None or _known(record) > _known(other):
            best[run] = record
    doubles = [
        (record.facts, best[run].facts) for run, record in zip(runs, records, strict=True) if best[run] is not record
    ]
    problems = [
        HistoryProblem(record.file, f"the same run as {other.file}", double=True)
        for record, other in doubles
        if record.file != other.file
    ]
    return list(best.values()), problems


def _known(record: StoredPoints) -> tuple[bool, int]:
    """Return whether the environment is named, and the number of points: the larger of two doubles is kept."""
    return "env_name" in record.facts.software, record.rows


def _run(facts: Facts) -> _Run:
    """Return what files of one run share, except the environment: records imported before 0.3 do not name it.

    No two files share a guessed time.
    """
    python, guess = facts.software.get("python"), facts.file if facts.guessed else None
    return facts.machine, facts.backend, facts.created, facts.commit, facts.device, python, guess


AT_ONCE = 64  # records whose points are read at once: 256 of 300 cases took a gigabyte while a table was written


def points_in_parts(history: History) -> "Iterator[pandas.DataFrame]":
    """Yield what `all_points` returns in parts of AT_ONCE records; one without rows where there is no record."""
    for first in range(0, max(len(history.records), 1), AT_ONCE):
        yield all_points(history.part(range(first, min(first + AT_ONCE, len(history.records)))))


def all_points(history: History) -> "pandas.DataFrame":
    """Return the points, each with facts of its record: machine, backend, created, commit, dirty, file."""
    import pandas

    names = ("machine", "backend", "created", "commit", "dirty", "file")
    facts = pandas.DataFrame([[getattr(record, name) for name in names] for record in history.records], columns=names)
    return (
        facts.iloc[history.points["record"]]
        .reset_index(drop=True)
        .join(history.points.drop(columns="record").reset_index(drop=True))
    )


# Upkeep of the shards of a folder of records: add what is new, put months together, verify, and drop raw samples.

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
    folder, seals = ShardFolder(root), _seals_of(root)
    listing = listed(folder)
    new = [file for file, seal in seals.items() if not _holds(listing, file, seal)]
    written: dict[Path, None] = {}
    problems = [f"{reason}" for reason in listing.damaged.values()]
    done = 0
    for batch in (new[first : first + _BATCH] for first in range(0, len(new), _BATCH)):
        blocks = list(in_processes(partial(_read_block, detailed=True), [(root / f, f, seals[f]) for f in batch]))
        good = [block for block in blocks if block.facts]
        problems += [block.problem for block in blocks if block.problem]
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
    block = _read_block((path, file, seal_of(path)), detailed=True)
    if block.problem:
        raise ResultsError(block.problem)
    return _added(folder, [block])[0]


def _added(folder: ShardFolder, blocks: list[PointBlock], *, together: bool = False) -> list[Path]:
    try:
        return folder.add(blocks, together=together)
    except OSError as error:
        raise ResultsError(f"cannot write shards below {folder.base}: {error.strerror or error}") from error


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
        try:
            path = folder.compact(month)
        except OSError as error:
            raise ResultsError(f"cannot write shards below {folder.base}: {error.strerror or error}") from error
        written += [path] if path else []
        if report:
            report(done, len(months))
    return written


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
    listing, seals = listed(folder), _seals_of(root)
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
    changed = [
        f"{root / file}: not the record that {entry.path.name} holds; 'prism-bench store migrate' reads it anew"
        for file, entry in listing.entries.items()
        if file in seals and seals[file] != entry.record.seal
    ]
    records = [entry.record for entry in listing.entries.values()]
    return Verified(
        len(paths),
        len(records),
        sum(record.rows for record in records),
        sum(path.stat().st_size for path in paths if path.exists()),
        len(seals),
        (*problems.values(), *changed),
        tuple(file for file in seals if file not in listing.entries),
    )


def removable(root: Path, before: str, used: Mapping[str, str]) -> tuple[list[Path], dict[str, str]]:
    """Return the records that were made before a time (ISO 8601, UTC) and are in shards, and why others stay, by file.

    Of each machine, backend and environment the record of the newest commit and the last one measured stay, and what is
    `used`: reasons by the file's name.
    """
    listing, seals = listed(ShardFolder(root)), _seals_of(root)
    records = sorted((entry.record.facts for entry in listing.entries.values()), key=lambda facts: facts.created)
    order, _ = CommitOrder.around(records, (root, Path())).sorted(records)
    last = {facts.owner: facts.file for facts in records}
    newest = {*last.values(), *{records[place].owner: records[place].file for place in order}.values()}
    old: list[Path] = []
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
            old.append(path)
    return old, stay


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
    old, stay = removable(root, before, used)
    removed: list[str] = []
    size = 0
    problems = repeat(None) if kept is None else kept.problems(old)
    for path, problem in zip(old, problems, strict=False):
        file = path.relative_to(root).as_posix()
        if problem:
            stay[file] = problem
            continue
        removed.append(file)
        size += path.stat().st_size
        if remove:
            path.unlink(missing_ok=True)
    return Pruned(tuple(removed), stay, size)
