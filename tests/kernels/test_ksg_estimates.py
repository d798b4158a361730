"""The estimators' references against closed forms of normal variables, in the mean over draws: one scatters by 25 %."""

import numpy as np
import pytest
import scipy.special

from prism_bench.spec import arguments
from tests.built_in import CATALOGUE

DRAWS, N = 100, 500


def independent(seed):
    return np.random.default_rng(seed).normal(size=(3, N, 1))


def correlated(seed):
    x, e, _ = independent(seed)
    return {"x": x, "y": 0.5 * x + np.sqrt(0.75) * e}


def driven(seed):
    """y' = 0.5 y + 0.4 x + e, x white."""
    x, e = np.random.default_rng(seed).normal(size=(2, N + 1, 1))
    y = np.zeros((N + 1, 1))
    for t in range(N):
        y[t + 1] = 0.5 * y[t] + 0.4 * x[t] + e[t]
    return {"x_past": x[:N], "y_past": y[:N], "y_future": y[1:]}


def conditioned(seed):
    """x and y driven by z, and y by x besides: their partial correlation is 0.6."""
    z, e, f = independent(seed)
    x = z + e
    return {"x": x, "y": z + 0.75 * x + f, "z": z}


@pytest.mark.parametrize(
    ("kernel", "draw", "expected"),
    [
        ("ksg_mutual_information", correlated, -0.5 * np.log(1 - 0.25)),
        ("ksg_transfer_entropy", driven, 0.5 * np.log(1 + 0.16)),
        ("conditional_mutual_information", conditioned, -0.5 * np.log(1 - 0.36)),
    ],
)
def test_mean_over_draws_is_the_closed_form(kernel, draw, expected):
    spec = CATALOGUE.kernel(kernel)
    fixed = {"k": 4, "n": N, "scale": 1.0, "xp": np, "special": scipy.special}
    found = [arguments.call(spec.reference, {**fixed, **draw(seed)}, kernel)[0] for seed in range(DRAWS)]

    assert expected == pytest.approx(np.mean(found), rel=0.05)
