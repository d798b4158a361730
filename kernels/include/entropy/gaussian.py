"""Beliefs of the active-inference kernels: the fills of their inputs, and the terms of gaussian.cuh in float64."""

from typing import Any

import numpy as np

from prism_bench import Workload
from prism_bench.spec import ONE_BY_ONE, AnyArray, ArrayModule, Fill, positive

LEAST = 1e-10
spreads = Fill(
    lambda rng, count, axes: np.exp(rng.normal(0, 0.5, count)), "log-normal(0, 0.5)", positive(), runs=ONE_BY_ONE
)

# States of a belief and observations: the documents' 900 and 100, then vectors beyond any cache.
STATES = {"S0": Workload(n=900), "S1": Workload(n=1 << 24), "S2": Workload(n=1 << 26)}
OBSERVATIONS = {"S0": Workload(m=100), "S1": Workload(m=1 << 24), "S2": Workload(m=1 << 26)}
LENGTHS = (0, 1, 3, 255, 1025, 4099)


def edges(axis: str) -> tuple[Any, ...]:
    return tuple(Workload(**{axis: length}) for length in LENGTHS)


def at_least(x: AnyArray, xp: ArrayModule) -> AnyArray:
    """Raised to the least variance or precision; a NaN stays one."""
    return xp.where(x < LEAST, LEAST, x)


def less_log1p(x: AnyArray, xp: ArrayModule) -> AnyArray:
    """x - ln(1 + x), |x| < 1/4, to 1e-15 of itself: from log1p it would be off by 2e-16 / |x| of itself near 0."""
    series = xp.zeros_like(x)
    for power in range(30, 1, -1):  # the next term is 0.25^29 / 15 of the first
        series = 1 / power - x * series
    return x**2 * series


def divergence(mu_q: AnyArray, mu_p: AnyArray, var_q: AnyArray, var_p: AnyArray, xp: ArrayModule) -> AnyArray:
    """D(q || p) by dimension: (x - ln(1 + x) + d^2 / var_p) / 2 with 1 + x the ratio of variances, exact near q = p.

    Away from there the logarithm is of the ratio itself: where it is small, 1 + x has lost it.
    """
    var_q, var_p = at_least(var_q, xp), at_least(var_p, xp)
    x = (var_q - var_p) / var_p
    near = xp.abs(x) < 0.25
    less = xp.where(near, less_log1p(xp.where(near, x, 0.0), xp), x - xp.log(var_q / var_p))
    return 0.5 * (less + (mu_q - mu_p) ** 2 / var_p)


def log_likelihood(error: AnyArray, precision: AnyArray, xp: ArrayModule) -> AnyArray:
    p = at_least(precision, xp)
    return -0.5 * (p * error**2 + np.log(2 * np.pi) - xp.log(p))


def likelihood_size(error: AnyArray, precision: AnyArray, xp: ArrayModule) -> AnyArray:
    """The absolute terms of a log-likelihood."""
    p = at_least(precision, xp)
    return 0.5 * (p * error**2 + np.log(2 * np.pi) + xp.abs(xp.log(p)))
