"""Cycle collector of Python, paused while much is read that holds no reference cycles, or while a clock runs."""

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Generator[None]:
    """Disable the cycle collector in the block, in which it would search everything again and again."""
    wanted = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if wanted:
            gc.enable()
