"""Table of `scripts/judge_museum`: a line for each entry, kept as they come, and a summary next to it."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from lab.judge.dealt_study import NOT_ALL
from lab.judge.study_summary import write_summary

from tests.extensions.judge.museum_entries import entries


@dataclass(frozen=True)
class MuseumRow:
    """An entry: what its card says, what the judge answers on a GPU, what its referee alone, and what a naive judge.

    `naive` is the effect of the attack on that; empty where it has none. `seconds` are the judge's, and `relative` is
    the time that it names at the largest size over that of the task's own kernel, 0 where it names none.
    """

    entry: str
    attack: str
    expected: str
    judge: str
    words: str
    referee: str
    naive: str
    detected: bool
    seconds: float
    relative: float = 0.0


def read_rows(path: Path) -> list[MuseumRow]:
    """Return the lines of a table that are as their cards say: others are tried again."""
    if not path.is_file():
        return []
    with path.open(newline="") as table:
        lines = [{**row, "detected": row["detected"] == "True"} for row in csv.DictReader(table)]
    return [one for one in msgspec.convert(lines, list[MuseumRow], strict=False) if one.detected]


def summed_up(output: Path | None, rows: Sequence[MuseumRow], count: int, seconds: float) -> int:
    """Print the counts of `count` entries, write them next to the table, and return the exit code."""
    known = {one.name: one for one in entries()}
    undetected = [one.entry for one in rows if not one.detected]
    only = [one for one in rows if known[one.entry].needs]
    lacking = count - len(rows)
    print(
        f"{sum(bool(one.naive) for one in only)} of {len(only)} entries that only a GPU shows fool a naive judge here"
    )
    if lacking:
        print(f"{lacking} entries without an answer: --resume goes on")
    print(f"{len(rows)} entries, undetected: {len(undetected)} {' '.join(undetected)}")
    if output and rows:
        counts = {
            "as their cards say": len(rows) - len(undetected), "undetected": len(undetected),
            "without an answer": lacking, "shown by a GPU alone": len(only),
            "of these fool a naive judge": sum(bool(one.naive) for one in only),
        }  # fmt: skip
        write_summary(output, "museum", counts, seconds)
    return 1 if undetected else NOT_ALL if lacking else 0
