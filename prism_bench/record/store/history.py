"""History: all records below a folder as one table of points, in the order of their commits (see `commits`).

A history knows its records; their points are read when they are needed, of all records or of a part of them.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from prism_bench.errors import ExtraMissing, ResultsError
from prism_bench.io.installation import is_installed, without
from prism_bench.record.identity import Owner
from prism_bench.record.raw_source import is_present
from prism_bench.record.run_record import RunRecord, encode
from prism_bench.record.schema import checked
from prism_bench.record.store import cache
from prism_bench.record.store.columns import PointBlock, PointTable, block, together
from prism_bench.record.store.commits import CommitOrder
from prism_bench.record.store.details import details_in
from prism_bench.record.store.points import NUMBERS, WORDS, Facts, points_in, utc
from prism_bench.record.store.processes import in_processes
from prism_bench.record.store.records import in_order, newest, path_for, records_in, text_at
from prism_bench.record.store.shards import Listing, ShardEntry, ShardFolder, month_of
from prism_bench.units import count_text

if TYPE_CHECKING:
    import pandas

_Run = tuple[str | None, ...]
_Shown = Callable[[Path, bytes | bytearray], None]


@dataclass(frozen=True)
class HistoryProblem:
    """A file that the history leaves out, and why; `double` where another file has the same run."""

    file: str
    reason: str
    double: bool = False


@dataclass(frozen=True, eq=False)
class StoredPoints:
    """Where one record's points are: in memory, or in the shard at `path` of `folder`; `rows` is how many there are.

    `seal` changes with the record's content, and is empty without a file. `words` are the names of cases and metrics
    that the points may have.
    """

    facts: Facts
    seal: str
    rows: int
    words: Mapping[str, list[str]]
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
        mine = self.of(record.owner).records
        for place, one in enumerate(mine):
            if (one.created, one.commit) == (utc(record.created), record.commit):
                return list(mine[:place])
        every = [*mine, *filter(None, [_imported(record).facts])]
        order, _ = CommitOrder.around(every, self.order.folders).sorted(every)
        return [every[place] for place in order[: order.index(len(mine))]]

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
        found = together(blocks_of(self.stored, numbers), numbers, sum(one.rows for one in self.stored))
        keep = found.rows_with({"case": self.cases, "metric": self.metrics})
        return found if keep.all() else found.chosen(keep)

    @cached_property
    def points(self) -> "pandas.DataFrame":
        """The points of all records, one row per measurement with samples; they may be many: see `part`.

        Columns: `record` (the place in `records`), `case`, `metric`, `subject`, `code`, `build` (language, compiler and
        source, as JSON), `doubt` (categories), `value` (median, s), `clock` (mean SM clock, Hz; 0 where none was read),
        `samples`, `throttled`. `doubt` is empty where the point can be trusted. Raise a ResultsError for a shard that
        is damaged.
        """
        import pandas

        found = self.read(tuple(NUMBERS))
        words = {word: pandas.Categorical.from_codes(found.columns[word], pandas.Index(found.vocabulary[word]))
                 for word in WORDS}  # fmt: skip
        return pandas.DataFrame({"record": found.columns["record"], **words,
                                 **{name: found.columns[name] for name in NUMBERS}}, copy=False)  # fmt: skip

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
        lists = {id(one.words[word]): one.words[word] for one in self.stored}
        return list(dict.fromkeys(name for known in lists.values() for name in known))


def blocks_of(stored: Sequence[StoredPoints], numbers: Collection[str] = tuple(NUMBERS)) -> Iterator[PointBlock]:
    """Yield the points of the records, in their order, with these numbers.

    The records of one shard are read at once, when the first of them is next.
    """
    wanted: dict[tuple[ShardFolder, Path | None], list[StoredPoints]] = {}
    for one in stored:
        if one.folder:
            wanted.setdefault((one.folder, one.path), []).append(one)
    read: dict[tuple[ShardFolder, str], PointBlock] = {}
    for one in stored:
        if one.block:
            yield one.block
        elif one.folder:
            if own := wanted.pop((one.folder, one.path), None):
                seals = {of.facts.file: of.seal for of in own}
                paths = {of.facts.file: of.path for of in own if of.path}
                found = one.folder.points(seals, paths, numbers)
                read |= {(one.folder, file): block for file, block in found.items()}
                del found
            yield read.pop((one.folder, one.facts.file))


def read_history(
    root: Path | str,
    report: Callable[[int, int], None] | None = None,
    more: Iterable[RunRecord] = (),
    shown: _Shown | None = None,
) -> History:
    """Return the history of all records below `root`, and of `more`, in the order of their commits.

    What shards hold is not read from records, which may be gone, unless a record changed since; what else was read
    before comes from a cache. A record that cannot be read, or that is there twice, is one problem more and harms no
    other; so is a shard. Many new records are read by several processes, which import the caller's main module: a
    script of yours needs its `if __name__ == "__main__":`. `report` is called with how many of the new files have been
    read; `shown`, a function of a module, with the JSON of each by its reader.
    """
    root = Path(root)
    folder = ShardFolder(root)
    listing, kept_folder = listed(folder), cache.folder_for(root)
    kept = cache.kept(kept_folder)
    seals = seals_of(root)
    durable = {file: _in_shard(entry, folder) for file, entry in listing.entries.items()
               if seals.get(file, entry.record.seal) == entry.record.seal}  # fmt: skip
    known = durable | {file: _in_shard(entry, kept_folder) for file, entry in kept.entries.items()
                       if file not in durable and seals.get(file) == entry.record.seal}  # fmt: skip
    changed = [(root / file, file, seal) for file, seal in seals.items() if file not in known]
    blocks: list[PointBlock] = []
    for done, one in enumerate(in_processes(partial(read_block, shown), changed), 1):
        blocks.append(one)
        if report:
            report(done, len(changed))
    stale = {file for file in kept.entries if file not in seals or file in durable}
    if blocks or stale:
        cache.keep(kept_folder, blocks, stale)
    found = [*known.values(), *map(_in_memory, [one for one in [*blocks, *map(_imported, more)] if one.facts])]
    problems = [HistoryProblem(one.file, one.problem) for one in blocks if one.problem]
    problems += [HistoryProblem(path.relative_to(root).as_posix(), reason) for path, reason in listing.damaged.items()]
    return _ordered(found, problems, (root, Path()))


def listed(folder: ShardFolder) -> Listing:
    """Return what the shards of the folder hold; raise an ExtraMissing where they cannot be read without pyarrow."""
    if not is_installed("pyarrow"):
        if paths := folder.paths():
            raise ExtraMissing(f"{paths[0]}: a shard of records; {without('pyarrow')}")
        return Listing()
    return folder.listing()


def seals_of(root: Path) -> dict[str, str]:
    """Return the seals of all records below `root`, by file relative to it, oldest first."""
    found: dict[str, str] = {}
    for path in records_in(root):
        try:
            found[path.relative_to(root).as_posix()] = cache.seal_of(path)
        except OSError:
            continue  # gone since it was listed
    return found


def _in_shard(entry: ShardEntry, folder: ShardFolder) -> StoredPoints:
    record = entry.record
    return StoredPoints(record.facts, record.seal, record.rows, entry.words, folder=folder, path=entry.path)


def _in_memory(one: PointBlock) -> StoredPoints:
    if one.facts is None:
        raise ValueError(f"{one.file} has no facts: {one.problem}")
    return StoredPoints(one.facts, one.seal, one.rows, one.vocabulary, block=one)


def newest_commit(root: Path | str) -> Path:
    """Return the record of the newest commit below `root`, of the owner of the record that was measured last.

    A ResultsError where there is no record.
    """
    last = newest(root)
    history = read_history(root)
    owner = next((one.owner for one in history.records if root / Path(one.file) == last), None)
    files = [Path(root) / one.file for one in history.of(owner).records] if owner else []
    return next((path for path in reversed(files) if is_present(path)), last)


def unusable_newest(history: History) -> list[HistoryProblem]:
    """Return the unreadable files that would be the newest record of their machine: their content is unknown."""
    latest: dict[str, str] = {}
    problems = {problem.file: problem for problem in history.problems if not problem.double}
    if not problems:
        return []
    for file in [*(facts.file for facts in history.records), *problems]:
        machine = file.partition("/")[0]
        latest[machine] = max(latest.get(machine, file), file, key=_began)
    return [problems[file] for file in latest.values() if file in problems]


def _began(file: str) -> tuple[str, int]:
    """Return the key that sorts records and shards: a shard's last record may be as new as the end of its month."""
    path = Path(file)
    return in_order(path) if path.suffix == ".gz" else (month_of(path)[1].replace("-", "") + "32", 1)


