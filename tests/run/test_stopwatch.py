"""Seconds by phase: nothing counts twice, and what is not timed counts as one."""

import pytest

from prism_bench.run.measuring import Stopwatch, phase, running


@pytest.fixture
def clock():
    """A clock that moves one second with each look."""
    seconds = iter(range(1000))
    return lambda: float(next(seconds))


def test_an_inner_phase_counts_for_itself_alone(clock):
    stopwatch = Stopwatch(True, clock)
    stopwatch.begin("kernel")
    stopwatch.begin("peer:torch")
    stopwatch.end()
    stopwatch.end()
    assert {"preparing": 2.0, "kernel": 2.0, "peer:torch": 1.0} == stopwatch.seconds()


def test_without_timing_every_phase_is_untimed(clock):
    stopwatch = Stopwatch(False, clock)
    stopwatch.begin("verifying")
    stopwatch.end()
    assert {"untimed": 3.0} == stopwatch.seconds()


def test_a_phase_that_raises_ends():
    with running(True) as stopwatch:
        with pytest.raises(ValueError, match="no"), phase("kernel"):
            raise ValueError("no")
        assert ["preparing"] == stopwatch._open


def test_outside_of_a_stopwatch_a_phase_counts_for_nothing():
    with running(True) as stopwatch:
        pass
    with phase("kernel"):
        assert ["preparing"] == stopwatch._open


def test_the_seconds_of_all_phases_of_a_run_are_within_its_duration(whole):
    record, _ = whole
    assert {"untimed", "timed"} <= record.spent.keys() <= {"compiling", "untimed", "timed"}
    assert sum(record.spent.values()) <= record.duration + 0.1
    seconds = [seconds for case in record.cases for phase, seconds in case.spent.items() if phase != "untimed"]
    assert 0 < sum(seconds) <= record.spent["timed"]
    assert all({"preparing", "kernel"} <= case.spent.keys() for case in record.cases if case.measurements)
    assert all({"untimed"} >= case.spent.keys() for case in record.cases if not case.measurements)
