"""What a fuzz of records found, as a table: a line for each kind of damage and for each command."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from prism_bench.files import write_atomically
from prism_bench.studies.record_fuzz import Findings

COLUMNS = ("of", "name", "asked", "refused", "ended_with_0", "ended_with_1", "ended_with_3", "tracebacks", "wrong")


def write_table(findings: Findings, path: Path) -> None:
    """Write the table as CSV, whole or not at all."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([*_of_damages(findings), *_of_commands(findings)])
    write_atomically(path, text.getvalue().encode())


def _of_damages(findings: Findings) -> Iterator[tuple]:
    """Yield a line for each kind of damage: `asked` counts records."""
    for kind, count in sorted(findings.records.items()):
        yield (
            "damage", kind, count, findings.refused[kind], "", "", "", _count(findings.crashes, 1, kind),
            _count(findings.wrong, 1, kind),
        )  # fmt: skip


def _of_commands(findings: Findings) -> Iterator[tuple]:
    """Yield a line for each command: `asked` counts questions."""
    for name, count in findings.asked.items():
        codes = [findings.codes[name, code] for code in (2, 0, 1, 3)]
        yield ("command", name, count, *codes, _count(findings.crashes, 0, name), _count(findings.wrong, 0, name))


def _count(found: list[tuple], place: int, name: str) -> int:
    return sum(one[place] == name for one in found)
