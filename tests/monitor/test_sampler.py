"""The beat, its bounded ring, its own cost, and what becomes of it when the device goes away and comes back."""

from collections import deque
from threading import Event
from time import sleep

import pytest

from prism_bench.errors import BackendUnavailable
from prism_bench.monitor import sampling, watched
from prism_bench.monitor.sampler import Sampler, pace
from tests.monitor.conftest import HOPPER

UUID = HOPPER["uuid"]


def everything(found):
    return found


def until(condition):
    """Wait for what another thread is about to do."""
    for _ in range(2000):
        if condition():
            return True
        sleep(0.005)
    return False


def test_it_beats_by_itself_in_a_thread_and_counts_its_cost(gpu):
    with sampling(everything, hertz=200, full=False) as sampler:
        assert until(lambda: sampler.cost().beats >= 3)
    cost = sampler.cost()
    assert 0 < cost.cpu_seconds < cost.seconds
    assert cost.cpu_seconds / cost.seconds == cost.share
    assert 0 < cost.longest
    assert 0 < cost.xid_seconds < cost.cpu_seconds
    assert cost == sampler.cost(), "it went on after its end"


@pytest.mark.parametrize(
    ("costs", "period"), [([0.0004] * 20, 0.05), ([0.002] * 20, 0.2), ([0.0] * 19 + [0.02], 0.1), ([0.05] * 19, 0.05)]
)
def test_the_beat_slows_where_it_would_cost_more_than_its_budget(costs, period):
    assert period == pytest.approx(pace(deque(costs, maxlen=20), 0.05))


def test_readings_are_stamped_by_the_samples_clock(gpu):
    from time import perf_counter

    before = perf_counter()
    with sampling(everything, hertz=200, full=False) as sampler:
        assert until(lambda: sampler.latest())
    assert before < sampler.latest().at < perf_counter()


def test_the_ring_is_bounded(gpu):
    with sampling(everything, hertz=10, full=False, threaded=False) as sampler:
        made = Sampler(lambda: sampler.probes, hertz=10, kept_seconds=0.5)
        for _ in range(20):
            made.beat()
        assert 5 == len(made.readings(0.0, float("inf")))


def test_a_window_carries_its_readings(gpu):
    with sampling(everything, hertz=1, full=False, threaded=False) as sampler:
        sampler.beat()
        with sampler.window() as window:
            for clock in (1500, 1980, 1900):
                gpu.set(0, sm_clock=clock)
                sampler.beat()
    assert (4, (1.5e9, 1.9e9, 1.98e9)) == (window.evidence.readings, window.evidence.spans["sm_clock"])


def test_what_no_beat_of_a_window_read_is_read_at_its_end_and_only_that(gpu):
    with sampling(everything, hertz=1, full=False, threaded=False) as sampler:
        sampler.beat()
        gpu.set(0, temperature=66)
        with sampler.window() as window:
            sampler.beat()
            gpu.set(0, sm_clock=300)
    assert (2, (1.98e9,) * 3) == (window.evidence.readings, window.evidence.spans["sm_clock"])
    assert 66 == window.evidence.highest("temperature")


def test_what_grew_ahead_of_a_window_is_not_told_in_it(gpu, monkeypatch):
    monkeypatch.setattr("prism_bench.monitor.sampler._FRESH", 0.0)
    with sampling(everything, hertz=1, full=False, threaded=False) as sampler:
        sampler.beat()
        gpu.set(0, ecc_uncorrected=2, power_throttled=5_000_000_000)
        with sampler.window() as calm:
            pass
        with sampler.window() as window:
            gpu.set(0, ecc_uncorrected=3, power_throttled=5_250_000_000)
    assert ((), {}) == (calm.evidence.events, calm.evidence.throttled)
    assert ("1 uncorrected memory error",) == window.evidence.events
    assert {"power": 0.25} == window.evidence.throttled


def test_a_window_shorter_than_a_beat_is_read_at_its_end(gpu):
    with sampling(everything, hertz=1, full=False, threaded=False) as sampler:
        with sampler.window() as window:
            pass
    assert (1, (1.98e9,) * 3) == (window.evidence.readings, window.evidence.spans["sm_clock"])


def test_a_device_lost_in_a_window_says_since_when_and_what_was_read_stays(gpu):
    with sampling(everything, hertz=1, full=False, threaded=False) as sampler:
        with sampler.window() as window:
            sampler.beat()
            gpu.set(0, lost=1)
            sampler.beat()
            sampler.beat()
    assert window.evidence.lost.startswith("lost at ")
    assert window.evidence.lost.endswith(" UTC: GPU is lost")
    assert 1 == window.evidence.readings


