"""The inspector on a harness that is played: late work, other streams, and what honest calls leave in peace."""

import threading
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from prism_bench.backends.cuda import inspection
from prism_bench.backends.cuda import timers as timers_module
from prism_bench.backends.cuda.inspection import Inspector, Operation
from prism_bench.backends.cuda.timers import ColdTimer, Harness, leftover_allowed
from prism_bench.errors import BackendUnavailable, MeasurementInvalid
from prism_bench.record.measurement import Sample


class Played:
    """A harness whose device works on for `busy` seconds after each try, and seems to for `without` after no work."""

    def __init__(self, busy=(0.0,), seconds=1e-3, without=0.0):
        self.stream = SimpleNamespace(ptr=7, synchronize=lambda: None)
        self._busy, self._seconds, self._without, self.heard = list(busy), seconds, without, []

    def afterwards(self, call, idle=0.0):
        """The call is made, and the device works on."""
        before = len(self.heard)
        call()
        if len(self.heard) == before:
            return 0.0, self._without
        return self._seconds, self._busy.pop(0) if len(self._busy) > 1 else self._busy[0]

    def nothing(self):
        """An empty kernel."""
        self.launched()

    def launched(self, stream=7):
        """Something goes to a stream."""
        self.heard.append(Operation("work", "cuLaunchKernel", stream))

    def timed(self, call, cold):
        """An empty kernel takes longer than nothing."""
        before = len(self.heard)
        call()
        return Sample(3e-6 if len(self.heard) > before else 2e-6)

    @contextmanager
    def listen(self):
        """What goes to any stream is heard."""
        yield self.heard

    def inspect(self, call, pause=lambda seconds: None):
        """What an inspector says of the call."""
        return Inspector(self, self.listen, pause).inspect(call)


def test_an_honest_call_is_left_in_peace():
    played = Played()
    assert (False, ()) == (lambda seen: (seen.nothing, seen.notes))(played.inspect(played.launched))


def test_one_quiet_try_of_five_is_enough():
    played = Played(busy=[1e-3, 1e-3, 1e-3, 1e-3, 0.0])
    assert not played.inspect(played.launched).nothing


def test_a_busy_host_is_no_evidence():
    played = Played(busy=[300e-6], without=200e-6)
    assert not played.inspect(played.launched).nothing


def test_a_device_that_works_on_is_found():
    played = Played(busy=[300e-6])
    with pytest.raises(MeasurementInvalid, match="worked for 300 us after the call was done"):
        played.inspect(played.launched)


def test_what_a_thread_enqueues_while_the_host_waits_is_found():
    played = Played()
    with pytest.raises(MeasurementInvalid, match="enqueues work after it has returned"):
        played.inspect(played.launched, pause=lambda seconds: played.launched())


def test_a_little_work_on_another_stream_is_found():
    played = Played()
    with pytest.raises(MeasurementInvalid, match="uses another stream"):
        played.inspect(lambda: (played.launched(), played.launched(8)))


def test_a_call_that_works_one_time_in_ten_is_found():
    played, count = Played(), []

    def seldom():
        count.append(1)
        if len(count) % 10 == 0:
            played.launched()

    with pytest.raises(MeasurementInvalid, match="enqueues nothing in 2[12] of 24 calls"):
        played.inspect(seldom)


def test_an_empty_call_is_called_empty():
    assert Played().inspect(lambda: None).nothing


def test_long_calls_are_made_a_few_times_only(monkeypatch):
    moments, played = iter(range(1000)), Played()
    monkeypatch.setattr(inspection, "perf_counter", lambda: float(next(moments)))
    played.inspect(played.launched)
    assert 1 + 1 + inspection.WATCHED == len(played.heard)


@pytest.mark.parametrize("deaf", [True, False])
def test_where_nobody_can_listen_the_result_says_so(deaf):
    played = Played()

    @contextmanager
    def listen():
        if deaf:
            raise BackendUnavailable("another tool listens")
        yield []

    seen = Inspector(played, listen, lambda seconds: None).inspect(played.launched)
    assert not seen.nothing
    assert "looked for by time alone" in seen.notes[0]


def test_threads_that_stay_are_told():
    played, end = Played(), threading.Event()
    seen = played.inspect(lambda: (played.launched(), threading.Thread(target=end.wait, daemon=True).start()))
    end.set()
    assert ("the call left threads running",) == seen.notes


def test_floors_are_of_nothing_and_of_an_empty_kernel():
    floors = Inspector(Played()).floors()
    assert (2e-6, 3e-6) == (floors.nothing, floors.launch)


def test_the_allowance_grows_with_the_call():
    """A host that waits for 15 ms wakes up later than one that waits for a microsecond."""
    assert leftover_allowed(15.4e-3) > 2 * 62e-6 > leftover_allowed(1e-6)
    assert ColdTimer(cold_harness(15.4e-3, 62e-6), lambda: None)
    with pytest.raises(MeasurementInvalid, match="the call uses another stream"):
        ColdTimer(cold_harness(320e-6, 62e-6), lambda: None)


def test_what_a_library_does_after_a_call_that_does_nothing_is_no_work_of_another_stream():
    call, least = object(), object()
    busy = {call: (320e-6, 180e-6), least: (20e-6, 70e-6)}
    harness = SimpleNamespace(afterwards=busy.__getitem__, forget_persisting=lambda: None)
    assert ColdTimer(harness, call, least=least)
    busy[least] = (20e-6, 20e-6)
    with pytest.raises(MeasurementInvalid, match="the call uses another stream"):
        ColdTimer(harness, call, least=least)


def cold_harness(seconds, leftover):
    return SimpleNamespace(afterwards=lambda call: (seconds, leftover), forget_persisting=lambda: None)


class Clock:
    """A host's clock and a device: work that is enqueued at a moment keeps it busy from then on."""

    def __init__(self, monkeypatch, *work, call=300e-6):
        self.now, self.work, self._call = 0.0, list(work), call
        monkeypatch.setattr(timers_module, "perf_counter", lambda: self.now)

    def synchronize(self):
        """A question takes 5 us, and as long as the work that has begun by then."""
        self.now += 5e-6
        for begin, seconds in self.work:
            if begin <= self.now < begin + seconds:
                self.now = begin + seconds

    def afterwards(self, idle):
        """What the harness says of a call."""
        made = Harness.__new__(Harness)
        made._functions = SimpleNamespace(synchronize=self.synchronize)
        made.stream = SimpleNamespace(synchronize=lambda: setattr(self, "now", self.now + self._call))
        return made.afterwards(lambda: None, idle)


def test_the_device_is_watched_longer_than_a_sample(monkeypatch):
    """Work that begins 2 ms after the call, or after a long call's own time, is seen; before, it was not."""
    assert (300e-6, 0.0) == pytest.approx(Clock(monkeypatch).afterwards(5e-3), abs=1e-9)
    assert 320e-6 == pytest.approx(Clock(monkeypatch, (2.3e-3, 320e-6)).afterwards(5e-3)[1], rel=0.05)
    assert 20e-3 == pytest.approx(Clock(monkeypatch, (30e-3, 20e-3), call=20e-3).afterwards(5e-3)[1], rel=0.05)
    assert 0.0 == pytest.approx(Clock(monkeypatch, (2.3e-3, 320e-6)).afterwards(0.0)[1], abs=1e-9)


def test_work_on_another_stream_at_the_end_is_seen_without_waiting(monkeypatch):
    assert 500e-6 == pytest.approx(Clock(monkeypatch, (10e-6, 795e-6)).afterwards(0.0)[1], rel=0.05)
