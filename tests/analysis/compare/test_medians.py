"""Process medians and how well they are known: the closed form against the bootstrap that it stands for."""

from math import exp, isnan, log

import numpy as np
import pytest

from prism_bench.analysis.compare.estimate import cycles, medians, medians_of_rows
from prism_bench.record.measurement import Measurement


@pytest.fixture(scope="module")
def processes():
    """Four processes of fifteen samples: an odd count, for which the closed form is exact."""
    rng = np.random.default_rng(1)
    return [1e-5 * level * rng.lognormal(0, 0.03, 15) for level in (1.0, 1.01, 1.03, 0.99)]


@pytest.fixture(scope="module")
def drawn(processes):
    """Mean log medians of 50,000 hierarchical bootstrap samples: processes are drawn first, then samples in each."""
    rng, groups = np.random.default_rng(3), np.log(np.array(processes))
    count, samples = groups.shape
    chosen = rng.integers(count, size=(50_000, count))
    kept = rng.integers(samples, size=(*chosen.shape, samples))
    return np.median(groups[chosen[:, :, None], kept], axis=2).mean(axis=1)


def test_the_variance_is_that_of_the_processes_medians(processes):
    found = medians(processes)
    assert np.var(found.logs, ddof=1) / 4 == pytest.approx(found.variance)


def test_the_variance_is_right_where_only_samples_differ():
    """Processes of one level: what their medians differ by is their sampling, which counts once."""
    rng = np.random.default_rng(5)
    found = [medians_of_rows(rng.normal(0, 0.02, (400, 5, 15))) for _ in range(2)]
    truth = np.var([one.centre for one in found[0] + found[1]])
    assert truth == pytest.approx(np.mean([one.variance for one in found[0]]), rel=0.15)


def test_medians_that_agree_far_better_than_their_samples_are_not_believed():
    one = medians([[1e-6, 2e-6, 3e-6]] * 3)
    assert 0.0 == one.total
    assert one.variance == pytest.approx(0.25 * one.within / 3)


def test_many_cases_at_once_have_the_medians_of_each(processes):
    (found,) = medians_of_rows(np.log(np.array([processes])))
    assert found.logs == pytest.approx(medians(processes).logs)
    assert found.variances == pytest.approx(medians(processes).variances)


def test_the_centre_is_where_the_bootstrap_is(processes, drawn):
    assert np.mean(drawn) == pytest.approx(medians(processes).centre, abs=1e-4)


def test_the_same_samples_give_the_same_numbers(processes):
    assert medians(processes) == medians(processes)


def test_samples_that_agree_leave_no_doubt():
    found = medians([[2e-6, 2e-6, 2e-6], [2e-6, 2e-6]])
    assert (2e-6, 0.0, 0.0) == pytest.approx((found.typical, found.variance, found.within))


def test_one_process_says_nothing_of_the_spread():
    found = medians([[1e-6, 2e-6, 3e-6]])
    assert isnan(found.variance)
    assert isnan(found.total)


def test_processes_without_samples_are_left_out():
    assert 2 == len(medians([[1e-6], [], [2e-6]]).logs)
    assert () == medians([[], []]).logs


def test_one_sample_is_its_own_median():
    assert (log(3e-6),) == pytest.approx(medians([[3e-6]]).logs)


def test_the_resolution_is_the_clocks_tick():
    ticks = np.array([100, 101, 103, 101]) * 32e-9
    assert log(101 / 100) == pytest.approx(medians([ticks, ticks]).resolution)
    assert 0.0 == medians([[1e-6, 1e-6 * (1 + 1e-12)]]).resolution


def test_processes_can_be_put_together_and_chosen():
    first, second = medians([[1e-6], [2e-6]]), medians([[3e-6]])
    assert medians([[1e-6], [2e-6], [3e-6]]).logs == (first + second).logs
    assert second.logs == (first + second).only([2]).logs


def measured(clocks):
    return Measurement("cold_time", "kernel", ((1e-6, 2e-6), (1e-6, 1e-6)), clocks)


def test_cycles_are_seconds_times_the_clock_of_each_sample():
    found = cycles(measured(((1e9, 1e9), (2e9, 2e9))))
    assert 2000.0 == pytest.approx(exp(found.logs[1]))


@pytest.mark.parametrize("clocks", [(), ((1e9, 1e9),), ((1e9, 1e9), (1e9,)), ((1e9, 1e9), (0.0, 1e9))])
def test_without_every_samples_clock_there_are_no_cycles(clocks):
    assert cycles(measured(clocks)) is None