def test_a_device_that_comes_back_is_read_again(gpu):
    clock = iter(float(step) for step in range(1000))
    with sampling(everything, hertz=1, full=False, threaded=False) as inner:
        prepare, opened = inner._prepare, []
        sampler = Sampler(lambda: opened.append(1) or prepare(), clock=lambda: next(clock))
        gpu.set(0, lost=1)
        sampler.beat()
        assert sampler.lost()
        gpu.set(0, lost=0)
        sampler.beat()
        sampler.beat()
    assert sampler.lost() is None
    assert sampler.latest().values["temperature"] == 41
    assert 2 == len(opened)


def test_a_driver_that_restarts_is_opened_again(gpu):
    clock = iter(float(step) for step in range(1000))
    with sampling(everything, hertz=1, full=False, threaded=False) as inner:
        sampler = Sampler(inner._prepare, clock=lambda: next(clock))
        gpu.library(init="!9")
        for _ in range(3):
            sampler.beat()
        assert "Driver Not Loaded" in sampler.lost()
        gpu.library(init="0")
        for _ in range(3):
            sampler.beat()
    assert sampler.lost() is None


def test_one_lost_device_leaves_the_others_alone(gpu):
    gpu.add(uuid="GPU-99999999-2222-3333-4444-555555555555", temperature=60)
    with sampling(everything, hertz=1, full=False, threaded=False) as sampler:
        gpu.set(0, lost=1)
        sampler.beat()
    assert sampler.lost(0) and not sampler.lost(1)
    assert 60 == sampler.latest(1).values["temperature"]


def test_whatever_a_driver_in_trouble_raises_ends_no_run(gpu):
    with sampling(everything, hertz=1, full=False, threaded=False) as sampler:

        def breaks(now):
            raise ValueError("nonsense from the driver")

        sampler.probes[0].read = breaks
        with sampler.window() as window:
            sampler.beat()
    assert "ValueError: nonsense from the driver" in window.evidence.lost


def test_a_call_that_hangs_in_the_driver_holds_up_nobody(gpu, monkeypatch):
    monkeypatch.setattr("prism_bench.monitor.sampler.PATIENCE", 0.05)
    hanging = Event()
    with sampling(everything, hertz=200, full=False) as sampler:
        assert until(lambda: sampler.latest())
        sampler.probes[0].read = lambda now: hanging.wait(5.0)
        assert until(lambda: sampler._reading.locked())
        sleep(0.02)
        with sampler.window() as window:
            pass
    hanging.set()
    assert window.evidence.lost.endswith("the driver did not answer within 0.05 s")


def test_xids_are_told_in_the_window_they_fell_into(gpu):
    with sampling(everything, hertz=200, full=False) as sampler:
        with sampler.window() as calm:
            pass
        with sampler.window() as window:
            gpu.set(0, xid=79)
            assert until(lambda: sampler.xids(0.0, float("inf")))
    assert ((), ("Xid 79",)) == (calm.evidence.events, window.evidence.events)
    assert sampler.xids_missing is None


def test_a_measuring_process_watches_the_device_of_its_backend(gpu):
    gpu.add(uuid="GPU-99999999-2222-3333-4444-555555555555", temperature=60)
    with watched("99999999222233334444555555555555") as sampler:
        with sampler.window() as window:
            pass
    assert 60 == window.evidence.highest("temperature")


def test_without_a_device_there_is_no_evidence(gpus):
    with watched(None) as blind:
        with blind.window() as window:
            pass
    assert window.evidence is None


@pytest.mark.parametrize(
    ("state", "words"), [({"init": "!9"}, "Driver Not Loaded"), ({"devices": 0}, "lists no device")]
)
def test_a_device_that_cannot_be_watched_says_why_in_its_evidence(gpu, state, words):
    gpu.library(**state)
    with watched(UUID) as blind:
        with blind.window() as window:
            pass
    assert 0 == window.evidence.readings
    assert words in window.evidence.missing["readings"]


def test_a_sampler_without_nvml_is_refused_in_one_line(gpu):
    gpu.library(init="!12")
    with pytest.raises(BackendUnavailable, match="Not Found"), sampling(everything, hertz=1, full=True):
        pass
