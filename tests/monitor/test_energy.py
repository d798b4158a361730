"""Energy of one launch, on a board that is played: the truth is known, and no time passes."""

from itertools import product
from statistics import fmean

import pytest

from prism_bench.monitor.energy import IdlePower, energy_per_launch
from prism_bench.monitor.nvml import DeviceLost
from prism_bench.monitor.played_board import PlayedBoard
from prism_bench.run import Settings

CRITERION = Settings().criteria["energy"]
STEPS = (0.02, 0.05, 0.1)


def measured(board=None, **changes):
    board = board or PlayedBoard(**changes)
    return energy_per_launch(board.repeated(), board, CRITERION, clock=board.clock, pause=board.pause)


def runs(count, first=0, **changes):
    """Energies of that many runs of one kernel, each with its own noise."""
    return [measured(seed=seed, **changes).energy for seed in range(first, first + count)]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("watts", [180.0, 650.0])
def test_the_energy_is_right_and_so_is_what_is_left_without_idle_power(step, watts):
    board = PlayedBoard(watts=watts, step=step)
    found = measured(board)
    energy = found.energy
    assert (True, None) == (found.valid, found.reason)
    assert abs(energy.joules - watts * board.each) <= 1.5 * energy.uncertainty
    assert energy.uncertainty <= CRITERION.precision * energy.joules
    assert energy.step == pytest.approx(step, rel=0.1)
    assert energy.idle_power == pytest.approx(board.idle, rel=0.05)
    assert abs(energy.net_joules - (watts - board.idle) * board.each) <= 1.5 * energy.net_uncertainty
    assert energy.net_uncertainty > energy.uncertainty
    assert "gpu" == energy.scope and abs(energy.disagreement) < 0.03
    assert fmean(found.samples) == pytest.approx(energy.joules, abs=energy.uncertainty)


def test_intervals_of_ten_runs_hold_their_mean_in_93_to_98_percent():
    held = []
    for number, (step, noise) in enumerate(product(STEPS * 4, (0.005, 0.02, 0.04))):
        ten = runs(10, first=10 * number, step=step, noise=noise)
        mean = fmean(energy.joules for energy in ten)
        held += [abs(energy.joules - mean) <= energy.uncertainty for energy in ten]
    assert 360 == len(held)
    assert 0.93 <= fmean(held) <= 0.98


@pytest.mark.parametrize("step", STEPS)
def test_five_percent_more_work_is_found(step):
    before, after = runs(10, step=step, noise=0.01), runs(10, step=step, noise=0.01, each=1.05e-4)
    found = [b.joules - b.uncertainty > a.joules + a.uncertainty for a, b in zip(before, after, strict=True)]
    assert sum(found) >= 9
    assert 1.05 == pytest.approx(fmean(b.joules for b in after) / fmean(a.joules for a in before), rel=0.01)


def test_noise_of_the_counter_enters_the_interval():
    quiet, noisy = (fmean(energy.uncertainty for energy in runs(5, noise=noise)) for noise in (0.001, 0.04))
    assert noisy > 1.5 * quiet


def test_it_ends_as_soon_as_it_is_certain_enough_and_no_later_than_its_time():
    quick, slow = PlayedBoard(step=0.02, noise=0.001), PlayedBoard(step=0.1, noise=0.08)
    few, many = measured(quick), measured(slow)
    assert quick.busy < 1.5 and CRITERION.min_samples // 3 <= len(few.samples)
    assert slow.busy == pytest.approx(CRITERION.seconds, rel=0.1)
    assert many.energy.uncertainty > CRITERION.precision * many.energy.joules, "not enough, and it says so"


def test_idle_power_is_measured_anew_after_a_minute():
    board, idle, rests = PlayedBoard(), IdlePower(), []
    pause = lambda seconds: (rests.append(board.now), board.pause(seconds))  # noqa: E731
    for wait, anew in ((0.0, True), (30.0, False), (40.0, True)):
        board.pause(wait)
        begun = len(rests)
        watts, _ = idle.of(board, board.clock, pause)
        assert watts == pytest.approx(board.idle, rel=0.03)
        assert anew == (len(rests) > begun)


def test_a_counter_of_the_module_is_known_by_the_power_that_agrees():
    found = measured(module=150.0).energy
    assert "module" == found.scope
    assert found.joules == pytest.approx((600 + 150) * 1e-4, rel=0.03)
    board = PlayedBoard(module=150.0)
    power = board.power
    board.power = lambda: {"gpu": power()["gpu"]}
    assert "25 % apart" in measured(board).reason, "the module's counter cannot pass for the GPU's"


def test_a_counter_that_integrated_power_contradicts_cannot_be_trusted():
    for gain in (0.57, 1.2):  # 187 J for 327 J have been reported
        found = measured(gain=gain)
        assert (False, None) == (found.valid, found.energy.joules)
        assert found.samples and not found.distrusted, "the times of the case are none the worse"
        assert found.energy.disagreement == pytest.approx(gain - 1, abs=0.03)
        assert "W and integrated power" in found.reason and "more than 10 %" in found.reason
    assert measured(gain=1.05).valid


def test_without_power_the_energy_is_neither_checked_nor_refused():
    energy = measured(has_power=False).energy
    assert energy.joules and (None, None) == (energy.scope, energy.disagreement)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"fault": "stands"}, "the energy counter stopped: it has not moved for"),
        ({"fault": "resets"}, "the energy counter was reset: it went from 1.000"),
        ({"fault": "wraps"}, "the energy counter wrapped: it went from 4.2"),
        ({"fault": "stops answering"}, "does not answer any more: no permission to read it"),
        ({"fault": "stops answering", "after": 0.0}, "no energy counter: no permission to read it"),
        ({"step": 5.0}, "the energy counter did not move in 2 s, too coarse for one launch"),
        ({"step": 0.4}, "times in 2 s, too coarse"),
        ({"chunk": 0.9}, "too coarse"),
        ({"each": 2.0}, "no launch ended between two jumps"),
    ],
)
def test_a_counter_that_cannot_be_used_is_refused_with_its_reason(changes, reason):
    found = measured(**changes)
    assert ((), True) == (found.samples, found.valid)
    assert reason in found.reason
    assert (None, found.reason) == (found.energy.joules, found.energy.reason)


def test_a_device_that_is_lost_or_cannot_repeat_gives_the_reason():
    board = PlayedBoard()
    lost = energy_per_launch(gone(), board, CRITERION, clock=board.clock, pause=board.pause)
    assert "lost: GPU is lost" == lost.reason
    none = energy_per_launch(iter(()), board, CRITERION, clock=board.clock, pause=board.pause)
    assert "could not be repeated" in none.reason


def gone():
    yield 1
    raise DeviceLost("GPU is lost")


def test_an_idle_device_whose_counter_stands_leaves_only_the_whole_energy():
    board = PlayedBoard(idle=0.0)
    energy = measured(board).energy
    assert energy.joules and (None, None, None) == (energy.idle_power, energy.net_joules, energy.net_uncertainty)
