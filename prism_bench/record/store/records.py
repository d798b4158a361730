"""Run records on disk: one at a time, in the order of their commits, or from the kept history."""

import gzip
import hashlib
import re
from bisect import bisect_right
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from prism_bench.errors import ResultsError
from prism_bench.io.documents import content_of, json_text, kept_copy
from prism_bench.io.files import OwnFile, create_file, path_part, write_atomically
from prism_bench.io.installation import git_output
from prism_bench.record.identity import Owner, timestamp
from prism_bench.record.run_record import CaseResult, RunRecord, decode, encode
from prism_bench.record.store.points import Facts

if TYPE_CHECKING:
    import pandas


# One run record on disk: written whole or not at all, read as a record or as one tidy table.
#
# A record of another writer is never replaced: `add_once` and `RecordPlace` create files under free names.
# `save` is for a file that its caller owns.

_DIGITS = 16  # of a digest in a file's name
_NUMBERED = re.compile(r"(?P<first>\d{8}T\d{6}Z-[^-]+(-dirty)?)-(?P<number>\d{1,9})")


def path_for(record: RunRecord, root: Path) -> Path:
    """Return `<root>/<machine>/<UTC>-<commit>.json.gz`; no value of the record is more than one part of it.

    A record whose time is a guess has a digest of its content behind the commit: that is what it is known by.
    """
    commit = (record.commit or "nocommit")[:8]
    if "created" in record.guessed:
        text = json_text(encode(replace(record, created="")))
        commit += f".{hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]}"
    name = name_of(record.created, commit, dirty=record.dirty)
    return root / path_part(record.machine["id"]) / f"{name}.json.gz"


def name_of(created: str, commit: str | None, *, dirty: bool) -> str:
    """Return the name of the record of a run: when it began, and its commit."""
    stamp = created.replace("-", "").replace(":", "").split(".")[0].split("+")[0]
    return path_part(f"{stamp}Z-{commit or 'nocommit'}{'-dirty' if dirty else ''}")


def numbered(first: Path) -> Iterator[Path]:
    """Yield `first`, then the same name with -2, -3 and so on: two records may begin in one second."""
    yield first
    name, dot, ending = first.name.partition(".json")
    for number in count(2):
        yield first.with_name(f"{name}-{number}{dot}{ending}")


class RecordPlace:
    """Path of every version of one record: `output`, else below `root` by a name that no other record has.

    Raise a ResultsError where `output` exists already: no record is replaced, except by a later version of itself.
    """

    def __init__(self, root: Path, output: Path | None = None) -> None:
        if output is not None and output.exists():
            raise ResultsError(f"{output}: exists already, and no record is replaced; name another file or remove it")
        self.root, self._output = root, output
        self._file: OwnFile | None = None

    def save(self, record: RunRecord) -> Path:
        """Write the record over its version before, and over nothing else; return the path."""
        first = self._output or path_for(record, self.root)
        self._file = self._file or OwnFile(partial(numbered, first))
        with _writing(first):
            return self._file.write(packed(record, first))


def add_once(record: RunRecord, root: Path) -> Path:
    """Create a new file for the record below `root`, unless there is one with its content; return the path.

    A guessed time is no part of the content.
    """
    first = path_for(record, root)
    data = packed(record, first)
    with _writing(first):
        if "created" in record.guessed:
            digest = first.name.removesuffix(".json.gz").rpartition(".")[2]
            for path in sorted(first.parent.glob(f"*.{digest}.json.gz")):
                with suppress(ResultsError):  # a damaged file holds no copy of the record
                    read(path)
                    return path
        for path in numbered(first):
            try:
                create_file(path, data)
                return path
            except FileExistsError:
                if path.is_file() and path.read_bytes() == data:
                    return path
    raise AssertionError("numbered names end nowhere")


def save(record: RunRecord, path: Path) -> Path:
    """Write the record to `path` (gzip where the name ends so), over whatever is there; return the path."""
    with _writing(path):
        write_atomically(path, packed(record, path))
    return path


def packed(record: RunRecord, path: Path) -> bytes:
    """Return the content of the record's file, compressed where the path's name ends in `.gz`.

    Raise a ResultsError for a record without cases: as the newest record it would hide the last real one.
    """
    if not record.cases:
        raise ResultsError("nothing was measured: no record is written")
    text = json_text(encode(record))
    return gzip.compress(text.encode(), 9, mtime=0) if path.suffix == ".gz" else text.encode()


