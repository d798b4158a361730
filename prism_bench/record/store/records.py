"""One run record on disk: written whole or not at all, read as a record or as one tidy table.

A record that somebody else wrote is never replaced: `add_once` and `RecordPlace` create files under free names. `save`
is for a file that its caller owns.
"""

import gzip
import hashlib
import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from prism_bench.errors import ResultsError
from prism_bench.io.documents import content_of, json_text
from prism_bench.io.files import OwnFile, create_file, path_part, write_atomically
from prism_bench.record.raw_source import copy_of
from prism_bench.record.run_record import CaseResult, RunRecord, decode, encode

if TYPE_CHECKING:
    import pandas

_DIGITS = 16  # of a digest in a file's name
_NUMBERED = re.compile(r"(?P<first>\d{8}T\d{6}Z-[^-]+(-dirty)?)-(?P<number>\d{1,9})")


def path_for(record: RunRecord, root: Path) -> Path:
    """Return `<root>/<machine>/<UTC>-<commit>.json.gz`; no value of the record is more than one part of it.

    A record whose time is a guess has a digest of its content behind the commit: that is what it is known by.
    """
    stamp = record.created.replace("-", "").replace(":", "").split(".")[0].split("+")[0]
    commit = (record.commit or "nocommit")[:8]
    if "created" in record.guessed:
        text = json_text(encode(replace(record, created="")))
        commit += f".{hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]}"
    name = path_part(f"{stamp}Z-{commit}{'-dirty' if record.dirty else ''}")
    return root / path_part(record.machine["id"]) / f"{name}.json.gz"


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
    """Read the JSON text of the record at `path`, or of its copy elsewhere (see `raw_source`).

    A ResultsError names it where it is missing, cut or too large.
    """
    try:
        return content_of(Path(path), "a readable run record")
    except FileNotFoundError:
        copy = copy_of(Path(path))
        if copy is None:
            raise ResultsError(f"{path}: no such record") from None
        return content_of(copy, "a readable run record")


def records_in(root: Path | str) -> list[Path]:
    """Return the paths of all records below `root`, oldest first; of one second in the order of their numbers."""
    return sorted(Path(root).glob("*/*.json.gz"), key=in_order)


def in_order(path: Path) -> tuple[str, int]:
    """Return the key that sorts records: when they began, and their number within a second."""
    name = path.name.removesuffix(".json.gz")
    found = _NUMBERED.fullmatch(name)
    return (found["first"], int(found["number"])) if found else (name, 1)


def readable(root: Path | str, machine: str | None = None) -> Iterator[tuple[Path, RunRecord]]:
    """Read the records below `root`, newest first, only those of a given `machine`; skip unreadable ones."""
    for path in reversed(records_in(root)):
        if machine is None or path_part(machine) == path.parent.name:
            with suppress(ResultsError):
                yield path, read(path)


def newest(root: Path | str) -> Path:
    """Return the newest record below `root`; a ResultsError where there is none."""
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
    for one in case.measurements:
        for process, samples in enumerate(one.processes):
            clocks = one.clocks[process] if process < len(one.clocks) else ()
            for index, seconds in enumerate(samples):
                clock = clocks[index] if index < len(clocks) else None
                yield (*fixed, one.metric, one.subject, process, index, seconds, clock, one.valid)


def load(path: Path | str) -> "pandas.DataFrame":
    """Return the record at `path` as a tidy pandas table, one row per sample, with the record's facts in `.attrs`."""
    record = read(path)
    frame = table(record)
    frame.attrs.update(machine=record.machine, commit=record.commit, created=record.created, backend=record.backend)
    return frame
