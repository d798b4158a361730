"""The divergence of beliefs that are nearly equal, against fifty decimal digits: what is left of x - ln(1 + x)."""

from dataclasses import replace
from decimal import Decimal, localcontext

import numpy as np
import pytest

from prism_bench import Golden, Workload
from prism_bench.backends import open_backend
from prism_bench.run.verification import verify
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


def test_the_kernel_in_floats_keeps_its_digits_where_the_terms_cancel():
    """A ratio of variances of 0.7 leaves a sixth of ln(1 + x): what a float of that is off by counts six times."""
    n, rng = 1 << 15, np.random.default_rng(0)
    var_p = np.exp(rng.uniform(-1, 1, n)).astype("float32")
    var_q = (var_p * np.linspace(0.5, 2, n)).astype("float32")
    inputs = {"mu_q": 0.0, "mu_p": 0.0, "var_q": var_q, "var_p": var_p}
    golden = Golden(Workload(n=n), inputs, {}, "ratios from a half to two")
    case = replace(CATALOGUE.edges_of("ai_kl_divergence")[0], workload=golden.workload, golden=golden)
    (entry,) = verify(open_backend("emulator"), case, (0,))
    assert (True, n, 0) == (entry["passed"], entry["compared"], entry["differing"])