def read_block(shown: _Shown | None, changed: tuple[Path, str, str], *, detailed: bool = False) -> PointBlock:
    """Return the points of one record, with details if wanted; a block with a problem where it is damaged."""
    path, file, seal = changed
    try:
        text = text_at(path)
        record = checked(text, str(path))
        found = block(file, seal, *points_in(record, file))
    except ResultsError as error:
        return block(file, seal, None, {}, problem=str(error))
    if shown:
        shown(path, text)
    return replace(found, details=details_in(record)) if detailed else found


def _imported(record: RunRecord) -> PointBlock:
    """Return the block of a record without a file."""
    name = path_for(record, Path()).as_posix()
    return block(name, "", *points_in(checked(encode(record), name), name))


def history_of(blocks: Sequence[PointBlock]) -> History:
    """Return the history of all blocks together."""
    problems = [HistoryProblem(one.file, one.problem) for one in blocks if one.problem]
    return _ordered([_in_memory(one) for one in blocks if one.facts], problems)


def _ordered(
    found: Iterable[StoredPoints], problems: Sequence[HistoryProblem], folders: Sequence[Path] = ()
) -> History:
    """Return the history in the order of the commits, as far as the repositories around `folders` know them."""
    kept, doubles = _once(sorted(found, key=lambda one: (one.facts.created, one.facts.file)))
    known = CommitOrder.around([one.facts for one in kept], folders)
    records = list(known.dated(one.facts for one in kept))
    order, undated = known.sorted(records)
    stored = [kept[place] if records[place] is kept[place].facts else replace(kept[place], facts=records[place])
              for place in order]  # fmt: skip
    return History(
        tuple(one.facts for one in stored), tuple(stored), (*problems, *doubles), order=known,
        undated=frozenset(records[place].file for place in undated),
    )  # fmt: skip


