"""Tables as files: CSV, and Parquet where pyarrow is installed."""

import io
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from prism_bench.errors import ExtraMissing, ResultsError
from prism_bench.extras import without
from prism_bench.files import write_atomically

if TYPE_CHECKING:
    import pandas


def write(frame: "pandas.DataFrame", path: Path, format: str) -> Path:
    """Write the table as `csv` or `parquet`, whole or not at all; returns the path.

    An ExtraMissing names what Parquet needs, a ResultsError the place that cannot be written.
    """
    data = frame.to_csv(index=False, lineterminator="\n").encode() if format == "csv" else _parquet(frame)
    try:
        write_atomically(path, data)
    except OSError as error:
        raise ResultsError(f"cannot write {path}: {error.strerror}") from error
    return path


def _parquet(frame: "pandas.DataFrame") -> bytes:
    if find_spec("pyarrow") is None:
        raise ExtraMissing(f"Parquet: {without('pyarrow')}; CSV works without it")
    data = io.BytesIO()
    frame.to_parquet(data, index=False, engine="pyarrow")
    return data.getvalue()
