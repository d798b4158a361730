"""Processes that share the work on many files, where there are enough of them."""

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeVar

from prism_bench.io.workers.child import end_with_parent

FEW = 48  # files that one process has read before others have started

_File = TypeVar("_File")
_Found = TypeVar("_Found")


def in_processes(work: Callable[[_File], _Found], files: Sequence[_File]) -> Iterator[_Found]:
    """Yield the result of `work`, a function of a module, for each file, in their order."""
    workers = min(os.cpu_count() or 1, len(files) // FEW)
    if workers < 2:
        yield from map(work, files)
        return
    with ProcessPoolExecutor(workers, get_context("spawn"), _begin) as pool:
        yield from pool.map(work, files, chunksize=8)


def _begin() -> None:
    """Prepare a process of the pool: it makes no reference cycles, and does not outlive its parent."""
    gc.disable()
    end_with_parent()
