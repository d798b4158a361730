"""Launches for the maps and sums of map_arrays.cuh, what of a map may vary, and how a spec has a form in double."""

from collections.abc import Callable
from typing import Any

import numpy as np

from prism_bench import Launch, Scalar, Scratch, Variant
from prism_bench.spec import Array, Device

from .vector_load import map_tune

NUMBERS = {"float32": "float", "float64": "double"}
MOST_BLOCKS = 8192
MAP_TUNE = map_tune()
ROUNDING = {"float32": 1e-6, "float64": 1e-14}  # of the sum of absolute terms


def launch_map(entry: str, axis: str = "n", arguments: tuple[str, ...] | None = None) -> Callable[..., Any]:
    """A packet of 16 bytes a thread. `entry` has {} where the number's type goes; the launch asks for `axis`.

    `arguments` are the names to pass, where they are not the spec's in order.
    """

    def of(dtype: str) -> Callable[..., Any]:
        def launch(count: int, block: int, groups: int) -> Launch:
            blocks = -(-count // (block * groups * each))
            return Launch(blocks, block, entry=entry.format(NUMBERS[dtype]), arguments=arguments)

        each = 16 // np.dtype(dtype).itemsize
        if axis == "m":
            return lambda m, block=256, groups=1: launch(m, block, groups)
        return lambda n, block=256, groups=1: launch(n, block, groups)

    return of


def project_blocks(n: int, dtype: str) -> int:
    """Blocks of 256 threads that write four packets a thread, as ai_hierarchical_project does."""
    return -(-n // (4 * 256 * 16 // np.dtype(dtype).itemsize))


def sum_launch(
    entry: str, elements: int, device: Device, arguments: tuple[str, ...] | None = None, dtype: str = "float32"
) -> Launch:
    """A block for each place of the device where few do not do: threads that add floats have 32 registers.

    Of doubles, enough blocks to fill it twice over and more; where their threads have more than a few packets of floats
    they have whole eights of them: single ones at the end cost a batch's time.
    """
    own = 2048  # elements of a block whose threads have one packet of floats each
    if dtype == "float32":
        blocks = min(-(-elements // own), 4 * device.sm_count, MOST_BLOCKS)
    else:
        each = -(-elements // (own * min(12 * device.sm_count, MOST_BLOCKS)))
        each = max(1, each if each <= 4 else max(8, each - each % 8))
        blocks = -(-elements // (own * each))
    return Launch(grid=max(1, blocks), block=512, entry=entry, arguments=arguments)


def sum_scratch(count: int) -> tuple[Array | Scalar, ...]:
    """Working memory of grid_sums for so many sums."""
    return Scratch("by_block", str(count * MOST_BLOCKS), "float64"), Scratch("arrived", "1", "uint32")


def in_double(
    arguments: Callable[..., Any], launch: Callable[..., Any], tolerance: Callable[..., Any], **changes: Any
) -> Variant:
    """The variant in double precision: what depends on the number's type, asked for it."""
    plain = {"arithmetic": "fp64", "only_labels": ("S0", "S1"), "budgets": (), "golden": ()}
    made = {"arguments": arguments("float64"), "launch": launch("float64"), "tolerance": tolerance("float64")}
    return Variant("in double precision", **{**plain, **made, **changes})
