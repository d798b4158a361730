"""Timed launches are looked at: by places, whole, by the clock; on a device that is played, and by scripted kernels."""

import json
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from prism_bench import elementwise
from prism_bench.backends import Runnable
from prism_bench.backends.base import HostGuard
from prism_bench.backends.null import NullBackend
from prism_bench.catalogue import discover
from prism_bench.errors import MeasurementInvalid
from prism_bench.record.measurement import Sample
from prism_bench.record.run_record import decode, encode
from prism_bench.report.plain import checks_of
from prism_bench.run.measuring import TimedLaunches, TimedLaunchWrong

CASE = discover(Path(__file__).parent.parent / "toys").case("double[n=1000]")
STEP, LAUNCH = 2e-6, 50e-6


class Played(Runnable):
    """A device with one array in and one out, whose launches take as long as `kernel` says; it may leave y alone."""

    def __init__(self, kernel):
        self.case, self.inputs, self._kernel = CASE, CASE.inputs(0), kernel
        self.x = np.array(self.inputs["x"].on(np))
        self.y = np.empty_like(self.x)
        self._spent = 0.0
        self.y[...] = 2 * self.x

    def __call__(self):
        self._spent += self._kernel(self.x, self.y)

    def reset(self, inputs):
        raise AssertionError("nobody lays inputs out again while something is timed")

    def arrays(self, names):
        return {name: getattr(self, name) for name in names}

    def guard(self, key):
        return HostGuard({"y": self.y}, inputs=[self.x], key=key)

    def timed(self, call=None, times=1):
        self._spent = 0.0
        for _ in range(times):
            (call or self)()
        return self._spent / times

    def replayed(self, call, times):
        def both():
            self._spent += STEP
            call()

        return lambda: self.timed(both, times)

    def cold(self):
        return Sample(self.timed())

    def hot(self):
        return Sample(self.timed(times=20))


def honest(x, y):
    y[...] = 2 * x
    return LAUNCH


def keeping():
    """Quick where the input is that of the launch before."""
    last = [b""]

    def launch(x, y):
        known, last[0] = last[0] == x.tobytes(), x.tobytes()
        return honest(x, y) / (5 if known else 1)

    return launch


def resting(x, y):
    """Quick, and nothing is written, where all is as it must be."""
    if (y == 2 * x).all():
        return LAUNCH / 50
    return honest(x, y)


def nearly():
    """Right, but the last bit of every value is another in each launch."""
    turns = iter(range(10**6))

    def launch(x, y):
        y[...] = 2 * x
        y.view(np.uint32)[...] ^= next(turns) & 1
        return LAUNCH

    return launch


def series(kernel, metric="cold_time", count=40, seed=1, case=CASE):
    played = Played(kernel)
    played.case = case
    launches = TimedLaunches(NullBackend(), played, 0, Random(seed))
    timer = launches.watched(metric, played.cold if metric == "cold_time" else played.hot)
    samples = [timer() for _ in range(count)]
    return samples, timer.finish(), launches, played


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("metric", ["cold_time", "hot_time"])
def test_an_honest_kernel_keeps_its_times(metric, seed):
    samples, reason, launches, played = series(honest, metric, seed=seed)
    assert (40, None, True) == (len(samples), reason, launches.repeatable)
    assert played.x.tobytes() == CASE.inputs(0)["x"].on(np).tobytes()


def test_one_that_keeps_results_has_no_cold_time():
    reason = series(keeping())[1]
    assert reason == (
        "it keeps results: a launch on inputs that it has seen takes 10.0 us, "
        "one on inputs that differ in one bit, with cleared scratch, 50.0 us"
    )


def test_one_that_rests_in_a_graph_has_no_hot_time():
    assert series(resting)[1] is None
    reason = series(resting, "hot_time")[1]
    assert reason.startswith(
        "it does less where nothing changed: a launch in a graph takes 3.45 us, one that finds its "
    )
    assert reason.endswith("outputs spoiled and an input changed 50.0 us")


@pytest.mark.parametrize("metric", ["cold_time", "hot_time"])
@pytest.mark.parametrize("begin", [0, 3, 17, 39])
def test_one_that_stops_working_is_wrong_from_that_sample_on(metric, begin):
    left = [begin * (1 if metric == "cold_time" else 20)]

    def idle(x, y):
        left[0] -= 1
        return honest(x, y) if left[0] >= 0 else 1e-6

    with pytest.raises(TimedLaunchWrong) as caught:
        series(idle, metric)
    entry = caught.value.entry
    assert (metric, "y", 0, False) == (entry["metric"], entry["output"], entry["seed"], entry["passed"])
    assert begin + 1 == entry["sample"]


