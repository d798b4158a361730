"""One content from two: ledgers of runs, and the state of alerts."""

from pathlib import Path
from tempfile import TemporaryDirectory

from prism_bench.errors import ResultsError
from prism_bench.extensions.ci.alerts import ledger as alert_ledger
from prism_bench.extensions.ci.keeping.names import LEDGERS


def merged(name: str, base: bytes | None, ours: bytes, theirs: bytes) -> bytes:
    """Return the content that has the changes of both since `base`, which is None where nothing was common.

    Raise a ResultsError for a state of alerts that cannot be read.
    """
    if ours == theirs or ours == base:
        return theirs
    if theirs == base:
        return ours
    return _lines(ours, theirs) if name.startswith(f"{LEDGERS}/") else _alerts(name, base, ours, theirs)


def _lines(ours: bytes, theirs: bytes) -> bytes:
    """Return the lines of theirs, then those that only ours has: a line keeps its place, and so its commit."""
    first = theirs.splitlines()
    known = set(first)
    return b"".join(line + b"\n" for line in [*first, *(line for line in ours.splitlines() if line not in known)])


def _alerts(name: str, base: bytes | None, ours: bytes, theirs: bytes) -> bytes:
    with TemporaryDirectory() as folder:
        read = [_read(Path(folder) / str(i), name, text) for i, text in enumerate((base, ours, theirs))]
        path = Path(folder) / "merged"
        alert_ledger.write(alert_ledger.merged(*read), path)
        return path.read_bytes()


def _read(path: Path, name: str, text: bytes | None) -> alert_ledger.Ledger:
    if text is not None:
        path.write_bytes(text)
    try:
        return alert_ledger.read(path)
    except ResultsError as error:
        reason = str(error).removeprefix(f"{path}: ")
        raise ResultsError(f"{name}: {reason}; correct or remove the file, then try again") from error
