"""Launches kept ahead of a device that is played: what is counted as done, and that a pause is noticed."""

from types import SimpleNamespace

import pytest

from prism_bench.backends.cuda.harness import Harness
from prism_bench.errors import MeasurementInvalid


class Played:
    """A device that does a call a tick; an event is done when all calls before it are."""

    def __init__(self):
        self.called = self.worked = 0
        self.cuda = SimpleNamespace(Event=lambda disable_timing: _Event(self))

    def work(self, ticks):
        self.worked = min(self.called, self.worked + ticks)

    def call(self):
        self.called += 1

    def synchronize(self):
        self.worked = self.called


class _Event:
    def __init__(self, device):
        self._device, self._after = device, None

    def record(self, stream):
        self._after = self._device.called

    @property
    def done(self):
        return self._device.worked >= self._after

    def synchronize(self):
        self._device.worked = max(self._device.worked, self._after)


@pytest.fixture
def device():
    return Played()


def repeated(device, ahead):
    harness = Harness.__new__(Harness)
    harness._cupy, harness.stream = device, device
    return harness.repeated(device.call, 3, ahead)


def test_all_chunks_that_are_done_count_and_the_queue_is_filled_again(device):
    replays = repeated(device, ahead=4)
    assert (3, 15) == (next(replays), device.called)
    device.work(7)
    assert (9, 18) == (next(replays), device.called)


def test_a_device_that_paused_is_told(device):
    replays = repeated(device, ahead=4)
    next(replays)
    device.work(100)
    with pytest.raises(MeasurementInvalid, match="ran out of launches"):
        next(replays)


def test_closing_lets_it_finish(device):
    replays = repeated(device, ahead=4)
    next(replays)
    replays.close()
    assert device.worked == device.called
