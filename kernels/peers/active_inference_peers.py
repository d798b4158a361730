"""An evaluation of active inference by libraries: peers of active_inference_chain."""

import math
from types import ModuleType
from typing import Any

from prism_bench.spec import AnyArray

LN_2_PI = math.log(2 * math.pi)


def torch_chain(
    torch: ModuleType, level: AnyArray, o: AnyArray, g: AnyArray, precision: AnyArray, jacobian: AnyArray, mu: AnyArray,
    var_q: AnyArray, var_p: AnyArray, before: AnyArray, n: int, length: int, kappa: float, dt: float, alpha: float,
    beta: float,
) -> Any:  # fmt: skip
    """The same with PyTorch's calls; torch.distributions would wait for the device to check its arguments."""
    prior = level.repeat(-(-n // length))[:n]
    moved = mu + kappa * (torch.mv(jacobian.T, precision * (o - g)) + (prior - mu) / var_p)
    velocity = alpha * (moved - mu) / dt + beta * before
    spread = var_q / var_p
    complexity = 0.5 * (spread - 1 - torch.log(spread) + (moved - prior) ** 2 / var_p).sum()
    accuracy = -0.5 * (precision * (o - g) ** 2 + LN_2_PI - torch.log(precision)).sum()
    return moved, velocity, complexity - accuracy, complexity, accuracy


def jax_chain(
    jax: ModuleType, level: AnyArray, o: AnyArray, g: AnyArray, precision: AnyArray, jacobian: AnyArray, mu: AnyArray,
    var_q: AnyArray, var_p: AnyArray, before: AnyArray, n: int, length: int, kappa: float, dt: float, alpha: float,
    beta: float,
) -> Any:  # fmt: skip
    """The same for XLA to fuse; its products are in full float32."""
    numpy, error = jax.numpy, o - g
    prior = numpy.tile(level, -(-n // length))[:n]
    drive = numpy.matmul(precision * error, jacobian, precision="highest")
    moved = mu + kappa * (drive + (prior - mu) / var_p)
    velocity = alpha * (moved - mu) / dt + beta * before
    spread = var_q / var_p
    complexity = 0.5 * (spread - 1 - numpy.log(spread) + (moved - prior) ** 2 / var_p).sum()
    accuracy = -0.5 * (precision * error**2 + LN_2_PI - numpy.log(precision)).sum()
    return moved, velocity, complexity - accuracy, complexity, accuracy
