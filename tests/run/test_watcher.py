"""What was disturbed is measured again within limits; what stays in doubt is invalid and says why."""

from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, count, repeat
from types import SimpleNamespace

import pytest
from msgspec import structs

from prism_bench.errors import MeasurementInvalid
from prism_bench.monitor import Blind, Rules
from prism_bench.monitor.nvml import DeviceLost
from prism_bench.monitor.played_board import PlayedBoard
from prism_bench.record.measurement import Evidence, Measurement
from prism_bench.run import Settings
from prism_bench.run.measuring import DeviceWatcher

WELL = Evidence(0.3, 6, spans={"sm_clock": (1.9e9, 1.98e9, 1.98e9)})
HOT = structs.replace(WELL, reasons={"hw thermal": 1.0})
HOT_WORDS = "throttled throughout: hw thermal"


class Played:
    """A sampler whose windows see what was planned; the last plan stays."""

    def __init__(self, *seen, probes=()):
        self._seen, self.probes = list(seen), list(probes)

    @contextmanager
    def window(self):
        yield SimpleNamespace(evidence=self._seen.pop(0) if len(self._seen) > 1 else self._seen[0])


class Counted:
    """A measurement that counts how often it was made."""

    def __init__(self, metric="hot_time", **facts):
        self.times, self._metric, self._facts = 0, metric, facts

    def __call__(self):
        self.times += 1
        found = [Measurement(self._metric, "kernel", ((float(self.times),),), **self._facts)]
        return [*found, replace(found[0], metric="launch_time")] if self._metric == "cold_time" else found


def witness(*seen, clock=lambda: 0.0, **rules):
    return DeviceWatcher(Played(*seen), Rules(**rules), pause=lambda seconds: None, clock=clock)


def test_calm_is_measured_once_and_carries_its_evidence():
    made = Counted()
    (one,) = witness(WELL).watched(made)
    assert (1, True, (WELL,), ()) == (made.times, one.valid, one.evidence, one.notes)


def test_without_a_sampler_nothing_is_added():
    assert [Measurement("hot_time", "kernel", ((1.0,),))] == DeviceWatcher().watched(Counted())


def test_what_was_disturbed_is_measured_again_and_a_note_tells():
    made = Counted()
    (one,) = witness(HOT, WELL).watched(made)
    assert (2, (2.0,), True, (WELL,)) == (made.times, one.samples, one.valid, one.evidence)
    assert (f"measured again, because {HOT_WORDS}",) == one.notes


def test_what_stays_disturbed_keeps_its_samples_and_its_reason():
    made = Counted()
    (one,) = witness(HOT, repeats=2).watched(made)
    assert (3, (3.0,), False, HOT_WORDS) == (made.times, one.samples, one.valid, one.reason)
    assert 2 == len(one.notes)


def test_the_patience_of_a_process_ends():
    ticks = iter(range(0, 1000, 10))
    patient = witness(HOT, repeats=2, patience=25.0, clock=lambda: float(next(ticks)))
    made = [Counted() for _ in range(4)]
    for one in made:
        patient.watched(one)
    assert [3, 2, 1, 1] == [one.times for one in made]


def test_the_hosts_cost_stays_valid():
    cold, launch = witness(HOT, repeats=0).watched(Counted("cold_time"))
    assert (False, True, None) == (cold.valid, launch.valid, launch.reason)
    assert (HOT,) == launch.evidence


@pytest.mark.parametrize(
    ("metric", "clocks", "valid"),
    [("hot_time", (), False), ("hot_time", ((1.2e9,),), True), ("end_to_end_time", (), True)],
)
def test_the_drivers_clock_counts_where_the_samples_have_none_and_the_device_does_the_work(metric, clocks, valid):
    slow = structs.replace(WELL, spans={"sm_clock": (1.2e9, 1.2e9, 1.2e9)})
    watching = witness(WELL, slow, repeats=0)
    watching.watched(Counted())
    (one,) = watching.watched(Counted(metric, clocks=clocks))
    assert valid == one.valid


