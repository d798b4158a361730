"""Points of many files, column by column: words as numbers of a vocabulary, one slice of rows for each file."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy

from prism_bench.store.points import NUMBERS, WORDS, Facts


@dataclass(frozen=True, eq=False)
class Block:
    """What one file gave: its `facts` and columns, or the `problem` that it has. `stamp` tells whether it changed."""

    file: str
    stamp: str
    facts: Facts | None
    problem: str | None
    columns: Mapping[str, numpy.ndarray]
    vocabulary: Mapping[str, list[str]]

    @property
    def rows(self) -> int:
        return len(self.columns["value"])


def block(file: str, stamp: str, facts: Facts | None, columns: Mapping[str, list], problem: str | None = None) -> Block:
    """The block of a file's points, each of its words numbered in the order in which it first comes."""
    numbered, vocabulary = {}, {}
    for word in WORDS:
        vocabulary[word] = list(dict.fromkeys(columns.get(word, ())))
        place = {text: index for index, text in enumerate(vocabulary[word])}
        numbered[word] = numpy.array([place[text] for text in columns.get(word, ())], "i4")
    plain = {name: numpy.array(columns.get(name, ()), kind) for name, kind in NUMBERS.items()}
    return Block(file, stamp, facts, problem, numbered | plain, vocabulary)


def together(blocks: Iterable[Block]) -> tuple[dict[str, numpy.ndarray], dict[str, list[str]]]:
    """The columns of all blocks, one after the other, over one vocabulary.

    A column `block` says which of them a row comes from.
    """
    blocks = list(blocks)
    columns, vocabulary = {}, {}
    for word in WORDS:
        columns[word], vocabulary[word] = _renumbered(blocks, word)
    for name, kind in NUMBERS.items():
        columns[name] = numpy.concatenate([numpy.empty(0, kind), *(one.columns[name] for one in blocks)])
    columns["block"] = numpy.repeat(numpy.arange(len(blocks), dtype="i4"), [one.rows for one in blocks])
    return columns, vocabulary


def _renumbered(blocks, word):
    """The word's column over the vocabulary of all blocks; blocks that share a vocabulary share its translation."""
    places: dict[str, int] = {}
    known: dict[int, numpy.ndarray] = {}
    parts = [numpy.empty(0, "i4")]
    for one in blocks:
        own = one.vocabulary[word]
        if id(own) not in known:
            known[id(own)] = numpy.array([places.setdefault(text, len(places)) for text in own], "i4")
        parts.append(known[id(own)][one.columns[word]])
    return numpy.concatenate(parts), list(places)
