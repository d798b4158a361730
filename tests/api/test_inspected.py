"""A callable measured on a backend that is played: which samples make a time, and which make a refusal."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from prism_bench.api.callables import STEPS, TimedCallable, measured
from prism_bench.backends.cuda.device import DeviceBounds
from prism_bench.backends.cuda.inspection import Floors, Inspection
from prism_bench.errors import MeasurementInvalid
from prism_bench.record.measurement import Sample

H200 = DeviceBounds(132, 90, 1.98e9, 50_000_000, 4.8e12)


class Played:
    """A device on which cold, hot and warm launches take the seconds that are given, in turn."""

    def __init__(self, cold=(320e-6,), hot=(310e-6,), warm=(315e-6,), *, inspection=None, pinned=False):
        self._inspection = inspection or Inspection()
        self._cold, self._hot, self._warm = ((_turns(seconds)) for seconds in (cold, hot, warm))
        self.harness = SimpleNamespace(
            ordinary_cache=lambda: nullcontext(SimpleNamespace(is_used=pinned)),
            timed=lambda call, cold: Sample(next(self._warm)),
        )

    def callable_timers(self, call, library):
        """Timers that read the turns."""
        turns = {"cold_time": self._cold, "hot_time": self._hot}
        return {metric: lambda turn=turn: lambda: Sample(next(turn), 1.98e9) for metric, turn in turns.items()}

    def inspector(self):
        """An inspector that has nothing to say."""
        return SimpleNamespace(inspect=lambda call: self._inspection, floors=lambda: Floors(2e-6, 3e-6))

    def bounds(self):
        """An H200."""
        return H200

    def time(self, metric="cold_time", **claims):
        """The callable's time."""
        return measured(self, "cupy", TimedCallable(lambda: None, metric, "call", **claims))


def _turns(seconds):
    while True:
        yield from seconds


@pytest.mark.parametrize(("metric", "seconds"), [("cold_time", 320e-6), ("hot_time", 310e-6)])
def test_an_honest_call_has_its_time_and_no_notes(metric, seconds):
    found = Played().time(metric, bytes=805_306_368, flops=67_108_864)
    assert (seconds, True, ()) == (pytest.approx(found.median), found.valid, found.notes)
    assert len(found.samples) >= 24


@pytest.mark.parametrize(
    ("device", "metric", "claims", "words"),
    [
        (Played(cold=[2.9e-6] * 9 + [320e-6]), "cold_time", {}, "two levels"),
        (Played(hot=[2.9e-6] * 9 + [320e-6]), "hot_time", {}, "two levels|does not do"),
        (Played(cold=[2.1e-6], warm=[2e-6]), "cold_time", {}, "at launch overhead: nothing to time"),
        (Played(cold=[2.1e-6], hot=[1e-7]), "hot_time", {}, "at launch overhead: nothing to time"),
        (Played(hot=[1.47e-6]), "hot_time", {}, "1.47 us hot and 320 us cold"),
        (Played(cold=[20e-6]), "cold_time", {}, "the call does less when timed"),
        (Played(cold=[3e-6], hot=[64e-6]), "hot_time", {}, "the call does less when timed"),
        (Played(), "cold_time", {"bytes": 10**10}, "4.80 TB/s at most"),
        (Played(), "hot_time", {"bytes": 10**10}, "in addition to the 50.0 MB"),
        (Played(), "cold_time", {"flops": 10**15}, "at most, of any type"),
        (Played(), "hot_time", {"flops": 10**15}, "at most, of any type"),
        (Played(cold=[3e-6] * 9 + [180e-6], hot=[19e-6]), "hot_time", {}, "two levels"),
        (Played(pinned=True), "cold_time", {}, "sets a part of L2 aside"),
    ],
)
def test_each_lie_is_refused(device, metric, claims, words):
    with pytest.raises(MeasurementInvalid, match=words):
        device.time(metric, **claims)


def test_a_single_odd_sample_is_no_lie_and_more_are_taken():
    found = Played(cold=[320e-6] * 20 + [900e-6] + [320e-6] * 10_000).time()
    assert found.notes == ()
    assert len(found.samples) > 60


def test_a_second_odd_sample_is_found_by_taking_more():
    with pytest.raises(MeasurementInvalid, match="two levels"):
        Played(cold=[320e-6] * 20 + [3e-6] + [320e-6] * 20 + [3e-6] + [320e-6] * 10_000).time()


def test_levels_of_the_same_work_and_what_could_not_be_seen_are_noted():
    inspection = Inspection(notes=("other streams were looked for by time alone: why",))
    found = Played(cold=[320e-6, 480e-6], inspection=inspection).time()
    assert "other streams were looked for by time alone: why" == found.notes[0]
    assert found.notes[1].startswith("two levels: ")


def test_a_call_near_the_overhead_says_so():
    assert "near launch overhead: an empty kernel takes 3.00 us" == Played(cold=[3.4e-6], warm=[3e-6]).time().notes[0]


@pytest.mark.parametrize("metric", ["cold_time", "hot_time"])
def test_a_measurement_takes_the_steps_that_it_announces(metric):
    steps = []
    measured(Played(), "cupy", TimedCallable(lambda: None, metric, "call"), steps.append)
    assert STEPS == len(steps) == len(set(steps))
