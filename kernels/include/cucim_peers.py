"""Peers by cuCIM, whose filters are scikit-image's on CuPy arrays."""

from collections.abc import Callable
from importlib import import_module

from prism_bench.array_types import AnyArray


def window_entropies(levels: Callable[[], AnyArray], window: int) -> Callable[[], AnyArray]:
    """Return a call of the rank filter `entropy`: bits of the grey levels in a square window, clipped to the image.

    `levels` gives the image as uint8; its work is timed too.
    """
    cupy, filters = import_module("cupy"), import_module("cucim.skimage.filters.rank")
    footprint = cupy.ones((window, window), "uint8")
    return lambda: filters.entropy(levels(), footprint)
