"""Two builds measured in one run, their processes in turn: A B, B A, A B, ... so that drift meets both alike."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from prism_bench.case import Case
from prism_bench.catalogue import Catalogue
from prism_bench.errors import BackendUnavailable, PrismBenchError
from prism_bench.run_record import RunRecord
from prism_bench.workbench.process import HERE, Place
from prism_bench.workbench.run import Progress, Run
from prism_bench.workbench.settings import Settings

DEVICE_METRICS = ("cold_time", "hot_time", "wall_time")


@dataclass(frozen=True)
class Build:
    """One side: its `name`, the `catalogue` its `cases` are from, and the `place` its package comes from."""

    name: str
    catalogue: Catalogue
    cases: tuple[Case, ...]
    place: Place = HERE


def pair_settings(settings: Settings, metrics: Sequence[str] = DEVICE_METRICS) -> Settings:
    """The settings for timing kernels alone: no peers, no CPU, and none but these metrics.

    Processes that measure are numbered from 1, so what belongs to the first process only is not measured at all.
    """
    others = tuple(metric for metric in settings.criteria if metric not in metrics)
    return replace(settings, peers=False, cpu_baseline=False, first_process_only=others)


class _Side:
    """A build with its run."""

    def __init__(self, build: Build, backend: str, settings: Settings, report: Callable):
        self.build = build
        self.run = Run(build.catalogue, backend, settings, report, build.place)

    def turn(self, process, timed=True):
        self.run.go_through(list(self.build.cases), process, timed)


def interleaved(
    builds: tuple[Build, Build], backend: str, settings: Settings, report: Callable = lambda _: None, *,
    verified: bool = True, limit: float | None = None, keep: Callable[[tuple[RunRecord, RunRecord]], object] = tuple,
) -> tuple[RunRecord, RunRecord]:  # fmt: skip
    """Verify both builds in a process each (unless `verified` is False), then time both in `settings.processes` each.

    No further pair of processes starts that would not end within `limit` seconds, as long as the last one took; the
    records hold what was measured. Ctrl-C ends both and marks them incomplete. Such records go to `keep` after each
    pair, for the day when the machine itself is lost.
    """
    builds = tuple(_suited(build, backend) for build in builds)
    if not builds[0].cases or not builds[1].cases:
        raise PrismBenchError("no case is left to compare: every filter and label together exclude all of them")
    started, before = datetime.now(UTC), time.perf_counter()
    counted = _counting(report, sum(len(build.cases) for build in builds) * (settings.processes + verified))
    sides = [_Side(build, backend, settings, counted) for build in builds]

    def records(complete):
        seconds = time.perf_counter() - before
        return tuple(side.run.record(started, seconds, complete) for side in sides)

    complete = True
    try:
        if verified:
            for side in sides:
                side.turn(0, timed=False)
        for _ in _pairs(sides, settings.processes, None if limit is None else before + limit):
            keep(records(complete=False))
    except KeyboardInterrupt:
        complete = False
    except BackendUnavailable:
        if not all(side.run.has_results for side in sides):
            raise
        complete = False
    return records(complete)


def _suited(build, backend):
    """On a device with the empty kernel, since less time than it takes is refused; on NumPy without variants, whose
    reference is their kernel's.
    """
    if backend == "numpy_reference":
        return replace(build, cases=tuple(case for case in build.cases if not case.variant))
    if backend != "cuda" or not build.cases:
        return build
    floors = [case for case in build.catalogue.cases(labels=("S0",)) if case.spec.ceiling == "launch"]
    return replace(build, cases=tuple(dict.fromkeys([*floors[:1], *build.cases])))


def _pairs(sides, processes, end):
    """The sides in turn, until another pair of processes would not be over by `end`; yields after each pair."""
    for number in range(1, processes + 1):
        begun = time.perf_counter()
        for side in sides if number % 2 else sides[::-1]:
            side.turn(number)
        yield
        now = time.perf_counter()
        if end is not None and now + (now - begun) > end:
            return


def _counting(report, total):
    """`report` with the count of both sides together."""
    done = 0

    def count(event):
        nonlocal done
        report(Progress(event.process, min(done, total), total, event.task))
        done += 1

    return count
