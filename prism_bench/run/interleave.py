"""Two builds measured in one run, their processes in turn (A B, B A, A B, ...), so that drift affects both alike."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from prism_bench import interrupts
from prism_bench.case import Case
from prism_bench.catalogue import Catalogue
from prism_bench.errors import BackendUnavailable, PrismBenchError
from prism_bench.run.catalogue_run import Run
from prism_bench.run.driver import Progress, rounds
from prism_bench.run.places import HERE
from prism_bench.run.record_builder import RunClock
from prism_bench.run.settings import Settings
from prism_bench.run.standby import Standby
from prism_bench.run_record import RunRecord
from prism_bench.workers.handle import WorkerEnvironment

_STANDBY = "prism_bench/run/standby.py"  # of a checkout whose workers can be started before they have an order
DEVICE_METRICS = ("cold_time", "hot_time", "wall_time")


@dataclass(frozen=True)
class Build:
    """One side: its `name`, the `catalogue` of its `cases`, and the `place` where its workers run."""

    name: str
    catalogue: Catalogue
    cases: tuple[Case, ...]
    place: WorkerEnvironment = HERE


def pair_settings(settings: Settings, metrics: Sequence[str] = DEVICE_METRICS) -> Settings:
    """Return the settings for timing kernels alone: no peers, no CPU, and these metrics only.

    Processes that measure are numbered from 1, so a metric of the first process only is not measured at all.
    """
    others = tuple(metric for metric in settings.criteria if metric not in metrics)
    return replace(settings, peers=False, cpu_baseline=False, first_process_only=others)


@dataclass(frozen=True)
class Growth:
    """Plan for adding pairs of processes.

    After as many pairs as each of `looks`, `undecided` names the cases of either side that are measured until the next.
    """

    looks: tuple[int, ...]
    undecided: Callable[[tuple[RunRecord, RunRecord]], tuple[Collection[str], Collection[str]]]


class _PairSide:
    """A build with its run, and the cases that are still measured."""

    def __init__(self, build: Build, backend: str, settings: Settings, report: Callable[[Progress], object]) -> None:
        self.build = build
        self.left = list(build.cases)
        self.run = Run(build.catalogue, backend, settings, report, build.place)

    def turn(self, process: int, timed: bool = True) -> None:
        """Send the cases that are left through one process."""
        self.run.go_through(self.left, process, timed)

    def standby(self, processes: int) -> Standby:
        """Return that many workers, which import CuPy while others verify; none for a checkout that has none."""
        place = self.build.place
        known = place.root is None or (place.root / _STANDBY).is_file()
        return Standby([["cupy"]] * processes if known else [], place)

    def narrow(self, names: Collection[str]) -> None:
        """Keep only the cases of those names and the ceiling benchmarks; without names nothing is left."""
        self.left = [case for case in self.left if case.name in names or case.spec.ceiling] if names else []


def interleaved(
    builds: tuple[Build, Build], backend: str, settings: Settings,
    report: Callable[[Progress], object] = lambda _: None, *, verified: bool = True, limit: float | None = None,
    keep: Callable[[tuple[RunRecord, RunRecord]], object] = tuple, growth: Growth | None = None,
) -> tuple[RunRecord, RunRecord]:  # fmt: skip
    """Measure two builds in turn; return their records.

    Both are verified in a process each (unless `verified` is False), then timed in `settings.processes` each, and with
    `growth` its undecided cases in more. No further pair of processes starts that would not end within `limit` seconds
    if it took as long as the last one; the records hold what was measured. Ctrl-C ends both and marks them incomplete.
    `keep` gets such records after each pair, in case the machine itself is lost.
    """
    a, b = (_with_launch_benchmark(build, backend) for build in builds)
    if not a.cases or not b.cases:
        raise PrismBenchError("no case is left to compare: every filter and label together exclude all of them")
    clock, count = RunClock(), _PairCount(report, (len(a.cases) + len(b.cases)) * (settings.processes + verified))
    sides = [_PairSide(build, backend, settings, count.take) for build in (a, b)]

    def records(complete: bool) -> tuple[RunRecord, RunRecord]:
        span = clock.span(complete)
        return sides[0].run.record(span), sides[1].run.record(span)

    complete = True
    try:
        with interrupts.allowed(), _begun(sides, settings.processes if backend == "cuda" else 0, verified):
            end = None if limit is None else clock.counter + limit
            last = growth.looks[-1] if growth else settings.processes
            for number in rounds(sides, range(1, last + 1), _PairSide.turn, end):
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


@contextmanager
def _begun(sides: Sequence[_PairSide], processes: int, verified: bool) -> Iterator[None]:
    """Verify both sides with `verified`, while that many workers a side import CuPy for the orders that follow."""
    with ExitStack() as stack:
        ready = [stack.enter_context(side.standby(processes)) for side in sides]
        for side in sides if verified else ():
            side.turn(0, timed=False)
        for side, workers in zip(sides, ready, strict=True):
            workers.settle()
            side.run.standby = workers
        yield


def _with_launch_benchmark(build: Build, backend: str) -> Build:
    """Return the build with the empty kernel on a device, since times below the launch overhead are rejected.

    On NumPy variants are left out: their reference is their kernel's.
    """
    if backend == "numpy_reference":
        return replace(build, cases=tuple(case for case in build.cases if not case.variant))
    if backend != "cuda" or not build.cases:
        return build
    empty = [case for case in build.catalogue.cases(labels=("S0",)) if case.spec.ceiling == "launch"]
    return replace(build, cases=tuple(dict.fromkeys([*empty[:1], *build.cases])))


def _goes_on(
    sides: Sequence[_PairSide], number: int, growth: Growth, records: Callable[[], tuple[RunRecord, RunRecord]], *,
    count: "_PairCount",
) -> bool:  # fmt: skip
    """Return whether anything is left to measure after that pair; at a look the undecided cases alone are left."""
    if number not in growth.looks[:-1]:
        return True
    for side, names in zip(sides, growth.undecided(records()), strict=True):
        side.narrow(names)
    later = min(look for look in growth.looks if look > number)
    count.total += sum(len(side.left) for side in sides) * (later - number)
    return any(side.left for side in sides)


class _PairCount:
    """The progress of both sides together."""

    def __init__(self, report: Callable[[Progress], object], total: int) -> None:
        self._report, self._done, self.total = report, 0, total

    def take(self, event: Progress) -> None:
        """Report the event with the count of both sides."""
        self._report(Progress(event.process, min(self._done, self.total), self.total, event.task))
        self._done += 1
