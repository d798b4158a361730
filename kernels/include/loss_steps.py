"""A layer, its loss and a step in float64, and how far rounding may take each: the linear-algebra chain's reference."""

from prism_bench_catalogue.include import activations

STRETCH = {"relu": 1.0, "sigmoid": 0.25, "tanh": 1.0}  # the steepest slope of each activation


def probabilities(x, w, bias, activation, xp, special):
    logits = getattr(activations, activation)(x @ w + bias, xp, special)
    weights = xp.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def hit(label, cols, xp):
    return xp.arange(cols)[None, :] == label[:, None]


def reference(x, w, bias, label, direction, before, activation, alpha, beta, rows, cols, xp, special):
    known = ((label >= 0) & (label < cols))[:, None]
    error = probabilities(x, w, bias, activation, xp, special) - hit(label, cols, xp)
    gradient = xp.where(known, error / rows, xp.nan)
    steps = alpha * (gradient @ direction) + beta * before
    return gradient, steps, steps.sum()


def gradient_size(x, w, bias, label, activation, rows, cols, xp, special):
    """A probability moves by twice the largest error of its row's logits, which their absolute terms bound."""
    p = probabilities(x, w, bias, activation, xp, special)
    logits = STRETCH[activation] * (xp.abs(x) @ xp.abs(w) + xp.abs(bias))
    return (p * (1 + 2 * logits.max(axis=1, keepdims=True)) + hit(label, cols, xp)) / rows


def step_size(x, w, bias, label, direction, before, activation, alpha, beta, rows, cols, xp, special):
    size = gradient_size(x, w, bias, label, activation, rows, cols, xp, special)
    return abs(alpha) * (size @ xp.abs(direction)) + abs(beta) * xp.abs(before)


def total_size(x, w, bias, label, direction, before, activation, alpha, beta, rows, cols, xp, special):
    return step_size(x, w, bias, label, direction, before, activation, alpha, beta, rows, cols, xp, special).sum()