@contextmanager
def _writing(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise ResultsError(f"cannot write {path}: {error.strerror or error}") from error


def read(path: Path | str, *, edges: bool = True) -> RunRecord:
    """Read the record at `path`; a ResultsError names what is missing, cut, damaged, foreign or of a newer schema.

    Without `edges` the record has only the cases that are timed: a record may have ten times as many edges.
    """
    return decode(text_at(path), str(path), edges=edges)


def text_at(path: Path | str) -> bytes | bytearray:
    """Read the JSON text of the record at `path`, or of its copy elsewhere (see `documents.supply`).

    A ResultsError names it where it is missing, cut or too large.
    """
    try:
        return content_of(Path(path), "a readable run record")
    except FileNotFoundError:
        copy = kept_copy(Path(path))
        if copy is None:
            raise ResultsError(f"{path}: no such record") from None
        return content_of(copy, "a readable run record")


def records_in(root: Path | str) -> list[Path]:
    """Return the paths of all records below `root`, oldest first; of one second in the order of their numbers."""
    return sorted(Path(root).glob("*/*.json.gz"), key=in_order)


def in_order(path: Path) -> tuple[str, int]:
    """Return the key that sorts records: when they began, and their number within a second."""
    name = path.name.removesuffix(".json.gz")
    match = _NUMBERED.fullmatch(name)
    return (match["first"], int(match["number"])) if match else (name, 1)


def readable(root: Path | str, machine: str | None = None) -> Iterator[tuple[Path, RunRecord]]:
    """Read the records below `root`, newest first, only those of a given `machine`; skip unreadable ones."""
    for path in reversed(records_in(root)):
        if machine is None or path_part(machine) == path.parent.name:
            with suppress(ResultsError):
                yield path, read(path)


def newest(root: Path | str) -> Path:
    """Return the newest record below `root`; a ResultsError without records."""
    paths = records_in(root)
    if not paths:
        raise ResultsError(f"no run record below {root}; 'prism-bench run' makes one")
    return paths[-1]


def table(record: RunRecord) -> "pandas.DataFrame":
    """Return a table with one row per sample.

    Columns: case, kernel, variant, family, label, metric, subject, process, sample, seconds, clock, valid.
    """
    import pandas

    rows = [row for case in record.cases for row in _rows(case)]
    columns = ["case", "kernel", "variant", "family", "label", "metric", "subject", "process", "sample", "seconds"]
    return pandas.DataFrame(rows, columns=[*columns, "clock", "valid"])


def _rows(case: CaseResult) -> Iterator[tuple[object, ...]]:
    fixed = (case.name, case.kernel, case.variant, case.family, case.label)
    for measurement in case.measurements:
        for process, samples in enumerate(measurement.processes):
            clocks = measurement.clocks[process] if process < len(measurement.clocks) else ()
            for index, seconds in enumerate(samples):
                clock = clocks[index] if index < len(clocks) else None
                yield (
                    *fixed,
                    measurement.metric,
                    measurement.subject,
                    process,
                    index,
                    seconds,
                    clock,
                    measurement.valid,
                )


def load(path: Path | str) -> "pandas.DataFrame":
    """Return the record at `path` as a tidy pandas table, one row per sample, with the record's facts in `.attrs`."""
    record = read(path)
    frame = table(record)
    frame.attrs.update(machine=record.machine, commit=record.commit, created=record.created, backend=record.backend)
    return frame


# Order of records: by the commits that they measured, not by the clock.
#
# asv measures the newest commit first and a backfill jumps, so the time of measuring does not order what was measured.
# A commit comes after its ancestors where a repository at hand knows it, else by its date; records of one commit are in
# the order in which they were measured. A record whose commit has no known date follows what was measured before it on
# its machine.

_HASH = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_SECONDS = 60.0  # a repository that takes longer to list its commits is not asked again by one command
_Place = tuple[str | int, ...]  # sorts commits, and with the time of measuring records
_FIRST: _Place = ("", -1, "", "")


@dataclass(frozen=True)
class CommitOrder:
    """What the repositories around `folders` know of commits: `ranks`, ancestors first, and `dates` (UTC, ISO 8601)."""

    folders: tuple[Path, ...] = ()
    ranks: Mapping[str, int] = field(default_factory=dict[str, int])
    dates: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def around(cls, records: Iterable[Facts], folders: Iterable[Path]) -> "CommitOrder":
        """Return what is known of the records' commits by the first repository around `folders` that knows any."""
        places = tuple(folders)
        commits = list(
            dict.fromkeys(record.commit for record in records if record.commit and _HASH.fullmatch(record.commit))
        )
        for repository in dict.fromkeys(filter(None, map(_repository, places))) if commits else ():
            dates = _dates(repository, commits)
            if dates:
                return cls(places, _ranks(repository, dates), dates)
        return cls(places)

    def sorted(self, records: Sequence[Facts]) -> tuple[list[int], list[int]]:
        """Return the places of the records in their order, and the places of those whose commit has no known date.

        Records of a single commit are in their order even without a date. A commit's known date is that of
        the repository, else that of any of its records.
        """
        commits = self._commits(records)
        known: list[_Place | None] = [commits.get(record.commit or "") for record in records]
        measured: dict[Owner, list[tuple[str, str, int]]] = {}
        for place, record in enumerate(records):
            if known[place]:
                measured.setdefault(record.owner, []).append((record.created, record.file, place))
        for owned in measured.values():
            owned.sort()
        keys: list[_Place] = []
        for record, commit in zip(records, known, strict=True):
            within = record.created, record.file
            if commit is None:
                owned = measured.get(record.owner, [])
                before = bisect_right(owned, (*within, len(records)))
                previous = owned[before - 1][2] if before else -1
                last = records[previous]
                # A record without a date that no dated record of its owner precedes comes before the dated records.
                first: _Place = _FIRST if owned else (record.created, -1, "", "")
                commit = (*(known[previous] or ()), last.created, last.file) if before else first
            keys.append((*commit, *within))
        order = sorted(range(len(records)), key=keys.__getitem__)
        of: dict[Owner, set[str | None]] = {}
        for record in records:
            of.setdefault(record.owner, set()).add(record.commit)
        several = {owner for owner, names in of.items() if len(names) > 1 or None in names}
        return order, [place for place in order if known[place] is None and records[place].owner in several]

    def _commits(self, records: Sequence[Facts]) -> dict[str, _Place]:
        """Return what sorts each commit of a known date: ancestors first, others by date between them."""
        first: dict[str, str] = {}
        dates = dict(self.dates)
        for record in records:
            if record.commit:
                first[record.commit] = min(first.get(record.commit, record.created), record.created)
                if record.committed:
                    dates.setdefault(record.commit, record.committed)
        places: dict[str, _Place] = {}
        newest = ""
        for commit in sorted((record for record in first if record in self.ranks), key=self.ranks.__getitem__):
            newest = max(newest, dates[commit])  # a child whose clock was slow is no older than its parent
            places[commit] = newest, self.ranks[commit], "", commit
        for commit in first:
            if commit in dates and commit not in places:
                places[commit] = dates[commit], -1, first[commit], commit
        return places

    def dated(self, records: Iterable[Facts]) -> Iterator[Facts]:
        """Yield the records, those that do not know the time of their commit with that of the repository."""
        for record in records:
            date = None if record.committed else self.dates.get(record.commit or "")
            yield replace(record, committed=date) if date else record


def _repository(folder: Path) -> Path | None:
    """Return the folder, or the nearest one around it, that is a checkout."""
    here = folder.resolve()
    return next((place for place in (here, *here.parents) if (place / ".git").exists()), None)


def _dates(repository: Path, commits: Sequence[str]) -> dict[str, str]:
    """Return the dates of those commits that the repository has."""
    rows = _git(repository, commits, "cat-file", "--batch-check=%(objecttype)")
    known = [commit for commit, row in zip(commits, rows, strict=False) if row == "commit"]
    rows = _git(repository, known, "rev-list", "--no-walk=unsorted", "--timestamp", "--stdin") if known else []
    pairs = (row.split() for row in rows)
    return {commit: timestamp(datetime.fromtimestamp(int(seconds), UTC)) for seconds, commit in pairs}


def _ranks(repository: Path, dates: Mapping[str, str]) -> dict[str, int]:
    """Return the number of each commit, ancestors first; nothing older than the oldest commit's parents is listed."""
    oldest = min(dates, key=dates.__getitem__)
    listed = _git(repository, [*dates, f"^{oldest}^@"], "rev-list", "--topo-order", "--reverse", "--stdin")
    ranks = {commit: rank for rank, commit in enumerate(listed) if commit in dates}
    if len(ranks) == len(dates):
        return ranks
    listed = _git(repository, list(dates), "rev-list", "--topo-order", "--reverse", "--stdin")
    return {commit: rank for rank, commit in enumerate(listed) if commit in dates}


def _git(repository: Path, lines: Sequence[str], *arguments: str) -> list[str]:
    """Return the lines that git prints for the `lines` that it reads; an empty list where it fails.

    It fetches nothing in a clone that has only a part of the objects.
    """
    variables = {"GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0"}
    return git_output(repository, *arguments, lines=lines, variables=variables, timeout=_SECONDS).splitlines()
