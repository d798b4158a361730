"""Which chip has which counters, from `metric_support.csv`: a base name per line, a kind per chip."""

import csv
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path

from prism_bench.errors import ResultsError, unknown
from prism_bench.io.documents import table_text_of
from prism_bench.units import count_text

TABLE = "metric_support.csv"
_CAPABILITY = re.compile(r"[0-9]{1,3}\.[0-9]|[A-Z][a-z]+")  # a chip that is announced has the name of its family


@dataclass(frozen=True)
class Chip:
    """A chip's name (`GH100`), its compute capability (`9.0`) and the base names of its counters."""

    name: str
    capability: str
    counters: frozenset[str]

    def has(self, counter: str) -> bool:
        """Whether the chip counts it."""
        return counter in self.counters

    def __str__(self) -> str:
        return f"{self.name} (compute capability {self.capability})"


@cache
def chips() -> dict[str, Chip]:
    """Every chip of the table by compute capability."""
    with as_file(files("prism_bench.profilers").joinpath(TABLE)) as path:
        return chips_in(path)


def chips_in(path: Path) -> dict[str, Chip]:
    """Return the chips of a table by compute capability; a ResultsError names the line that is damaged."""
    try:
        header, *rows = csv.reader(table_text_of(path, "table of counters").splitlines(), strict=True)
    except (csv.Error, ValueError) as error:
        raise ResultsError(f"{path}: not a table of counters ({error}); scripts/metric_table makes it anew") from error
    names: set[str] = set()
    for line, row in enumerate(rows, 2):
        if len(row) != len(header) or not row[0] or row[0] in names:
            raise ResultsError(
                f"{path}: line {line} has {len(row)} of {count_text(len(header), 'cell')}, or a repeated name"
            )
        names.add(row[0])
    found: dict[str, Chip] = {}
    for column, title in enumerate(header[1:], 1):
        name, _, capability = title.partition("_")
        if not (name and _CAPABILITY.fullmatch(capability)) or capability in found:
            raise ResultsError(f"{path}: column '{title:.40}' is no CHIP_CAPABILITY, or a repeated one")
        found[capability] = Chip(name, capability, frozenset(row[0] for row in rows if row[column]))
    return found


def chip_of(capability: str | int) -> Chip:
    """Return the chip of a compute capability written `9.0` or 90; a UsageError lists the known ones."""
    text = f"{capability // 10}.{capability % 10}" if isinstance(capability, int) else capability
    if text not in chips():
        raise unknown("compute capability", text, chips())
    return chips()[text]


def counters() -> dict[str, tuple[Chip, ...]]:
    """Every base name of the table, with the chips that have it."""
    every = {name for chip in chips().values() for name in chip.counters}
    return {name: tuple(chip for chip in chips().values() if chip.has(name)) for name in sorted(every)}
