"""The activations of activations.cuh in float64."""

from types import ModuleType

from prism_bench.spec import AnyArray, ArrayModule


def identity(x: AnyArray, xp: ArrayModule, special: ModuleType) -> AnyArray:
    return x


def relu(x: AnyArray, xp: ArrayModule, special: ModuleType) -> AnyArray:
    return xp.maximum(x, 0)


def sigmoid(x: AnyArray, xp: ArrayModule, special: ModuleType) -> AnyArray:
    return special.expit(x)


def tanh(x: AnyArray, xp: ArrayModule, special: ModuleType) -> AnyArray:
    return xp.tanh(x)


def gelu(x: AnyArray, xp: ArrayModule, special: ModuleType) -> AnyArray:
    """x times the probability of staying below it; clipped below so that -inf gives -0 instead of NaN."""
    x = xp.maximum(x, -1e3)
    return x * special.ndtr(x)
