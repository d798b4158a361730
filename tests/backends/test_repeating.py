"""Launches held or kept ahead of a device that is played: what counts as done, and that a pause is noticed."""

from types import SimpleNamespace

import pytest

from prism_bench.backends.cuda.timers import Harness
from prism_bench.errors import MeasurementInvalid
from prism_bench.record.measurement import Sample

SAMPLE = Sample(1e-6, 1.98e9, 2e-6)


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


def holding(*samples):
    """A harness whose held samples end so."""
    harness, left = Harness.__new__(Harness), list(samples)
    harness.begin, harness.end, harness.release = (lambda cold: None), (lambda: None), (lambda: None)
    harness.finish = lambda launch_seconds: left.pop(0)
    return harness


def test_a_host_that_stalled_once_is_asked_again():
    assert SAMPLE is holding(SAMPLE, None).timed(lambda: None, cold=True)
    assert SAMPLE is holding(None, SAMPLE).timed(lambda: None, cold=True)


def test_a_call_that_never_lets_the_stream_be_held_has_no_time():
    with pytest.raises(MeasurementInvalid, match="waits for the device"):
        holding(None, None, SAMPLE).timed(lambda: None, cold=True)
