"""Tuning while the program runs, on made-up times: samples, averages, tuning anew, size classes, outliers."""

import pytest

from prism_bench.errors import UsageError
from prism_bench.workflows.tuning.search import Habits, OnlineTuner

SPACE = [{"block": block} for block in (256, 64, 128)]
N = {"n": 2500}


def launched(tuner, times, count, workload=N, space=SPACE):
    """The blocks of `count` executions, each taking what `times` has for its block."""
    blocks = []
    for _ in range(count):
        configuration = tuner.next("k", workload, space)
        tuner.record("k", workload, configuration, times[configuration["block"]])
        blocks.append(configuration["block"])
    return blocks


def test_every_configuration_gets_three_samples_before_the_best_is_launched():
    times = {256: 2.0, 64: 1.0, 128: 3.0}
    assert [256, 64, 128] * 3 + [64] * 4 == launched(OnlineTuner(), times, 13)


def test_until_then_nothing_is_best():
    tuner = OnlineTuner()
    assert None is tuner.best("k", N)
    launched(tuner, {256: 2.0, 64: 1.0, 128: 3.0}, 6)
    assert None is tuner.best("k", N)


def test_the_average_moves_by_three_tenths():
    tuner = OnlineTuner(Habits(least=1))
    for seconds in (1.0, 2.0):
        tuner.next("k", N, SPACE[:1])
        tuner.record("k", N, SPACE[0], seconds)
    tuner.next("k", N, SPACE[:1])
    assert 0.3 * 2.0 + 0.7 * 1.0 == pytest.approx(tuner.seconds("k", N, SPACE[0]))


def test_an_outlier_counts_as_four_times_the_average_at_most():
    tuner = OnlineTuner(Habits(least=1))
    times = {256: 1.0, 64: 0.5}
    launched(tuner, times, 2, space=SPACE[:2])
    tuner.record("k", N, {"block": 64}, 1000.0)
    assert {"block": 64} == tuner.best("k", N), "0.3 * 2 + 0.7 * 0.5 is 0.95, less than the default's 1"


def test_after_a_thousand_executions_all_are_sampled_anew():
    times = {256: 2.0, 64: 1.0, 128: 3.0}
    tuner = OnlineTuner()
    assert [64] == sorted(set(launched(tuner, times, 1000)[9:]))
    times[64] = 9.0
    assert [256, 64, 128] * 3 == launched(tuner, times, 9)
    assert {256} == set(launched(tuner, times, 20))


def test_a_smaller_number_of_executions_tunes_anew_sooner():
    blocks = launched(OnlineTuner(Habits(again=12)), {256: 2.0, 64: 1.0, 128: 3.0}, 15)
    assert [64] * 3 + [256, 64, 128] == blocks[9:]


@pytest.mark.parametrize("gain, best", [(0.99, 256), (0.97, 64)])
def test_the_default_is_left_for_a_gain_only(gain, best):
    tuner = OnlineTuner()
    launched(tuner, {256: 1.0, 64: gain, 128: 3.0}, 9)
    assert {"block": best} == tuner.best("k", N)


def test_at_most_five_configurations_are_tried():
    space = [{"block": block} for block in (64, 128, 192, 256, 320, 384, 448)]
    assert {64, 128, 192, 256, 320} == set(launched(OnlineTuner(), dict.fromkeys(range(64, 449), 1.0), 30, space=space))


def test_a_choice_stands_for_its_size_class_and_those_near_it():
    tuner = OnlineTuner()
    launched(tuner, {256: 2.0, 64: 1.0, 128: 3.0}, 9)
    assert {"block": 64} == tuner.best("k", {"n": 2999}) == tuner.best("k", {"n": 7000})
    assert None is tuner.best("k", {"n": 100_000})
    assert None is tuner.best("other", N)


def test_near_a_tuned_class_its_best_is_among_those_tried_first():
    tuner = OnlineTuner(Habits(most=2))
    launched(tuner, {256: 2.0, 64: 1.0, 128: 3.0}, 9)
    space = [SPACE[0], SPACE[2], SPACE[1]]
    assert [256, 64] == launched(tuner, {256: 2.0, 64: 1.0}, 2, workload={"n": 5000}, space=space)


def test_its_statistics_count_what_happened():
    tuner = OnlineTuner()
    assert {"kernels_tuned": 0, "measurements": 0, "executions": 0, "mean_speedup": 1.0} == tuner.statistics()
    launched(tuner, {256: 2.0, 64: 1.0, 128: 3.0}, 10)
    assert {"kernels_tuned": 1, "measurements": 3, "executions": 10, "mean_speedup": 2.0} == tuner.statistics()


def test_an_empty_space_is_refused():
    with pytest.raises(UsageError, match="k: there is no configuration to launch"):
        OnlineTuner().next("k", N, [])
