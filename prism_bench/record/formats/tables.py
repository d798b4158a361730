"""Tables as files: CSV, and Parquet where pyarrow is installed. A table that is too large for memory comes in parts."""

import io
from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prism_bench.errors import ExtraMissing, ResultsError
from prism_bench.io.files import write_atomically
from prism_bench.io.installation import without

if TYPE_CHECKING:
    import pandas


def write(frame: "pandas.DataFrame", path: Path, format: str) -> Path:
    """Write the table as `csv` or `parquet`, whole or not at all; returns the path.

    An ExtraMissing names what Parquet needs, a ResultsError the place that cannot be written.
    """
    return write_parts([frame], path, format)


def write_parts(frames: Iterable["pandas.DataFrame"], path: Path, format: str) -> Path:
    """Write tables of the same columns, one below the other, as one; see `write`. There is at least one of them.

    Each is written before the next one is made.
    """
    if format != "csv" and find_spec("pyarrow") is None:
        raise ExtraMissing(f"Parquet: {without('pyarrow')}; CSV works without it")
    try:
        csv = (
            frame.to_csv(index=False, lineterminator="\n", header=not number).encode()
            for number, frame in enumerate(frames)
        )
        write_atomically(path, csv if format == "csv" else _parquet(frames))
    except OSError as error:
        raise ResultsError(f"cannot write {path}: {error.strerror}") from error
    return path


def _parquet(frames: Iterable["pandas.DataFrame"]) -> Iterator[bytes]:
    """Yield the file's bytes as row groups are written; texts are no categories, which differ from part to part."""
    arrow: Any = import_module("pyarrow")
    made: Any = import_module("pyarrow.parquet").ParquetWriter
    sink, writer, schema = _Pieces(), None, None
    for frame in frames:
        texts = {name: str for name, kind in frame.dtypes.items() if kind == "category"}
        table = arrow.Table.from_pandas(frame.astype(texts), schema=schema, preserve_index=False)
        if writer is None:
            schema = table.schema
            writer = made(sink, schema)
        writer.write_table(table)
        yield sink.taken()
    if writer is not None:
        writer.close()
    yield sink.taken()


class _Pieces(io.RawIOBase):
    """A file to write to, whose bytes are taken away as they come."""

    def __init__(self) -> None:
        self._pieces, self._written = list[bytes](), 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        """Take the bytes; return how many there are."""
        piece = bytes(data)
        self._pieces.append(piece)
        self._written += len(piece)
        return len(piece)

    def tell(self) -> int:
        return self._written

    def taken(self) -> bytes:
        """Return what was written since the last time."""
        data = b"".join(self._pieces)
        self._pieces.clear()
        return data
