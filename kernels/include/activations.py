"""The activations of activations.cuh in float64."""


def identity(x, xp, special):
    return x


def relu(x, xp, special):
    return xp.maximum(x, 0)


def sigmoid(x, xp, special):
    return special.expit(x)


def tanh(x, xp, special):
    return xp.tanh(x)


def gelu(x, xp, special):
    """x times the probability of staying below it; clipped below so that -inf gives -0 instead of NaN."""
    x = xp.maximum(x, -1e3)
    return x * special.ndtr(x)
