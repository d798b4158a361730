"""Points of many files, column by column: words as numbers of a vocabulary, one slice of rows for each file."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy
from numpy.typing import NDArray

from prism_bench.store.points import NUMBERS, WORDS, Columns, Facts

Column = NDArray[Any]  # of integers or of floats


@dataclass(frozen=True, eq=False)
class PointBlock:
    """Content of one record: its `facts` and columns, or the `problem` that its file has.

    `seal` changes with the file's content, and is empty without a file. `details` are those of `details.py`, where they
    are wanted.
    """

    file: str
    seal: str
    facts: Facts | None
    problem: str | None
    columns: Mapping[str, Column]
    vocabulary: Mapping[str, list[str]]
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def rows(self) -> int:
        return len(self.columns["value"])


def block(file: str, seal: str, facts: Facts | None, columns: Columns, problem: str | None = None) -> PointBlock:
    """Return the block of a file's points, each of its words numbered in the order in which it first comes."""
    numbered: dict[str, Column] = {}
    vocabulary: dict[str, list[str]] = {}
    for word in WORDS:
        texts = columns.get(word, ())
        vocabulary[word] = list(dict.fromkeys(texts))
        place = {text: index for index, text in enumerate(vocabulary[word])}
        numbered[word] = numpy.array([place[text] for text in texts], "i4")
    plain = {name: numpy.array(columns.get(name, ()), kind) for name, kind in NUMBERS.items()}
    return PointBlock(file, seal, facts, problem, numbered | plain, vocabulary)


def together(blocks: Iterable[PointBlock]) -> tuple[dict[str, Column], dict[str, list[str]]]:
    """Return the columns of all blocks, one after the other, over one vocabulary.

    A column `block` is the place of the block that a row comes from.
    """
    blocks = list(blocks)
    columns: dict[str, Column] = {}
    vocabulary: dict[str, list[str]] = {}
    for word in WORDS:
        columns[word], vocabulary[word] = _renumbered(blocks, word)
    for name, kind in NUMBERS.items():
        columns[name] = numpy.concatenate([numpy.empty(0, kind), *(one.columns[name] for one in blocks)])
    columns["block"] = numpy.repeat(numpy.arange(len(blocks), dtype="i4"), [one.rows for one in blocks])
    return columns, vocabulary


def _renumbered(blocks: Sequence[PointBlock], word: str) -> tuple[Column, list[str]]:
    """Return the word's column over all blocks' vocabulary; blocks that share a vocabulary share its translation."""
    places: dict[str, int] = {}
    known: dict[int, list[int]] = {}
    for one in blocks:
        own = one.vocabulary[word]
        if id(own) not in known:
            known[id(own)] = [places.setdefault(text, len(places)) for text in own]
    kind = smallest_kind(len(places))
    tables = {name: numpy.array(own, kind) for name, own in known.items()}
    parts = [tables[id(one.vocabulary[word])][one.columns[word]] for one in blocks]
    return numpy.concatenate([numpy.empty(0, kind), *parts]), list(places)


def smallest_kind(count: int) -> str:
    """Return the smallest signed integer type for the numbers of so many words: columns are long."""
    return "i1" if count < 1 << 7 else "i2" if count < 1 << 15 else "i4"
