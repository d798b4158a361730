"""Student's t and the binomial distribution for verdicts, by the incomplete beta function.

SciPy has them too, but needs 140 MB, which is why it is an extra.
"""

from functools import cache
from math import copysign, erfc, exp, inf, isinf, isnan, lgamma, log, log1p, pi, sqrt
from statistics import NormalDist

_TERMS = 5000  # of the continued fraction, which needs about sqrt(max(a, b)) terms
_PRECISION = 2e-15  # relative change by a term that ends the fraction
_TINY = 1e-300  # in place of a denominator of 0
_STEPS = 100  # of the search for a quantile, which needs about six
_CLOSE = 1e-11  # relative step that ends the search


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b) for x in [0, 1]; a and b are above 0.

    Continued fraction of the NIST Digital Library of Mathematical Functions, 8.17.22, on the side of the mean where it
    converges fast.
    """
    if not 0 < x < 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _by_fraction(b, a, 1 - x)
    return _by_fraction(a, b, x)


def _by_fraction(a: float, b: float, x: float) -> float:
    return exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x)) / a * _fraction(a, b, x)


def _fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction by Lentz's method as modified by W. Thompson and A. Barnett (1986).

    Scalars, not arrays: a simulation computes hundreds of thousands of them, one at a time.
    """
    numerator = 1.0
    value = denominator = 1 / (1 - (a + b) * x / (a + 1) or _TINY)
    for m in range(1, _TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            denominator = 1 / (1 + term * denominator or _TINY)
            numerator = 1 + term / numerator or _TINY
            value *= denominator * numerator
        if abs(denominator * numerator - 1) < _PRECISION:
            break
    return value


def student(freedom: float, t: float) -> float:
    """Return the probability that Student's t with `freedom` degrees is `t` or less."""
    if isnan(t) or isnan(freedom):
        return float("nan")
    if isinf(freedom) or isinf(t):
        return erfc(-t / sqrt(2)) / 2
    tail = _upper_tail(freedom, abs(t))
    return tail if t < 0 else 1 - tail


def _upper_tail(freedom: float, t: float) -> float:
    square = t * t
    if square < 3:  # the tail is near a half; its complement is more precise, since its argument is not near 1
        return 0.5 - 0.5 * incomplete_beta(0.5, freedom / 2, square / (freedom + square))
    return 0.5 * incomplete_beta(freedom / 2, 0.5, freedom / (freedom + square))


@cache
def student_quantile(freedom: float, chance: float) -> float:
    """Return the quantile of Student's t with `freedom` degrees.

    NaN unless the chance is between 0 and 1 and `freedom` above 0.
    """
    if not 0 <= chance <= 1 or not freedom > 0:
        return float("nan")
    tail = min(chance, 1 - chance)
    if tail in (0, 0.5):
        return 0.0 if tail else copysign(inf, chance - 0.5)
    if isinf(freedom):
        return NormalDist().inv_cdf(chance)
    return copysign(_where_tail_is(freedom, tail), chance - 0.5)


def _where_tail_is(freedom: float, tail: float) -> float:
    """Return the t above 0 with that upper tail, by Newton's method from below: the tail is convex."""
    t = 0.0
    while _upper_tail(freedom, 2 * t or 1.0) > tail:
        t = 2 * t or 1.0
    for _ in range(_STEPS):
        step = (_upper_tail(freedom, t) - tail) / _density(freedom, t)
        t += step
        if abs(step) <= _CLOSE * t:
            break
    return t


def _density(freedom: float, t: float) -> float:
    scale = exp(lgamma((freedom + 1) / 2) - lgamma(freedom / 2)) / sqrt(freedom * pi)
    return scale * exp(-(freedom + 1) / 2 * log1p(t * t / freedom))


def binomial_tail(most: int, trials: int, chance: float) -> float:
    """Return the probability that more than `most` of `trials` independent trials succeed, each with `chance`."""
    if most < 0:
        return 1.0
    if most >= trials or chance <= 0:
        return 0.0
    return incomplete_beta(most + 1.0, float(trials - most), chance)
