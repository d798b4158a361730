"""Energy of one launch, on a device whose power and counter are played: the truth is known."""

import pytest

from prism_bench.monitor.sampler import EnergyPrecision, energy_per_launch

EACH = 2e-6  # seconds of one launch


class Played:
    """A device at `watts` from the start whose counter moves every `step` seconds; each replay takes `chunk`."""

    def __init__(self, watts=500.0, step=0.02, chunk=1e-3, lag=0.007):
        self.watts, self.step, self.chunk, self.lag, self.now = watts, step, chunk, lag, 0.0

    def clock(self):
        return self.now

    def counter(self):
        steps = (self.now + self.lag) // self.step
        return round(1e6 + self.watts * steps * self.step, 3)

    def replays(self):
        launches = 0
        while True:
            self.now += self.chunk
            launches += round(self.chunk / EACH)
            yield launches


def energy(played, **patience):
    return energy_per_launch(played.replays(), played.counter, EnergyPrecision(**patience), played.clock)


@pytest.mark.parametrize("step", [0.02, 0.05, 0.1])
@pytest.mark.parametrize("watts", [80.0, 650.0])
def test_the_energy_is_right_within_its_own_uncertainty(step, watts):
    found = energy(Played(watts, step))
    assert abs(found.joules - watts * EACH) <= found.uncertainty
    assert found.uncertainty < 0.1 * found.joules
    assert found.window >= 2 * step * 0.99


def test_it_ends_as_soon_as_it_is_certain_enough():
    played = Played(step=0.02)
    found = energy(played, precision=0.02)
    assert found.uncertainty <= 0.02 * found.joules
    assert played.now < 0.3
    assert 0.3 <= (patient := Played(step=0.02)).now + _ran(patient)


def _ran(played):
    energy(played, precision=0.0)
    return played.now


@pytest.mark.parametrize(
    ("played", "reason"),
    [
        (Played(step=5.0), "the energy counter did not move in 0.3 s of repetition"),
        (Played(step=0.2), "the energy counter moved once in 0.3 s of repetition"),
        (Played(step=0.1, chunk=0.2), "in 0.4 s of repetition, too coarse for one launch"),
    ],
)
def test_a_window_that_is_too_short_gives_none_and_the_reason(played, reason):
    found = energy(played)
    assert (None, None) == (found.joules, found.uncertainty)
    assert reason in found.reason


def test_without_a_counter_there_is_a_reason():
    assert "this device has no energy counter" == energy_per_launch(iter([1]), lambda: None).reason
    values = iter([5.0, None])
    assert "does not answer any more" in energy_per_launch(iter([1]), lambda: next(values)).reason
    assert "could not be repeated" in energy_per_launch(iter([]), lambda: 1.0).reason
