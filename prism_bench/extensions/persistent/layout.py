"""The queue's words, as `kernels/include/launches/work_queue.cuh` defines them; its constants are read from there.

A message is one word: a ticket in the upper bits, a number in the lower ones. In a request the number is the
program's, in an answer the error's. All words are 64 bits wide.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from prism_bench.errors import SpecError
from prism_bench.io.files import default_folder

HEADER = default_folder() / "include" / "launches" / "work_queue.cuh"
_NUMBER = re.compile(r"^constexpr (?:unsigned )?int (\w+) = (0x[0-9a-f]+|\d+);", re.MULTILINE)
_ENUM = re.compile(r"^enum \w+ \{([^}]*)\};", re.MULTILINE)


def constants(text: str) -> dict[str, int]:
    """Return the whole numbers and the enumerators that a header defines at its outermost level, by name."""
    numbers = {name: int(value, 0) for name, value in _NUMBER.findall(text)}
    lists = [[name.strip() for name in names.split(",")] for names in _ENUM.findall(text)]
    return {**numbers, **{name: value for names in lists for value, name in enumerate(names)}}


_CONSTANTS = constants(HEADER.read_text())
NUMBER_BITS, STOP_PROGRAM = _CONSTANTS["NUMBER_BITS"], _CONSTANTS["STOP_PROGRAM"]
DESK_WORDS, MOST_PROGRAM_WORDS = _CONSTANTS["DESK_WORDS"], _CONSTANTS["MOST_PROGRAM_WORDS"]
NO_SUCH_PROGRAM = _CONSTANTS["NO_SUCH_PROGRAM"]
NO_ERROR, KERNEL_ERRORS = _CONSTANTS["NO_ERROR"], _CONSTANTS["KERNEL_ERRORS"]
_ERRORS = {_CONSTANTS["NO_SUCH_PROGRAM"]: "no such program", _CONSTANTS["NO_SUCH_KERNEL"]: "no such kernel"}
LINE_WORDS = 8  # of a line of the host's cache; words that different sides write are in different lines


def message(ticket: int, number: int) -> int:
    """Return the word for a ticket and a number."""
    return ticket << NUMBER_BITS | number


def ticket_of(word: int) -> int:
    """Return the ticket of a message."""
    return word >> NUMBER_BITS


def number_of(word: int) -> int:
    """Return the number of a message."""
    return word & STOP_PROGRAM


def error_text(number: int) -> str:
    """Return the meaning of an answer's number in words; kernels define their own errors."""
    if number >= KERNEL_ERRORS:
        return f"the kernel gave error {number - KERNEL_ERRORS}"
    return _ERRORS.get(number, f"error {number}")


@dataclass(frozen=True)
class QueueStage:
    """One kernel of a program: its index among the kernels that are served, its grid, its arguments as words."""

    kernel: int
    grid: tuple[int, int, int]
    arguments: tuple[int, ...]

    @property
    def blocks(self) -> int:
        """How many blocks the grid has."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    def words(self) -> list[int]:
        """Return the words in the order of StageWord, the length first."""
        return [5 + len(self.arguments), self.kernel, *self.grid, *self.arguments]


def table(programs: Sequence[Iterable[QueueStage]]) -> np.ndarray:
    """Return all programs as words: where each one begins, then its words as in ProgramWord; SpecError for too many."""
    bodies = [_body(list(stages)) for stages in programs]
    begins = accumulate((len(body) for body in bodies[:-1]), initial=len(bodies)) if bodies else [0]
    words = np.array([*begins, *(word for body in bodies for word in body)], np.uint64)
    if words.size > MOST_PROGRAM_WORDS:
        raise SpecError(f"the programs of a queue take {words.size} words, {MOST_PROGRAM_WORDS} at most: serve fewer")
    return words


def _body(stages: Sequence[QueueStage]) -> list[int]:
    return [len(stages), max((stage.blocks for stage in stages), default=1),
            *(word for stage in stages for word in stage.words())]  # fmt: skip


def slot_of(ticket: int, slots: int) -> int:
    """Return the slot of the ticket's request and answer among `slots`, which are 2, 4, 8 ..."""
    return ticket & (slots - 1)


def requests(numbers: Sequence[int], slots: int) -> np.ndarray:
    """Return the words of at most `slots` requests: the programs of these numbers in order, then the stop."""
    words = np.zeros(slots, np.uint64)
    for ticket, number in enumerate([*numbers, STOP_PROGRAM], start=1):
        words[slot_of(ticket, slots)] = message(ticket, number)
    return words
