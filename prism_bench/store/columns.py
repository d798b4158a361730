"""Points of many files, column by column: words as numbers of a vocabulary, one slice of rows for each file."""

from collections.abc import Collection, Iterable, Mapping, Sequence
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


def together(blocks: Iterable[PointBlock], numbers: Collection[str] = tuple(NUMBERS)) -> PointTable:
    """Return the points of all blocks, one after the other, over one vocabulary, with these of the numbers.

    A block's place is its record's. Of blocks that an iterator yields, no more is in memory than what is not copied
    yet: each column goes when it has been.
    """
    parts: list[dict[str, Column]] = []
    vocabularies: list[Mapping[str, list[str]]] = []
    for one in blocks:
        parts.append(dict(one.columns))
        vocabularies.append(one.vocabulary)
        del one
    columns = {"record": numpy.repeat(numpy.arange(len(parts), dtype="i4"), [len(one["value"]) for one in parts])}
    for name in numbers:
        columns[name] = numpy.concatenate([numpy.empty(0, NUMBERS[name]), *(one.pop(name) for one in parts)])
    vocabulary: dict[str, list[str]] = {}
    for word in WORDS:
        own = [one[word] for one in vocabularies]
        columns[word], vocabulary[word] = _renumbered([one.pop(word) for one in parts], own)
    return PointTable(columns, vocabulary)


def _renumbered(parts: Sequence[Column], vocabularies: Sequence[list[str]]) -> tuple[Column, list[str]]:
    """Return a word's column over all vocabularies; parts that share one share its translation."""
    places: dict[str, int] = {}
    known: dict[int, list[int]] = {}
    for own in vocabularies:
        if id(own) not in known:
            known[id(own)] = [places.setdefault(text, len(places)) for text in own]
    kind = smallest_kind(len(places))
    tables = {name: numpy.array(own, kind) for name, own in known.items()}
    found = numpy.empty(sum(map(len, parts)), kind)
    end = 0
    for part, own in zip(parts, vocabularies, strict=True):
        found[end : end + len(part)] = tables[id(own)][part]
        end += len(part)
    return found, list(places)


def smallest_kind(count: int) -> str:
    """Return the smallest signed integer type for the numbers of so many words: columns are long."""
    return "i1" if count < 1 << 7 else "i2" if count < 1 << 15 else "i4"