def test_a_kernel_within_its_tolerance_is_right_though_its_bits_differ():
    tolerant = replace(CASE, spec=replace(CASE.spec, tolerance=elementwise()))
    for metric in ("cold_time", "hot_time"):
        _, reason, launches, _ = series(nearly(), metric, case=tolerant)
        assert (None, False) == (reason, launches.repeatable)


def test_beyond_its_tolerance_it_is_wrong():
    with pytest.raises(TimedLaunchWrong, match="y is wrong"):
        series(nearly())


def test_one_element_that_is_left_out_is_found_by_the_whole_comparison():
    def sloppy(x, y):
        y[:-1] = 2 * x[:-1]
        return LAUNCH

    entry = pytest.raises(TimedLaunchWrong, series, sloppy).value.entry
    assert [999] == entry["place"]


def test_a_process_that_does_not_verify_begins_with_a_right_launch_where_that_is_cheap():
    played = Played(honest)
    TimedLaunches(NullBackend(), played, 0).require_right()
    played.y[3] += 1
    with pytest.raises(TimedLaunchWrong) as caught:
        TimedLaunches(NullBackend(), played, 0).require_right()
    assert ([3], 1) == (caught.value.entry["place"], caught.value.entry["differing"])


def test_what_leaves_nothing_to_look_at_is_timed_as_it_is():
    class Blind(Played):
        def guard(self, key):
            return None

    played = Blind(lambda x, y: 1e-6)
    timer = TimedLaunches(NullBackend(), played, 0, Random(1)).watched("cold_time", played.cold)
    assert (1e-6, None) == (timer().seconds, timer.finish())


def test_a_sample_that_cannot_be_had_leaves_the_inputs_right():
    """The next metric is measured on them."""
    device, refused = Played(honest), []

    def cold():
        if refused:
            return device.cold()
        refused.append(device.timed())
        raise MeasurementInvalid("the host stalled")

    launches = TimedLaunches(NullBackend(), device, 0, Random(1))
    for _ in range(20):
        refused.clear()
        once = launches.watched("cold_time", cold)
        with pytest.raises(MeasurementInvalid):
            once()
        assert (device.x == device.inputs["x"].on(np)).all()


def test_without_outputs_nothing_is_looked_at_and_no_graph_is_captured():
    class Silent(Played):
        def guard(self, key):
            return HostGuard({"y": self.y[:0]}, inputs=[self.x], key=key)

        def replayed(self, call, times):
            raise AssertionError("a step that enqueues nothing cannot be captured")

    played = Silent(lambda x, y: 1e-6)
    timer = TimedLaunches(NullBackend(), played, 0, Random(1)).watched("hot_time", played.hot)
    assert [1e-6] * 3 == pytest.approx([timer().seconds for _ in range(3)])
    assert timer.finish() is None


def test_a_graph_of_one_launch_is_not_captured_again():
    class Long(Played):
        def replayed(self, call, times):
            raise AssertionError("each of its launches was looked at")

    class Once:
        launches = 1

        def __init__(self, played):
            self._played = played

        def __call__(self):
            return self._played.cold()

    played = Long(honest)
    timer = TimedLaunches(NullBackend(), played, 0, Random(1)).watched("hot_time", Once(played))
    assert LAUNCH == timer().seconds
    assert timer.finish() is None


def test_what_cannot_be_looked_at_in_a_graph_is_not_trusted():
    class Uncapturable(Played):
        def replayed(self, call, times):
            raise MeasurementInvalid("the call cannot be captured")

    played = Uncapturable(honest)
    timer = TimedLaunches(NullBackend(), played, 0, Random(1)).watched("hot_time", played.hot)
    timer()
    assert timer.finish() == "its launches could not be checked in a graph: the call cannot be captured"


def test_a_record_and_its_report_say_which_timed_launch_was_wrong(play):
    record = play({"double*": {"idles": True}}, filters=("double",), processes=2)
    kept = decode(json.loads(json.dumps(encode(record), allow_nan=False)), "the test")
    case = next(one for one in kept.cases if one.name == "double[n=1000]")
    assert ("wrong", ()) == (case.status, case.measurements)
    assert "in sample 1 of cold_time, though it was right when it was verified" in case.reason
    (check,) = (one for one in checks_of(case) if not one.passed)
    assert " in sample 1 of cold_time, the reference has " in check.words
