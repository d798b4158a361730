"""Shared Triton functions: rows without their mean, and GELU. Only the compiler's process imports this module."""

import triton
import triton.language as tl


@triton.jit
def centred_row(values, inside, cols):
    """Return the row without its mean; the mean of the rest is removed too, because a large mean is rounded.

    The division is correctly rounded, so that nothing remains of a constant row.
    """
    rest = tl.where(inside, values - tl.sum(values, 0) / cols, 0.0)
    return tl.where(inside, rest - tl.div_rn(tl.sum(rest, 0), cols * 1.0), 0.0)


@triton.jit
def long_row_moments(row, cols, BLOCK: tl.constexpr):
    """Return a first value, the mean of what differs from it, and the variance, of a row that is read twice."""
    lanes = tl.arange(0, BLOCK)
    first_value = tl.load(row)
    total = tl.zeros([BLOCK], tl.float32)
    for first in range(0, cols, BLOCK):
        inside = first + lanes < cols
        total += tl.where(inside, tl.load(row + first + lanes, inside, other=0.0) - first_value, 0.0)
    mean = first_value + tl.sum(total, 0) / cols
    rest = tl.zeros([BLOCK], tl.float32)
    squares = tl.zeros([BLOCK], tl.float32)
    for first in range(0, cols, BLOCK):
        inside = first + lanes < cols
        centred = tl.where(inside, tl.load(row + first + lanes, inside, other=0.0) - mean, 0.0)
        rest += centred
        squares += centred * centred
    off = tl.sum(rest, 0) / cols
    return mean, off, tl.sum(squares, 0) / cols - off * off


@triton.jit
def upper_tail(s):
    """Probability that a normal variable exceeds s, 0 <= s <= 20: a minimax polynomial in (s - 3) / (s + 3)."""
    r = 1.0 / (s + 3.0)
    u = (s - 3.0) * r
    p = -2.945531450677663e-4 * u - 9.446349577046931e-4
    p = p * u + 1.084897667169571e-3
    p = p * u + 6.954221986234188e-3
    p = p * u - 1.0477311909198761e-2
    p = p * u - 4.7262221574783325e-2
    p = p * u + 2.3001867532730103e-1
    p = p * u - 5.09332001209259e-1
    p = p * u + 7.290836572647095e-1
    return p * r * tl.exp2(s * s * -0.72134752)


@triton.jit
def gelu_of(value, TANH: tl.constexpr):
    """Return x Phi(x) by the tail beyond |x|, which keeps the relative accuracy of negative results."""
    size = tl.abs(value)
    clipped = tl.where(size > 20.0, 20.0, size)
    if TANH:
        small = tl.exp(-size * (0.07135481627 * size * size + 1.59576912161))
        tail = tl.where(size > 20.0, 0.0, small / (1.0 + small))
    else:
        tail = upper_tail(clipped)
    lost = clipped * tail
    return tl.where(value > 0, value - lost, -lost)
