"""Generated series of one time per nightly run, with noise as GPUs have it and steps where they are planted."""

from collections.abc import Mapping
from math import sqrt

import numpy

RUNS, CLOCK, SLOW_CLOCK = 120, 1.98e9, 1.83e9
SLOW_SHARE, OUTLIER_SHARE, QUANTUM = 0.15, 0.05, 0.05
NOISES = (
    "normal", "heavy tails", "outliers", "slow drift", "drift", "states", "states, clock known", "quantised",
)  # fmt: skip
MEMORY = {"slow drift": 0.5, "drift": 0.8}  # correlation of a run with the next


def generated(
    noise: str, rng: numpy.random.Generator, steps: Mapping[int, float] | None = None, runs: int = RUNS
) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Return the values of `runs` runs and the clocks they ran at, 0 where nobody read them.

    The level is 1 at first; each of `steps` multiplies it from a run on. The noise is 1 %, in `drift` of each shock.
    """
    level = numpy.ones(runs)
    for place, factor in (steps or {}).items():
        level[place:] *= factor
    values, clocks = level * _noise(noise, rng, runs), numpy.zeros(runs)
    if noise == "outliers":
        values = numpy.where(rng.random(runs) < OUTLIER_SHARE, values * rng.uniform(1.2, 1.6, runs), values)
    if noise.startswith("states"):
        slow = rng.random(runs) < SLOW_SHARE
        values = numpy.where(slow, values * CLOCK / SLOW_CLOCK, values)
        clocks = numpy.where(slow, SLOW_CLOCK, CLOCK) if "known" in noise else clocks
    if noise == "quantised":
        quantum = QUANTUM / rng.uniform(1, 2)
        values = numpy.round(values / quantum) * quantum
    return values, clocks


def _noise(noise: str, rng: numpy.random.Generator, runs: int) -> numpy.ndarray:
    if noise == "heavy tails":
        return 1 + rng.standard_t(3, runs) * 0.01 / sqrt(3)
    memory = MEMORY.get(noise, 0.0)
    shocks, value, values = rng.normal(0, 0.01, runs), rng.normal(0, 0.01 / sqrt(1 - memory**2)), []
    for shock in shocks:
        value = memory * value + shock
        values.append(1 + value)
    return numpy.array(values)
