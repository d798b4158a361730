"""Two builds measured in one run, their processes in turn: A B, B A, A B, ... so that drift meets both alike."""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from prism_bench import interrupts
from prism_bench.case import Case
from prism_bench.catalogue import Catalogue
from prism_bench.errors import BackendUnavailable, PrismBenchError
from prism_bench.run.driver import Progress, Run
from prism_bench.run.places import HERE
from prism_bench.run.settings import Settings
from prism_bench.run_record import RunRecord
from prism_bench.workers.handle import WorkerEnvironment

DEVICE_METRICS = ("cold_time", "hot_time", "wall_time")


@dataclass(frozen=True)
class Build:
    """One side: its `name`, the `catalogue` its `cases` are from, and the `place` its package comes from."""

    name: str
    catalogue: Catalogue
    cases: tuple[Case, ...]
    place: WorkerEnvironment = HERE


def pair_settings(settings: Settings, metrics: Sequence[str] = DEVICE_METRICS) -> Settings:
    """The settings for timing kernels alone: no peers, no CPU, and none but these metrics.

    Processes that measure are numbered from 1, so what belongs to the first process only is not measured at all.
    """
    others = tuple(metric for metric in settings.criteria if metric not in metrics)
    return replace(settings, peers=False, cpu_baseline=False, first_process_only=others)


@dataclass(frozen=True)
class Growth:
    """How pairs of processes are added: after as many as each of `looks`, `undecided` names the cases of either side
    that are measured again until the next one.
    """

    looks: tuple[int, ...]
    undecided: Callable[[tuple[RunRecord, RunRecord]], tuple[Collection[str], Collection[str]]]


class _Side:
    """A build with its run, and which of its cases are still measured."""

    def __init__(self, build: Build, backend: str, settings: Settings, report: Callable):
        self.build = build
        self.left = list(build.cases)
        self.run = Run(build.catalogue, backend, settings, report, build.place)

    def turn(self, process, timed=True):
        self.run.go_through(self.left, process, timed)

    def narrow(self, names: Collection[str]) -> None:
        """Go on with the cases of those names alone, and with what measures the machine."""
        self.left = [case for case in self.left if case.name in names or case.spec.ceiling] if names else []


def interleaved(
    builds: tuple[Build, Build], backend: str, settings: Settings, report: Callable = lambda _: None, *,
    verified: bool = True, limit: float | None = None, keep: Callable[[tuple[RunRecord, RunRecord]], object] = tuple,
    growth: Growth | None = None,
) -> tuple[RunRecord, RunRecord]:  # fmt: skip
    """Verify both builds in a process each (unless `verified` is False), then time both in `settings.processes` each,
    and with `growth` its undecided cases in more.

    No further pair of processes starts that would not end within `limit` seconds, as long as the last one took; the
    records hold what was measured. Ctrl-C ends both and marks them incomplete. Such records go to `keep` after each
    pair, for the day when the machine itself is lost.
    """
    builds = tuple(_suited(build, backend) for build in builds)
    if not builds[0].cases or not builds[1].cases:
        raise PrismBenchError("no case is left to compare: every filter and label together exclude all of them")
    started, before = datetime.now(UTC), time.perf_counter()
    count = _Count(report, sum(len(build.cases) for build in builds) * (settings.processes + verified))
    sides = [_Side(build, backend, settings, count.take) for build in builds]

    def records(complete):
        seconds = time.perf_counter() - before
        return tuple(side.run.record(started, seconds, complete) for side in sides)

    complete = True
    try:
        with interrupts.allowed():
            for side in sides if verified else ():
                side.turn(0, timed=False)
            end = None if limit is None else before + limit
            for number in _pairs(sides, growth.looks[-1] if growth else settings.processes, end):
                keep(records(complete=False))
                if growth and not _goes_on(sides, number, growth, lambda: records(complete=True), count=count):
                    break
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


def _pairs(sides: Sequence[_Side], processes: int, end: float | None) -> Iterator[int]:
    """The sides in turn, until another pair of processes would not be over by `end`; yields each pair's number."""
    for number in range(1, processes + 1):
        begun = time.perf_counter()
        for side in sides if number % 2 else sides[::-1]:
            side.turn(number)
        yield number
        now = time.perf_counter()
        if end is not None and now + (now - begun) > end:
            return


def _goes_on(sides: Sequence[_Side], number: int, growth: Growth, records: Callable, *, count: "_Count") -> bool:
    """Whether anything is left to measure after that pair; at a look the sides are narrowed to what is undecided."""
    if number not in growth.looks[:-1]:
        return True
    for side, names in zip(sides, growth.undecided(records()), strict=True):
        side.narrow(names)
    later = min(look for look in growth.looks if look > number)
    count.total += sum(len(side.left) for side in sides) * (later - number)
    return any(side.left for side in sides)


class _Count:
    """The progress of both sides together."""

    def __init__(self, report: Callable, total: int):
        self._report, self._done, self.total = report, 0, total

    def take(self, event: Progress) -> None:
        """Report the event with the count of both sides."""
        self._report(Progress(event.process, min(self._done, self.total), self.total, event.task))
        self._done += 1
