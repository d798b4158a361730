"""The divergence of beliefs that are nearly equal, against fifty decimal digits: what is left of x - ln(1 + x)."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

from tests.built_in import CATALOGUE


def exact(x):
    """x - ln(1 + x) of that very float."""
    with localcontext(prec=50):
        return float(Decimal(x) - (1 + Decimal(x)).ln())


@pytest.mark.parametrize("size", [2.0**-30, 0.0009, 0.0011169294645903185, 0.03, 0.2499, 0.25, 0.6, 7.0])
def test_reference_keeps_its_digits_however_near_the_variances_are(size):
    divergence = CATALOGUE.anywhere("ai_kl_divergence:f64[n=3]").spec.reference
    variances = np.array([2 * (1 + size), 2 * (1 - size)])
    variances = variances[variances > 0]
    expected = [0.5 * exact((value - 2) / 2) for value in variances.tolist()]  # of 2, so that x is not rounded
    actual = divergence(np.zeros_like(variances), 0.0, variances, np.full_like(variances, 2.0), xp=np)
    np.testing.assert_allclose(actual, expected, rtol=2e-15)
