"""Other tools' results as run records, and run records as theirs."""

from pathlib import Path
from types import ModuleType

from prism_bench.errors import ResultsError, unknown
from prism_bench.exchange import asv_in, google_benchmark, kernelbench, nvbench, tritonbench
from prism_bench.exchange.foreign import Imported, read_json
from prism_bench.run_record import RunRecord

READERS = {
    "asv": asv_in, "nvbench": nvbench, "google-benchmark": google_benchmark, "kernelbench": kernelbench,
    "tritonbench": tritonbench,
}  # fmt: skip


def read_foreign(path: Path, format: str | None = None) -> Imported:
    """Return the records in another tool's file, or in a folder of asv's results; its content decides the format.

    A ResultsError names the file that cannot be read, and what was expected there.
    """
    if format not in (None, *READERS):
        raise unknown("format", format, READERS)
    if path.is_dir():
        return _read_folder(path)
    reader = READERS[format] if format else _reader(path)
    try:
        return reader.read(path)
    except (ArithmeticError, AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError) as error:
        raise ResultsError(f"{path}: not {reader.BACKEND}'s ({type(error).__name__}: {error})") from error


def _reader(path: Path) -> ModuleType:
    if tritonbench.is_csv(path):
        return tritonbench
    data = read_json(path)
    for reader in READERS.values():
        if reader.recognised(data):
            return reader
    raise ResultsError(f"{path}: none of {', '.join(READERS)}")


def _read_folder(folder: Path) -> Imported:
    """Return the records of all result files of asv below the folder, and those that cannot be read as left out."""
    records: list[RunRecord] = []
    left_out: list[str] = []
    for path in sorted(folder.glob("*/*.json")):
        if path.name != "machine.json":
            try:
                found = read_foreign(path, asv_in.BACKEND)
            except ResultsError as error:
                found = Imported((), (str(error),))
            records += found.records
            left_out += found.left_out
    if not records and not left_out:
        raise ResultsError(f"{folder}: no asv results; they are in <folder>/<machine>/<commit>-<environment>.json")
    return Imported(tuple(records), tuple(dict.fromkeys(left_out)))
