"""Entries of the museum: a card, whose lines that begin with `#:` say what it attacks, and its source."""

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal

from prism_bench.extensions.judge.defences import Defence

FOLDER = Path(__file__).parent / "museum"
MARK = "#: "
# What happens without the defences: a wrong verdict `right`; a file that is written (`acts`) or shown (`leaks`); words
# that are no longer the judge's own on its output (`prints`); the process with the verdict `dies` or `hangs`; `passes`:
# no rule holds back what a GPU would launch.
Bite = Literal["right", "acts", "leaks", "prints", "dies", "hangs", "passes"]


@dataclass(frozen=True)
class Entry:
    """One attack: in words, its `numbers` in research/field_2026_11.md, the verdict, and the defences that catch it.

    `expected` is the ruling and words of an objection. `task` is the judged kernel. `needs` is `gpu` for what only that
    shows: there the same entry is judged by the referee, and refused or reported by the defences; `compute-sanitizer`
    for what only that shows on a GPU. `against` and `memory` are properties of the judge without defences,
    `largest_cubin` and `secret` of its surroundings.
    """

    card: Path
    attack: str
    numbers: tuple[int, ...]
    expected: str
    defences: tuple[Defence, ...]
    task: str = "add"
    bites: Bite = "right"
    needs: str = ""
    against: str = ""
    memory: Literal["reference", "zeros"] = "reference"
    largest_cubin: int = 0
    secret: bool = False

    @property
    def name(self) -> str:
        return self.card.stem

    @property
    def ruling(self) -> str:
        return self.expected.partition(": ")[0]

    @property
    def words(self) -> str:
        return self.expected.partition(": ")[2]

    @property
    def is_host_program(self) -> bool:
        return self.card.with_suffix(".py").exists()


def entries() -> list[Entry]:
    """Return every entry, by name."""
    return [_entry(card) for card in sorted(FOLDER.glob("*.toml"))]


def _entry(card: Path) -> Entry:
    lines = [line.removeprefix(MARK) for line in card.read_text().splitlines() if line.startswith(MARK)]
    facts = tomllib.loads("\n".join(lines))
    odd = set(facts) - {one.name for one in fields(Entry)}
    assert not odd, f"{card.name}: {odd}"
    return Entry(card, **{name: tuple(value) if isinstance(value, list) else value for name, value in facts.items()})
