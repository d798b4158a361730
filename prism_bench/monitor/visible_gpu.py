"""The GPU that this process may use, where it was given one of several."""

import os

from prism_bench.io.files import path_part

VISIBLE = "CUDA_VISIBLE_DEVICES"


def cache_of_gpu(name: str) -> str:
    """Return the name of a cache of what was timed on the GPU that this process was given, or of any GPU without one.

    Boards of a fleet on one host neither wait for each other nor forget what another one has chosen.
    """
    gpu = os.environ.get(VISIBLE)
    return f"{name}-{path_part(gpu)}" if gpu else name
