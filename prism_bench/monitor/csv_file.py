"""Readings as a CSV file that stays below a size: there is one older part, then the oldest lines are removed."""

import csv
import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prism_bench.errors import ResultsError
from prism_bench.monitor.quantities import QUANTITIES

LARGEST = 16 << 20
COLUMNS = ("timestamp", "index", "uuid", "name", "lost", "reasons", "processes", *QUANTITIES)


class CsvFile:
    """One row per device and moment; an empty cell is a quantity that was not read. SI units, as `--json` has them.

    With more than `largest` bytes the file becomes `<name>.1` and begins anew, so both together stay below twice that.
    """

    def __init__(self, path: Path, largest: int = LARGEST) -> None:
        self._path, self._largest = path, largest
        self._header = not (path.is_file() and path.stat().st_size)
        self._write("")

    def add(self, status: dict) -> None:
        """Write the devices of one moment, as `export.status` returns them; raise a ResultsError on failure."""
        if self._path.is_file() and self._path.stat().st_size > self._largest:
            with self._named():
                self._path.replace(self._path.with_name(f"{self._path.name}.1"))
            self._header = True
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if self._header:
            writer.writerow(COLUMNS)
        writer.writerows(_row(status["timestamp"], device) for device in status["devices"])
        self._write(text.getvalue())
        self._header = False

    def _write(self, text: str) -> None:
        with self._named(), self._path.open("a") as file:
            file.write(text)

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ResultsError(f"cannot write {self._path}: {error.strerror}") from None


def _row(timestamp: str, device: Mapping[str, Any]) -> list[object]:
    words = " ".join(reason.replace(" ", "-") for reason in device["reasons"] or ())
    others = "" if device["processes"] is None else len(device["processes"])
    facts = [timestamp, device["index"], device["uuid"], device["name"], device["lost"] or "", words, others]
    return facts + ["" if value is None else f"{value:.10g}" for value in device["values"].values()]
