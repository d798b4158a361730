"""Sampling stops when the median is known well enough, or at a limit, and never before the first sample."""

import pytest

from prism_bench.measure import Criterion

STEADY = [1.0 + 0.001 * (index % 2) for index in range(12)]
NOISY = [1.0 + 0.5 * (index % 2) for index in range(12)]


@pytest.mark.parametrize(
    ("samples", "elapsed", "finished"),
    [
        (STEADY, 0.0, True),
        (STEADY[:11], 0.0, False),
        (NOISY, 0.0, False),
        (NOISY * 5, 0.0, True),
        (NOISY * 4, 0.0, False),
        (NOISY, 0.4, True),
        (NOISY, 0.39, False),
        ([1.0], 0.4, True),
        ([], 100.0, False),
    ],
    ids=[
        "precise enough", "precise but too few", "not precise", "count limit", "below the count limit", "time limit",
        "below the time limit", "one slow sample", "none yet",
    ],
)  # fmt: skip
def test_the_default_criterion(samples, elapsed, finished):
    assert finished == Criterion().finished(samples, elapsed)


def test_one_sample_can_be_all_that_is_asked():
    criterion = Criterion(min_samples=1, max_samples=1)
    assert not criterion.finished([], 0.0)
    assert criterion.finished([1.0], 0.0)


def test_a_coarser_precision_stops_earlier():
    assert Criterion(precision=0.3).finished(NOISY, 0.0)
