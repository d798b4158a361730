"""Which chip has which counters, from `metric_support.csv`: a base name per line, a kind per chip."""

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from prism_bench.errors import unknown

TABLE = "metric_support.csv"


@dataclass(frozen=True)
class Chip:
    """A chip's name (`GH100`), its compute capability (`9.0`) and the base names of its counters."""

    name: str
    capability: str
    counters: frozenset[str]

    def has(self, counter: str) -> bool:
        """Whether the chip counts it."""
        return counter in self.counters

    def __str__(self):
        return f"{self.name} (compute capability {self.capability})"


@cache
def chips() -> dict[str, Chip]:
    """Every chip of the table by compute capability."""
    header, *rows = csv.reader(files("prism_bench.profilers").joinpath(TABLE).read_text("utf-8").splitlines())
    found = {}
    for column, title in enumerate(header[1:], 1):
        name, _, capability = title.partition("_")
        found[capability] = Chip(name, capability, frozenset(row[0] for row in rows if row[column]))
    return found


def chip_of(capability: str | int) -> Chip:
    """The chip of a compute capability written `9.0` or 90; a UsageError with the known ones where it is none."""
    text = f"{capability // 10}.{capability % 10}" if isinstance(capability, int) else capability
    if text not in chips():
        raise unknown("compute capability", text, chips())
    return chips()[text]


def counters() -> dict[str, tuple[Chip, ...]]:
    """Every base name of the table, with the chips that have it."""
    every = {name for chip in chips().values() for name in chip.counters}
    return {name: tuple(chip for chip in chips().values() if chip.has(name)) for name in sorted(every)}
