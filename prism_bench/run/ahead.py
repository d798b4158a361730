"""Compilation ahead: the code of every case compiled on all cores, so that profiled or timed launches only load it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import get_context
from typing import TypeVar

from prism_bench.compilation.languages import BuildRequest, build, build_request
from prism_bench.errors import PrismBenchError
from prism_bench.io.workers.child import end_with_parent, usable_cores
from prism_bench.spec.case import Case, Device

_FEW = 4  # so many are compiled sooner than processes start
Job = TypeVar("Job")
Outcome = TypeVar("Outcome")


def compile_ahead(cases: Iterable[Case], device: Device, report: Callable[[], None] = lambda: None) -> int:
    """Fill the cache for the cases on `device`; return how many libraries that takes.

    What fails to compile fails again in its case, and so does what is left where a compiler is killed. `report` is
    called after each library.
    """
    jobs = list(dict.fromkeys(job for case in cases if not case.plan.refusal(device) if (job := _job(case, device))))
    with suppress(BrokenProcessPool):
        for _ in on_all_cores(_compile, jobs):
            report()
    return len(jobs)


def on_all_cores(work: Callable[[Job], Outcome], jobs: Sequence[Job]) -> Iterator[Outcome]:
    """Yield `work` of each job in order, done by a process for each core where there is enough to do."""
    if len(jobs) <= _FEW:
        yield from map(work, jobs)
        return
    with ProcessPoolExecutor(usable_cores(), mp_context=get_context("spawn"), initializer=end_with_parent) as pool:
        yield from pool.map(work, jobs)


def _job(case: Case, device: Device) -> BuildRequest | None:
    try:
        return build_request(case, device)
    except Exception:  # what a spec's launch raises, it raises again where the case's result can report it
        return None


def _compile(job: BuildRequest) -> None:
    with suppress(PrismBenchError):
        build(job)
