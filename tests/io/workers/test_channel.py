"""Frames over a socket: of any size and number of arrays, with a limit on waiting, and a clear end."""

import socket
from threading import Thread

import msgspec
import numpy as np
import pytest

from prism_bench.io import channels
from prism_bench.io.channels import FrameChannel, FrameError, frame_parts


class Note(msgspec.Struct, frozen=True, tag=True):
    text: str


NOTES = msgspec.json.Decoder(Note)


@pytest.fixture
def ends():
    both = [FrameChannel(end) for end in socket.socketpair()]
    yield both
    for one in both:
        one.close()


def test_many_large_arrays_arrive(ends):
    sent = [np.full(size, size, "i4") for size in (0, 1, 3_000_000, *range(1, 300), 2_000_000)]
    sender = Thread(target=ends[0].send, args=(Note("large"), sent))
    sender.start()
    frame = ends[1].receive(NOTES, 10.0)
    sender.join()
    assert Note("large") == frame.message
    assert all(map(np.array_equal, sent, frame.arrays))


def test_waiting_has_a_limit_and_an_end_is_told_from_silence(ends):
    assert not ends[1].has_data(0.01)
    with pytest.raises(TimeoutError, match=r"no message within 0.01 s"):
        ends[1].receive(NOTES, 0.01)
    ends[0].send(Note("last"))
    ends[0].close()
    assert Note("last") == ends[1].receive(NOTES).message
    with pytest.raises(EOFError):
        ends[1].receive(NOTES)
    with pytest.raises(OSError, match="Broken pipe"):
        ends[1].send(Note("to nobody"))


def test_a_frame_that_stops_half_way_is_no_frame(monkeypatch):
    monkeypatch.setattr(channels, "STALL_SECONDS", 0.05)
    raw, end = socket.socketpair()
    receiver = FrameChannel(end)
    whole = b"".join(frame_parts(Note("half"), [np.zeros(9)]))
    raw.sendall(whole[:-9])
    with pytest.raises(FrameError, match="stops half-way"):
        receiver.receive(NOTES)
    raw.sendall(whole[:-9][:20])
    raw.close()
    with pytest.raises(FrameError, match="a frame begins with|ends within"):
        receiver.receive(NOTES)
    receiver.close()


def test_what_is_larger_than_expected_is_not_read(ends):
    ends[0].send(Note("large"), [np.zeros(100)])
    with pytest.raises(FrameError, match="the arrays have 800 bytes; the limit is 799"):
        ends[1].receive(NOTES, largest=799)
