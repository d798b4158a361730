"""Student's t and the binomial distribution agree with SciPy's, which an installation need not have."""

import numpy as np
import pytest
from scipy import ndimage, special

from prism_bench.analysis.trend.series import filtered
from prism_bench.measure.distributions import binomial_tail, incomplete_beta, student, student_quantile

FREEDOMS = (0.4, 1, 2, 3, 4.7, 8, 10, 31, 200, 1e4, 1e6, np.inf)


@pytest.mark.parametrize("count", [1, 2, 3, 10, 51, 100, 999, 4000])
def test_weights_of_a_median_are_exact(count):
    half, places = (count + 1) / 2, np.arange(count + 1) / count
    computed = [incomplete_beta(half, half, place) for place in places]
    np.testing.assert_allclose(computed, special.betainc(half, half, places), atol=2e-12)


@pytest.mark.parametrize("freedom", FREEDOMS)
def test_chances_of_t_are_exact_to_the_far_tail(freedom):
    for t in (-40, -9, -4.5, -1.8, -1.7, -0.3, 0.0, 0.02, 1.0, 2.2, 6.0, 30.0, -np.inf, np.inf):
        assert special.stdtr(freedom, t) == pytest.approx(student(freedom, t), rel=1e-8, abs=1e-200)
    assert np.isnan(student(freedom, np.nan))


@pytest.mark.parametrize("freedom", FREEDOMS)
def test_quantiles_of_t_are_exact(freedom):
    for chance in (1e-5, 0.005, 0.3, 0.75, 0.9, 0.95, 0.975, 0.995, 0.99995):
        assert special.stdtrit(freedom, chance) == pytest.approx(student_quantile(freedom, chance), rel=1e-8)
    assert (-np.inf, 0.0, np.inf) == tuple(student_quantile(freedom, chance) for chance in (0, 0.5, 1))
    assert all(np.isnan(student_quantile(*odd)) for odd in ((freedom, -0.1), (freedom, 1.1), (0, 0.9), (np.nan, 0.9)))


@pytest.mark.parametrize("trials", [1, 7, 60, 3000])
def test_tails_of_the_binomial_are_exact(trials):
    for chance in (0.0, 1e-6, 0.01, 0.3, 0.97):
        for most in {-1, 0, 1, 5, trials // 3, trials - 1, trials}:
            expected = special.bdtrc(most, trials, chance) if 0 <= most <= trials else float(most < 0)
            assert expected == pytest.approx(binomial_tail(most, trials, chance), rel=1e-9, abs=1e-200)


@pytest.mark.parametrize("mode", ["nearest", "reflect"])
@pytest.mark.parametrize("size", [1, 4, 5, 24])
@pytest.mark.parametrize("count", [1, 3, 30])
def test_the_median_filter_is_the_usual_one(mode, size, count):
    values = np.random.default_rng(count).normal(size=count)
    assert ndimage.median_filter(values, size, mode=mode).tolist() == filtered(values, size, mode).tolist()
