"""The queue's words: read from the header, packed and unpacked."""

import os

import numpy as np
import pytest

from prism_bench.errors import SpecError, UsageError
from prism_bench.extensions.persistent import queue
from prism_bench.extensions.persistent.queue import LINE_WORDS, STOP_PROGRAM, Board, QueueStage


def test_constants_are_read_from_the_header_in_its_own_words():
    text = "constexpr int BITS = 24;  // so\nconstexpr unsigned int MASK = 0xff;\nenum Word { FIRST, SECOND, COUNT };\n"
    assert {"BITS": 24, "MASK": 255, "FIRST": 0, "SECOND": 1, "COUNT": 2} == queue.constants(text)


def test_a_message_is_a_ticket_and_a_number():
    word = queue.message(5_000_000_000, 17)
    assert (5_000_000_000, 17) == (queue.ticket_of(word), queue.number_of(word))
    assert word < 1 << 64


def test_requests_are_at_their_slots_and_end_with_the_stop():
    ring = queue.requests([3, 4], slots=4)
    assert [0, 1, 2, 3] == [queue.ticket_of(int(word)) for word in ring]
    assert [0, 3, 4, STOP_PROGRAM] == [queue.number_of(int(word)) for word in ring]


def test_table_has_begins_of_programs_and_lengths_of_stages():
    first, second = QueueStage(0, (2, 3, 1), (64, 128)), QueueStage(1, (5, 1, 1), ())
    table = queue.table([[], [first, second]])
    assert [2, 4, 0, 1, 2, 6, 7, 0, 2, 3, 1, 64, 128, 5, 1, 5, 1, 1] == table.tolist()
    assert 6 == first.blocks
    assert np.uint64 == table.dtype


def test_more_programs_than_there_is_room_for_are_refused():
    with pytest.raises(SpecError, match="the programs of a queue take 1406 words, 256 at most"):
        queue.table([[QueueStage(0, (1, 1, 1), tuple(range(30)))] * 20] * 2)


def test_error_numbers_have_texts():
    assert "no such program" == queue.error_text(1)
    assert "the kernel gave error 3" == queue.error_text(queue.KERNEL_ERRORS + 3)
    assert "error 9" == queue.error_text(9)


@pytest.mark.parametrize("slots", [2, 64])
def test_a_boards_parts_do_not_share_a_line(slots):
    ours = Board(slots)
    theirs = Board(slots, ours.handle)
    ours.requests[1], theirs.answers[slots - 1], theirs.pulse[0] = 7, 8, 9
    assert (7, 8, 9) == (theirs.requests[1], ours.answers[slots - 1], ours.pulse[0])
    begins = [array.ctypes.data for array in ours.arrays()]
    assert [0, 0, 0] == [begin % (8 * LINE_WORDS) for begin in begins]
    assert 3 == len(set(begins))
    ours.close()


def test_board_without_memfd_uses_a_removed_file(monkeypatch):
    monkeypatch.delattr(os, "memfd_create", raising=False)
    ours = Board(2)
    theirs = Board(2, ours.handle)
    ours.requests[0] = 5
    assert 5 == theirs.requests[0]
    ours.close()


@pytest.mark.parametrize("slots", [0, 1, 6])
def test_a_ring_has_a_power_of_two_of_slots(slots):
    with pytest.raises(UsageError, match=f"a queue has 2, 4, 8 ... slots, not {slots}"):
        Board(slots)
