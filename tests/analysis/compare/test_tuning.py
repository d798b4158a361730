"""What is adopted: only a verdict of faster in new times; never on the search's word, nor by trying many."""

from pathlib import Path
from random import Random

import pytest

from prism_bench.analysis.compare.estimate import Spread
from prism_bench.analysis.compare.selection import Searched, decided, mean_speedup
from prism_bench.catalogue import discover
from prism_bench.record.measurement import Measurement

CASE = discover(Path(__file__).parent.parent.parent / "tunable").case("tripled[n=1000]")
FEW = tuple(CASE.configured({"block": block}) for block in (64, 256))


def times(seconds, noise=0.002, processes=5, seed=0):
    rng = Random(f"{seed}/{seconds}")
    groups = [[seconds * rng.gauss(1, noise) for _ in range(20)] for _ in range(processes)]
    return Measurement("cold_time", "kernel", tuple(map(tuple, groups)))


def searched(best=FEW, refused=None, **changes):
    seconds = {case.task: 1e-6 for case in (CASE, *best)}
    return Searched(CASE, 5, refused or {}, seconds, tuple(best), 5, **changes)


def again(default, *candidates, **how):
    sides = enumerate(zip((CASE, *FEW), (default, *candidates), strict=False))
    return {case.task: times(seconds, seed=i, **how) for i, (case, seconds) in sides}


def test_the_quickest_of_those_that_are_faster_is_adopted():
    (found,) = decided([searched()], again(2e-6, 1.5e-6, 1e-6))
    assert (True, {"block": 256}) == (found.adopted, found.chosen.choice)
    low, high = found.interval
    assert low < found.gain < high and pytest.approx(2.0, rel=0.01) == found.gain
    assert "100 % faster, noise floor" in found.reason
    assert pytest.approx((2e-6, 1e-6), rel=0.01) == found.values


def test_the_speedup_is_that_of_the_times_next_to_it():
    levels = [(9e-6, 10e-6, 10e-6, 11e-6, 14e-6), (5e-6, 5.1e-6, 5.5e-6, 5.6e-6, 6e-6)]
    told = {task: Measurement("cold_time", "kernel", tuple((one,) * 9 for one in times))
            for task, times in zip((CASE.task, FEW[0].task), levels, strict=True)}  # fmt: skip
    (found,) = decided([searched(FEW[:1])], told)
    assert found.adopted and found.gain == pytest.approx(found.values[0] / found.values[1])


@pytest.mark.parametrize("ratio, noise", [(1.0, 0.002), (0.995, 0.002), (1.2, 0.002), (0.9, 0.2)])
def test_within_the_noise_the_default_is_kept(ratio, noise):
    (found,) = decided([searched(FEW[:1])], again(1e-6, ratio * 1e-6, noise=noise))
    assert (False, {}, 1.0) == (found.adopted, found.chosen.choice, found.gain)
    assert found.reason.startswith("the default is kept")


def test_one_process_says_nothing():
    (found,) = decided([searched()], again(2e-6, 1e-6, 1e-6, processes=1))
    assert (False, "the default is kept: one process a side does not show the spread between processes") == (
        found.adopted, found.reason
    )  # fmt: skip


def test_known_noise_withholds_what_few_processes_would_call():
    known = {CASE.name: Spread(0.04**2, 50, 0.0)}
    assert decided([searched(FEW[:1])], again(1e-6, 0.95e-6))[0].adopted
    assert not decided([searched(FEW[:1])], again(1e-6, 0.95e-6), known)[0].adopted


@pytest.mark.parametrize(
    "one, reason",
    [
        (searched(()), "no configuration was quicker than the default in the search"),
        (searched((), refused={CASE.task: "wrong"}), "the default itself has no time: wrong"),
        (searched(), "the candidates were not timed again"),
    ],
)
def test_why_there_was_nothing_to_judge(one, reason):
    (found,) = decided([one], {})
    assert (False, reason, (1e-6, 1e-6)) == (found.adopted, found.reason, found.values)
    assert (not one.best) == found.settled


def test_the_mean_is_geometric_and_counts_the_defaults_that_stay():
    faster, kept = decided([searched()], again(4e-6, 1e-6, 4e-6)) + decided([searched(())], {})
    assert pytest.approx(2.0, rel=0.01) == mean_speedup([faster, kept])
    assert None is mean_speedup([])
