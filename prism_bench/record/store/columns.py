"""Points of many files, column by column: words as numbers of a vocabulary, one slice of rows for each file."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy
from numpy.typing import NDArray

from prism_bench.record.store.points import NUMBERS, WORDS, Columns, Facts

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


@dataclass(frozen=True, eq=False)
class PointTable:
    """Points of many records: words as numbers of a vocabulary, and in `record` the place of a point's record."""

    columns: Mapping[str, Column]
    vocabulary: Mapping[str, list[str]]

    @property
    def rows(self) -> int:
        return len(self.columns["record"])

    def rows_with(self, words: Mapping[str, Collection[str] | None]) -> Column:
        """Return which rows have one of the texts in each of these words; None allows any."""
        found = numpy.ones(self.rows, bool)
        for word, texts in words.items():
            if texts is not None:
                found &= numpy.array([text in texts for text in self.vocabulary[word]], bool)[self.columns[word]]
        return found

    def chosen(self, rows: Column) -> "PointTable":
        """Return the chosen rows, with the same vocabulary."""
        return PointTable({name: column[rows] for name, column in self.columns.items()}, self.vocabulary)

    def texts(self, word: str) -> list[str]:
        """Return the text of each row."""
        known = self.vocabulary[word]
        return [known[place] for place in self.columns[word].tolist()]


def together(
    blocks: Iterable[PointBlock], numbers: Collection[str] = tuple(NUMBERS), rows: int | None = None
) -> PointTable:
    """Return the points of all blocks, one after the other, over one vocabulary, with these of the numbers.

    A block's place is its record's. With the number of all `rows`, blocks that an iterator yields are not kept.
    """
    if rows is None:
        blocks = list(blocks)
        rows = sum(one.rows for one in blocks)
    plain = {name: numpy.empty(rows, NUMBERS[name]) for name in numbers}
    words = {word: _WordColumn(rows) for word in WORDS}
    lengths: list[int] = []
    end = 0
    for one in blocks:
        part = slice(end, end + one.rows)
        for name, column in plain.items():
            column[part] = one.columns[name]
        for word, column in words.items():
            column.fill(part, one.columns[word], one.vocabulary[word])
        lengths.append(one.rows)
        end += one.rows
    records = numpy.repeat(numpy.arange(len(lengths), dtype="i4"), lengths)
    columns = {"record": records, **plain, **{word: one.numbers for word, one in words.items()}}
    return PointTable(columns, {word: list(one.places) for word, one in words.items()})


class _WordColumn:
    """A word of many blocks: `numbers` of a vocabulary that grows, of the smallest type that it fits in."""

    def __init__(self, rows: int) -> None:
        self.places: dict[str, int] = {}
        self.numbers: Column = numpy.empty(rows, smallest_kind(0))
        self._known: dict[int, tuple[list[str], Column]] = {}  # with the lists, so that no other one gets their id

    def fill(self, part: slice, numbers: Column, vocabulary: list[str]) -> None:
        """Put in numbers of a block's vocabulary; blocks that share one share its translation."""
        if id(vocabulary) not in self._known:
            translated = [self.places.setdefault(text, len(self.places)) for text in vocabulary]
            kind = smallest_kind(len(self.places))
            self.numbers = self.numbers.astype(kind, copy=False)
            self._known[id(vocabulary)] = vocabulary, numpy.array(translated, kind)
        self.numbers[part] = self._known[id(vocabulary)][1].take(numbers)


def smallest_kind(count: int) -> str:
    """Return the smallest signed integer type for the numbers of so many words: columns are long."""
    return "i1" if count < 1 << 7 else "i2" if count < 1 << 15 else "i4"
