"""Other tools' results as run records, and run records as theirs."""

from dataclasses import replace
from pathlib import Path
from types import ModuleType

from prism_bench.errors import ResultsError, unknown
from prism_bench.io.documents import json_text
from prism_bench.record.formats import (
    asv,
    google_benchmark,
    hyperfine,
    kernelbench,
    nvbench,
    pytest_benchmark,
    torch_profiler,
    tritonbench,
)
from prism_bench.record.formats.foreign import ODD, Imported, StatedFacts, read_json
from prism_bench.record.run_record import RunRecord, encode
from prism_bench.record.schema import checked

READERS = {
    "asv": asv,
    "nvbench": nvbench,
    "google-benchmark": google_benchmark,
    "kernelbench": kernelbench,
    "tritonbench": tritonbench,
    "pytest-benchmark": pytest_benchmark,
    "hyperfine": hyperfine,
    "torch-profiler": torch_profiler,
}
_SHOWN = 5  # reasons in one error


def read_foreign(path: Path, format: str | None = None, facts: StatedFacts | None = None) -> Imported:
    """Return the records in another tool's file, or in a folder of asv's results; its content decides the format.

    `facts` are what the file does not have. Every record is one that the store reads again, and has a case. A
    ResultsError names the file that cannot be read or that holds no case, with what was expected there.
    """
    if format not in (None, *READERS):
        raise unknown("format", format, READERS)
    facts = facts or StatedFacts()
    if path.is_dir():
        return _read_folder(path, facts)
    imported = _read_file(path, READERS[format] if format else _reader_of(path), facts)
    if not imported.records:
        reasons = [reason.removeprefix(f"{path}: ") for reason in imported.left_out]
        more = f"; and {len(reasons) - _SHOWN} more" if len(reasons) > _SHOWN else ""
        raise ResultsError(f"{path}: nothing can be imported: {'; '.join(reasons[:_SHOWN]) or 'no result'}{more}")
    return imported


def _read_file(path: Path, reader: ModuleType, facts: StatedFacts) -> Imported:
    """Return what the file has, each record as the store will read it again; there may be none."""
    try:
        imported: Imported = reader.read(path)
        records = tuple(facts.stated(record, str(path)) for record in imported.records if record.cases)
    except ODD as error:
        raise ResultsError(f"{path}: not {reader.BACKEND}'s ({type(error).__name__}: {error})") from error
    for record in records:
        checked(json_text(encode(record)).encode(), f"{path}: read as {reader.BACKEND}'s")
    return replace(imported, records=records)


def format_of(path: Path) -> str | None:
    """Return the format of another tool's file by its content; None for any other file.

    Raise a ResultsError for JSON that cannot be read.
    """
    if tritonbench.is_table(path):
        return "tritonbench"
    if tritonbench.is_csv(path):
        return None
    content = read_json(path)
    return next((name for name, reader in READERS.items() if reader.recognised(content)), None)


def _reader_of(path: Path) -> ModuleType:
    name = "tritonbench" if tritonbench.is_csv(path) else format_of(path)
    if name is None:
        raise ResultsError(f"{path}: none of {', '.join(READERS)}")
    return READERS[name]


def _read_folder(folder: Path, facts: StatedFacts) -> Imported:
    """Return the records of all result files of asv below the folder, and those that cannot be read as left out."""
    records: list[RunRecord] = []
    left_out: list[str] = []
    for path in sorted(folder.glob("*/*.json")):
        if path.name != "machine.json":
            try:
                imported = _read_file(path, asv, facts)
            except ResultsError as error:
                imported = Imported((), (str(error),))
            records += imported.records
            left_out += imported.left_out
    if not records and not left_out:
        raise ResultsError(f"{folder}: no asv results; they are in <folder>/<machine>/<commit>-<environment>.json")
    return Imported(tuple(records), tuple(dict.fromkeys(left_out)))
