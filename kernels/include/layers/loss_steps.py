"""A layer, its loss and a step in float64, and how far rounding may take each: the linear-algebra chain's reference."""

from types import ModuleType

from prism_bench.spec import AnyArray, ArrayModule

from . import activations

STRETCH = {"relu": 1.0, "sigmoid": 0.25, "tanh": 1.0}  # the steepest slope of each activation


def probabilities(
    x: AnyArray, w: AnyArray, bias: AnyArray, activation: str, xp: ArrayModule, special: ModuleType
) -> AnyArray:
    logits = getattr(activations, activation)(x @ w + bias, xp, special)
    weights = xp.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def hit(label: AnyArray, cols: int, xp: ArrayModule) -> AnyArray:
    return xp.arange(cols)[None, :] == label[:, None]


def reference(
    x: AnyArray,
    w: AnyArray,
    bias: AnyArray,
    label: AnyArray,
    direction: AnyArray,
    before: AnyArray,
    activation: str,
    alpha: float,
    beta: float,
    rows: int,
    cols: int,
    xp: ArrayModule,
    special: ModuleType,
) -> tuple[AnyArray, AnyArray, AnyArray]:
    known = ((label >= 0) & (label < cols))[:, None]
    error = probabilities(x, w, bias, activation, xp, special) - hit(label, cols, xp)
    gradient = xp.where(known, error / rows, xp.nan)
    steps = alpha * (gradient @ direction)
    steps = steps + beta * before if beta else steps  # as in the BLAS, which does not read what it multiplies by 0
    return gradient, steps, steps.sum()


def exact_if_infinite(size: AnyArray, xp: ArrayModule) -> AnyArray:
    """The size of what may be rounded: nothing of a sum that is infinite, or that has no value."""
    return xp.nan_to_num(size, nan=0.0, posinf=0.0)


def gradient_size(
    x: AnyArray,
    w: AnyArray,
    bias: AnyArray,
    label: AnyArray,
    activation: str,
    rows: int,
    cols: int,
    xp: ArrayModule,
    special: ModuleType,
) -> AnyArray:
    """A probability moves by twice the largest error of its row's logits, which their absolute terms bound."""
    p = probabilities(x, w, bias, activation, xp, special)
    logits = STRETCH[activation] * exact_if_infinite(xp.abs(x) @ xp.abs(w) + xp.abs(bias), xp)
    return (p * (1 + 2 * logits.max(axis=1, keepdims=True)) + hit(label, cols, xp)) / rows


def step_size(
    x: AnyArray,
    w: AnyArray,
    bias: AnyArray,
    label: AnyArray,
    direction: AnyArray,
    before: AnyArray,
    activation: str,
    alpha: float,
    beta: float,
    rows: int,
    cols: int,
    xp: ArrayModule,
    special: ModuleType,
) -> AnyArray:
    size = gradient_size(x, w, bias, label, activation, rows, cols, xp, special)
    terms = abs(alpha) * (size @ xp.abs(direction))
    return terms + abs(beta) * xp.abs(before) if beta else terms


def total_size(
    x: AnyArray,
    w: AnyArray,
    bias: AnyArray,
    label: AnyArray,
    direction: AnyArray,
    before: AnyArray,
    activation: str,
    alpha: float,
    beta: float,
    rows: int,
    cols: int,
    xp: ArrayModule,
    special: ModuleType,
) -> AnyArray:
    return step_size(x, w, bias, label, direction, before, activation, alpha, beta, rows, cols, xp, special).sum()
