"""Compiling ahead: every case's code into the cache by all cores, so that what is watched or timed only loads it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path

from prism_bench.case import Case, Device
from prism_bench.compilation import compile_source
from prism_bench.errors import CompilationFailed
from prism_bench.workers.child import end_with_parent

_FEW = 4  # as many are compiled sooner than processes start


def compile_ahead(cases: Iterable[Case], device: Device, report: Callable[[], None] = lambda: None) -> int:
    """Fill the cache for the cases on `device`; how many libraries that takes. What fails is met again by its case, and
    so is what is left where a compiler is killed.

    `report` is called after each library.
    """
    jobs = list(dict.fromkeys(job for case in cases if not case.plan.refusal(device) if (job := _job(case, device))))
    with suppress(BrokenProcessPool):
        for _ in on_all_cores(_compile, jobs):
            report()
    return len(jobs)


def on_all_cores(work: Callable, jobs: Sequence) -> Iterator:
    """`work` of each job in order, by a process for each core where there is enough to do."""
    if len(jobs) <= _FEW:
        yield from map(work, jobs)
        return
    with ProcessPoolExecutor(mp_context=get_context("spawn"), initializer=end_with_parent) as pool:
        yield from pool.map(work, jobs)


def _job(case, device) -> tuple[Path, tuple[str, ...], str, tuple[str, ...]] | None:
    try:
        entries = case.plan.entries(device)
    except Exception:  # whatever a spec's launch raises, it raises again where the case's own result can say so
        return None
    return (case.spec.source, entries, str(device.compute_capability), case.spec.options) if entries else None


def _compile(job):
    try:
        compile_source(*job)
    except CompilationFailed:
        return
