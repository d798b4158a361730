"""One run record on disk: written whole or not at all, read as a record or as one tidy table."""

import gzip
import json
import zlib
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import orjson

from prism_bench.errors import ResultsError
from prism_bench.files import write_atomically
from prism_bench.run_record import RunRecord, decode, encode


def path_for(record: RunRecord, root: Path) -> Path:
    """`<root>/<machine>/<UTC>-<commit>.json.gz`."""
    stamp = record.created.replace("-", "").replace(":", "").split(".")[0].split("+")[0]
    commit = (record.commit or "nocommit")[:8]
    return root / record.machine["id"] / f"{stamp}Z-{commit}{'-dirty' if record.dirty else ''}.json.gz"


def numbered(first: Path) -> Iterator[Path]:
    """`first`, then the same name with -2, -3 and so on: two records may begin in one second."""
    yield first
    for number in count(2):
        yield first.with_name(first.name.replace(".json.gz", f"-{number}.json.gz"))


class Place:
    """Where every version of one record goes: `output`, else below `root` by a name that no other record has."""

    def __init__(self, root: Path, output: Path | None = None):
        self.root, self._path = root, output

    def save(self, record: RunRecord) -> Path:
        """Write it over the version before; returns the path."""
        if self._path is None:
            self._path = next(path for path in numbered(path_for(record, self.root)) if not path.exists())
        return save(record, self._path)


def save(record: RunRecord, path: Path) -> Path:
    """Write the record to `path` (gzip where the name ends so) by way of a temporary file; returns the path."""
    text = json.dumps(encode(record), separators=(",", ":"), allow_nan=False, default=str)
    data = gzip.compress(text.encode(), 9, mtime=0) if path.suffix == ".gz" else text.encode()
    try:
        write_atomically(path, data)
    except OSError as error:
        raise ResultsError(f"cannot write {path}: {error.strerror}") from error
    return path


def read(path: Path | str) -> RunRecord:
    """The record at `path`; a ResultsError naming it where it is missing, cut, foreign or of a newer schema."""
    return decode(parsed(path), str(path))


def parsed(path: Path | str) -> object:
    """The JSON that the record at `path` is made of; a ResultsError naming it where it is missing, cut or none."""
    path = Path(path)
    try:
        data = path.read_bytes()
        return orjson.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    except FileNotFoundError:
        raise ResultsError(f"{path}: no such record") from None
    except (OSError, EOFError, ValueError, zlib.error, RecursionError) as error:
        raise ResultsError(f"{path}: not a readable run record ({error})") from error


def records_in(root: Path | str) -> list[Path]:
    """The paths of all records below `root`, oldest first."""
    return sorted(Path(root).glob("*/*.json.gz"), key=lambda path: path.name.removesuffix(".json.gz"))


def readable(root: Path | str, machine: str | None = None) -> Iterator[tuple[Path, RunRecord]]:
    """The records below `root`, of one machine if it is named, newest first; one that cannot be read is passed over."""
    for path in reversed(records_in(root)):
        if machine in (None, path.parent.name):
            with suppress(ResultsError):
                yield path, read(path)


def newest(root: Path | str) -> Path:
    """The newest record below `root`; a ResultsError where there is none."""
    paths = records_in(root)
    if not paths:
        raise ResultsError(f"no run record below {root}; 'prism-bench run' makes one")
    return paths[-1]


def table(record: RunRecord):
    """One row per sample.

    Columns: case, kernel, variant, family, label, metric, subject, process, sample, seconds, clock, valid.
    """
    import pandas

    rows = [row for case in record.cases for row in _rows(case)]
    columns = ["case", "kernel", "variant", "family", "label", "metric", "subject", "process", "sample", "seconds"]
    return pandas.DataFrame(rows, columns=[*columns, "clock", "valid"])


def _rows(case):
    fixed = (case.name, case.kernel, case.variant, case.family, case.label)
    for one in case.measurements:
        for process, samples in enumerate(one.processes):
            clocks = one.clocks[process] if process < len(one.clocks) else ()
            for index, seconds in enumerate(samples):
                clock = clocks[index] if index < len(clocks) else None
                yield (*fixed, one.metric, one.subject, process, index, seconds, clock, one.valid)


def load(path: Path | str):
    """The record at `path` as a tidy pandas table, one row per sample, with the record's facts in `.attrs`."""
    record = read(path)
    frame = table(record)
    frame.attrs.update(machine=record.machine, commit=record.commit, created=record.created, backend=record.backend)
    return frame