def test_a_device_lost_on_the_way_marks_the_measurement_and_keeps_it():
    lost = structs.replace(WELL, lost="lost at 12:00:00 UTC: GPU is lost")
    made = Counted()
    (one,) = witness(lost).watched(made)
    assert (1, True, ("evidence lost at 12:00:00 UTC: GPU is lost",)) == (made.times, one.valid, one.notes)


def test_what_was_invalid_for_another_reason_keeps_that_reason():
    (one,) = witness(HOT, repeats=0).watched(Counted(valid=False, reason="the clock never came back"))
    assert "the clock never came back" == one.reason


def test_an_empty_cell_is_not_measured_again():
    made = Counted()
    empty = lambda: made() and [Measurement("hot_time", "kernel", (), valid=False, reason="no graphs")]  # noqa: E731
    assert "no graphs" == witness(HOT).watched(empty)[0].reason
    assert 1 == made.times


class Repeatable:
    """A timer that can repeat its launch; remembers that it was let go."""

    rests, replay_seconds = False, 4e-4

    def repeated(self):
        try:
            while True:
                yield 1
        finally:
            self.rests = True


CRITERION = Settings().criteria["energy"]


def energy(once, *probes, reason=None):
    """What a watcher with these probes, or a blind one, measures; a probe has no power."""
    probes = [SimpleNamespace(power=dict, **{"device": SimpleNamespace(is_slice=False), **probe}) for probe in probes]
    return DeviceWatcher(Played(WELL, probes=probes) if probes else Blind(reason)).energy(once, CRITERION)


def test_energy_needs_somebody_who_watches_and_a_kernel_that_repeats():
    assert [] == energy(Repeatable())
    assert [] == energy(lambda: None, {})
    (one,) = energy(Repeatable(), reason="nvidia-ml-py is not installed")
    assert ("no energy counter: nvidia-ml-py is not installed", True) == (one.energy.reason, one.valid)


def test_energy_of_a_slice_is_not_told():
    (one,) = energy(Repeatable(), {"device": SimpleNamespace(is_slice=True)})
    assert "whole GPU's" in one.energy.reason


def test_energy_of_a_kernel_that_takes_too_long_is_not_told():
    slow = Repeatable()
    slow.replay_seconds = 2.0
    assert "takes 2.00 s, longer" in energy(slow, {})[0].reason


def test_energy_of_a_device_that_paused_is_not_told():
    class Pausing(Repeatable):
        def repeated(self):
            yield 1
            raise MeasurementInvalid("the device ran out of launches while somebody looked at it")

    joules = count(5)
    assert "ran out of launches" in energy(Pausing(), {"energy": lambda: next(joules)})[0].reason


def test_the_kernel_rests_whatever_becomes_of_the_counter():
    def gone():
        raise DeviceLost("GPU is lost")

    assert "lost: GPU is lost" == energy(Repeatable(), {"energy": gone})[0].reason
    once, joules = Repeatable(), chain(range(400), repeat("no permission to read it"))
    assert "does not answer any more: no permission" in energy(once, {"energy": lambda: next(joules)})[0].reason
    assert once.rests


class OnBoard(Repeatable):
    """A timer of a board that is played; its counter shows `gain` times the energy."""

    def __init__(self, gain=1.0):
        self.board = PlayedBoard(gain=gain)
        self.repeated = self.board.repeated


def test_an_energy_has_evidence_and_is_measured_again_while_in_doubt():
    (one,) = DeviceWatcher(Played(WELL)).energy(OnBoard(), CRITERION)
    assert ("energy", True, (WELL,)) == (one.metric, one.valid, one.evidence)
    seen = []
    watching = DeviceWatcher(Played(WELL), Rules(repeats=2), pause=seen.append)
    (one,) = watching.energy(OnBoard(gain=2.0), CRITERION)
    assert (False, 2) == (one.valid, len(seen))
    assert "integrated power" in one.reason
