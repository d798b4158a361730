"""Cycle collector of Python, paused while much is read that holds no reference cycles."""

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Generator[None]:
    """Disable the cycle collector in the block: it would search all records and facts again and again."""
    wanted = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if wanted:
            gc.enable()