def _once(found: Sequence[StoredPoints]) -> tuple[list[StoredPoints], list[HistoryProblem]]:
    """Return the records, of two of one run the one with more points, and a problem for each file that was left out.

    A file that was read twice, in its folder and by its name, is not left out.
    """
    names = [one.facts.software.get("env_name") for one in found]
    named = {_run(one.facts): name for one, name in zip(found, names, strict=True) if name}
    runs = [(*_run(one.facts), name or named.get(_run(one.facts))) for one, name in zip(found, names, strict=True)]
    best: dict[_Run, StoredPoints] = {}
    for run, one in zip(runs, found, strict=True):
        other = best.get(run)
        if other is None or _known(one) > _known(other):
            best[run] = one
    doubles = [(one.facts, best[run].facts) for run, one in zip(runs, found, strict=True) if best[run] is not one]
    problems = [HistoryProblem(one.file, f"the same run as {other.file}", double=True)
                for one, other in doubles if one.file != other.file]  # fmt: skip
    return list(best.values()), problems


def _known(one: StoredPoints) -> tuple[bool, int]:
    """Return whether the environment is named, and the number of points: the larger of two doubles is kept."""
    return "env_name" in one.facts.software, one.rows


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
    facts = pandas.DataFrame([[getattr(one, name) for name in names] for one in history.records], columns=names)
    return facts.iloc[history.points["record"]].reset_index(drop=True).join(
        history.points.drop(columns="record").reset_index(drop=True)
    )  # fmt: skip
