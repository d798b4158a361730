"""A kernel that tunes itself: what is launched and told, with times from a clock of our own."""

from pathlib import Path

import numpy as np
import pytest

from prism_bench.api.kernels import OnlineRunnable, stopwatch_of
from prism_bench.backends.null import NullBackend
from prism_bench.catalogue import discover
from prism_bench.workflows.tuning.search import OnlineTuner

CASE = discover(Path(__file__).parent.parent / "tunable").case("tripled[n=1000]")
TIMES = {(128, 1): 2.0, (128, 2): 3.0, (64, 1): 1.0, (64, 2): 4.0, (256, 1): 5.0}


@pytest.fixture
def online():
    """The runnable, the configurations that it launched, and its tuner."""
    launched, tuner = [], OnlineTuner()

    def stopwatch(runnable):
        runnable()
        launched.append((runnable.case.axes["block"], runnable.case.axes["items"]))
        return TIMES[launched[-1]]

    with OnlineRunnable(NullBackend(), CASE, tuner, stopwatch) as runnable:
        yield runnable, launched, tuner


def test_it_launches_everything_three_times_and_then_the_best(online):
    runnable, launched, tuner = online
    for _ in range(20):
        runnable()
    assert list(TIMES) * 3 + [(64, 1)] * 5 == launched
    assert {"block": 64, "items": 1} == tuner.best("tripled", {"n": 1000})
    assert {"kernels_tuned": 1, "measurements": 5, "executions": 20, "mean_speedup": 2.0} == tuner.statistics()


def test_its_arrays_are_those_of_the_last_launch_and_right_in_every_configuration(online):
    runnable, *_ = online
    inputs = CASE.inputs(1)
    runnable.reset(inputs)
    for _ in TIMES:
        runnable()
        assert np.array_equal(3 * inputs["x"].on(np), runnable.arrays(["y"])["y"])


def test_without_a_device_its_stopwatch_is_the_wall_clock():
    assert 0 <= stopwatch_of(NullBackend())(lambda: None) < 1
