"""Inputs of a launch on a GPU: whoever knows the seed draws the very same again."""

from math import prod

import numpy as np

from prism_bench.spec.case import Case
from prism_bench.spec.inputs import BLOCK, InputArray

_KEYS = 0x6B657973  # with a seed: draws keys, and nothing that fills draw with the seed alone
_KEY_BITS = 63


def launch_inputs(case: Case, seed: int) -> dict[str, InputArray]:
    """Return what the case draws with the seed, by name; what is larger than a block is chosen from it by a key.

    Blocks that repeat would let a kernel read one of them and know the others.
    """
    drawn = case.inputs(seed)
    keys = np.random.default_rng((seed, _KEYS)).integers(1 << _KEY_BITS, size=len(drawn))
    return {name: one.chosen(int(key)) for (name, one), key in zip(drawn.items(), keys, strict=True)}


def repeated_inputs(case: Case) -> list[str]:
    """Return the names of inputs that repeat a block, since their fills do not say what of it belongs together."""
    if case.golden:
        return []
    fill_of = case.correctness.fill_of
    return [
        one.name for one in case.spec.inputs
        if prod(one.extents(case.axes)) > BLOCK and fill_of(one).known_runs(case.axes) is None
    ]  # fmt: skip
